import dataclasses
import datetime as dt

import pandas as pd
import pytest

from guardwave.analysis.frames.evidence import Share, days_used
from guardwave.analysis.gate.verdict import evaluate
from guardwave.analysis.report import Check, CheckResult, GateEvaluation, MetricReason, MetricResult
from guardwave.reducer.rollout.state import EvidenceSource
from guardwave.reducer.vocabulary import Cohort, Gate, Invariant, Metric, Verdict
from tests.support.frames.samples import (
    DATASETS,
    NO_MINIMUM,
    POLICY,
    days,
    reference_totals,
    simulated_totals,
    wave,
)

SHADOW = {
    "gate": Gate.SHADOW,
    "treated": Cohort.EVERYONE,
    "reference": Cohort.EVERYONE,
    "rostered": {},
}


@pytest.fixture(scope="module")
def good_owners():
    return simulated_totals(treated=200, control=1800)


@pytest.fixture(scope="module")
def few_owners():
    return simulated_totals(treated=40, control=200)


def metric_of(evaluation: GateEvaluation, metric: Metric) -> MetricResult:
    (found,) = [
        result
        for result in (*evaluation.metrics, *evaluation.information)
        if result.figures.metric is metric
    ]
    return found


def check_of(evaluation: GateEvaluation, check: Check) -> CheckResult:
    (found,) = [result for result in evaluation.checks if result.check is check]
    return found


def test_a_harmless_guard_with_enough_owners_is_within_every_margin(good_owners):
    evaluation = evaluate(wave(good_owners), POLICY)

    assert evaluation.verdict is Verdict.WITHIN
    assert [result.verdict for result in evaluation.metrics] == [Verdict.WITHIN] * 4
    assert evaluation.sentence.startswith("Within every margin: completion at worst -0.")
    assert "(margin -1.00 pp), disruption at worst +0." in evaluation.sentence
    assert evaluation.owners == {Cohort.ENFORCED: 200, Cohort.CONTROL: 1800}


def test_a_harmful_guard_is_beyond_and_the_sentence_names_the_numbers():
    harmed = simulated_totals(treated=200, control=1800, harm=0.04)

    evaluation = evaluate(wave(harmed), POLICY)

    completion = metric_of(evaluation, Metric.COMPLETION)
    assert evaluation.verdict is Verdict.BEYOND
    assert completion.reason is MetricReason.BEYOND_MARGIN
    assert completion.figures.bound is not None
    assert completion.figures.bound < -0.01
    assert evaluation.sentence.startswith("Beyond: completion 90.")
    assert evaluation.sentence.endswith("shown to be worse than the margin of -1.00 pp.")


def test_an_undecided_metric_is_unproven_and_states_how_bad_it_may_be(few_owners):
    evaluation = evaluate(wave(few_owners), POLICY)

    completion = metric_of(evaluation, Metric.COMPLETION)
    assert evaluation.verdict is Verdict.UNPROVEN
    assert completion.reason is MetricReason.MARGIN_NOT_EXCLUDED
    assert evaluation.sentence.startswith("Not proven: completion 9")
    assert "could be as low as -" in evaluation.sentence
    assert "margin -1.00 pp" in evaluation.sentence


@pytest.mark.parametrize("dataset", DATASETS)
def test_a_metric_is_within_exactly_when_its_bound_is_inside_the_margin(dataset):
    evaluation = evaluate(wave(reference_totals(dataset)), NO_MINIMUM)

    for result in evaluation.metrics:
        figures = result.figures
        assert figures.bound is not None
        assert figures.margin is not None
        sign = -1.0 if figures.metric.is_higher_better else 1.0
        is_inside = sign * figures.bound < sign * figures.margin
        assert is_inside is (result.verdict is Verdict.WITHIN)


@pytest.mark.parametrize("policy", [POLICY, NO_MINIMUM], ids=["shipped", "no minimum data"])
def test_six_treated_owners_without_an_event_are_not_within(policy):
    """The textbook interval excludes the margin here; the test at the margin does not."""
    evaluation = evaluate(wave(reference_totals("dev-3-few-treated-zero-events")), policy)

    disruption = metric_of(evaluation, Metric.DISRUPTION)
    assert disruption.figures.interval is not None
    assert disruption.figures.interval.high < 0.005
    assert disruption.verdict is Verdict.UNPROVEN
    assert evaluation.verdict is not Verdict.WITHIN


def test_a_dominant_owner_is_too_little_data_at_any_p():
    evaluation = evaluate(wave(reference_totals("dev-4-dominant-owner")), POLICY)

    assert evaluation.verdict is not Verdict.WITHIN
    for result in evaluation.metrics:
        assert result.verdict is Verdict.UNPROVEN
        assert result.reason is MetricReason.MINIMUM_DATA
        assert result.figures.bound is None
        assert "one owner with 88.4 % of the prompts in enforced" in result.sentence
    completion = metric_of(evaluation, Metric.COMPLETION)
    assert completion.figures.p_harm_at_margin is not None
    assert completion.figures.p_harm_at_margin < POLICY.alpha


def test_beyond_outranks_too_little_data():
    harmed = simulated_totals(treated=12, control=400, harm=0.2)

    completion = metric_of(evaluate(wave(harmed), POLICY), Metric.COMPLETION)

    assert completion.verdict is Verdict.BEYOND


def test_the_reference_needs_minimum_data_too():
    evaluation = evaluate(wave(simulated_totals(treated=200, control=20)), POLICY)

    completion = metric_of(evaluation, Metric.COMPLETION)
    assert completion.reason is MetricReason.MINIMUM_DATA
    assert "20 owners with data in control (30 needed)" in completion.sentence


def test_before_the_declared_days_are_complete_metrics_are_shown_and_not_judged(good_owners):
    evaluation = evaluate(wave(good_owners, days=days(3, incomplete=1)), POLICY)

    assert evaluation.verdict is Verdict.UNPROVEN
    assert evaluation.sentence == (
        "Not proven: 3 of 7 complete days; 1 day does not count "
        "(2026-11-20: intake was out for 12 min)."
    )
    completion = metric_of(evaluation, Metric.COMPLETION)
    assert (completion.verdict, completion.reason) == (Verdict.UNPROVEN, MetricReason.DWELL)
    assert completion.figures.interval is not None
    assert completion.figures.p_harm_at_margin is None
    assert completion.figures.bound is None


def test_harm_is_not_called_beyond_before_a_look():
    harmed = simulated_totals(treated=200, control=1800, harm=0.04)

    evaluation = evaluate(wave(harmed, days=days(6)), POLICY)

    assert evaluation.verdict is Verdict.UNPROVEN


def test_a_wave_that_declares_less_than_the_policy_asks_for_stays_unproven(good_owners):
    evaluation = evaluate(wave(good_owners, declared_days=3), POLICY)

    assert evaluation.verdict is Verdict.UNPROVEN
    assert evaluation.sentence == "Not proven: 3 of 7 complete days."


def test_the_first_declared_complete_days_are_used_and_later_ones_are_not(good_owners):
    evidence = wave(good_owners, days=days(9, incomplete=1))

    used = days_used(evidence)

    assert used == tuple(dt.date(2026, 11, day) for day in range(21, 28))
    evaluation = evaluate(evidence, POLICY)
    assert evaluation.days.used == used
    assert (evaluation.days.declared, evaluation.days.complete) == (7, 9)
    assert [skipped.reason for skipped in evaluation.days.not_counted] == [
        "intake was out for 12 min"
    ]


@pytest.mark.parametrize(
    ("changes", "verdict", "check", "words"),
    [
        pytest.param(
            {"coverage": None}, Verdict.NO_DATA, Check.COVERAGE, "not known", id="no coverage"
        ),
        pytest.param(
            {"coverage": Share(0, 0)}, Verdict.NO_DATA, Check.COVERAGE, "not known", id="no prompt"
        ),
        pytest.param(
            {"coverage": Share(9_899, 10_000)},
            Verdict.NO_DATA,
            Check.COVERAGE,
            "98.99 % of 10,000 ended prompts; 99 % is asked for",
            id="too little coverage",
        ),
        pytest.param(
            {"contract": None}, Verdict.NO_DATA, Check.CONTRACT, "not known", id="no contract"
        ),
        pytest.param(
            {"contract": Share(98, 100)},
            Verdict.NO_DATA,
            Check.CONTRACT,
            "met by 98 % of 100 records",
            id="contract broken",
        ),
        pytest.param(
            {"violations": {Invariant.MODE_MISMATCH: 1, Invariant.STOP_WITHOUT_WARN: 2}},
            Verdict.BEYOND,
            Check.INVARIANTS,
            "1 x mode_mismatch and 2 x stop_without_warn",
            id="violations",
        ),
        pytest.param(
            {"days": days(0, incomplete=2)},
            Verdict.NO_DATA,
            Check.DWELL,
            "0 of 7 complete days; 2 days do not count "
            "(the last, 2026-11-21: intake was out for 12 min)",
            id="no day",
        ),
    ],
)
@pytest.mark.parametrize("kind", [{}, SHADOW], ids=["enforce", "shadow"])
def test_a_failed_check_decides_the_gate_and_its_sentence(
    good_owners, kind, changes, verdict, check, words
):
    evaluation = evaluate(wave(good_owners, **kind, **changes), POLICY)

    assert evaluation.verdict is verdict
    assert check_of(evaluation, check).verdict is verdict
    assert words in evaluation.sentence


def test_coverage_exactly_at_its_floor_holds(good_owners):
    evaluation = evaluate(wave(good_owners, coverage=Share(99, 100)), POLICY)

    assert check_of(evaluation, Check.COVERAGE).verdict is Verdict.WITHIN


def test_evidence_from_counters_has_no_coverage_for_want_of_ordinals(good_owners):
    evidence = wave(good_owners, coverage=None, source=EvidenceSource.COUNTERS)
    evaluation = evaluate(evidence, POLICY)
    found = {check.check: check for check in evaluation.checks}
    assert found[Check.COVERAGE].verdict is found[Check.INVARIANTS].verdict is Verdict.NO_DATA
    assert "comes from counters" in found[Check.COVERAGE].sentence
    assert "needs the ordinals" in evaluation.sentence
    assert evaluation.verdict is Verdict.NO_DATA


@pytest.mark.parametrize("coverage", [None, Share(0, 0), Share(97, 100)])
def test_without_coverage_no_violation_is_no_data_and_not_zero(good_owners, coverage):
    evaluation = evaluate(wave(good_owners, coverage=coverage), POLICY)

    assert check_of(evaluation, Check.INVARIANTS).verdict is Verdict.NO_DATA


def test_the_shadow_gate_compares_nothing(good_owners):
    everyone = good_owners.assign(cohort="everyone")

    evaluation = evaluate(wave(everyone, **SHADOW), POLICY)

    assert evaluation.verdict is Verdict.WITHIN
    assert (evaluation.metrics, evaluation.information) == ((), ())
    assert evaluation.owners == {Cohort.EVERYONE: 2000}
    assert evaluation.sentence.startswith("Within: 7 of 7 complete days; coverage 99.9 %")


def test_cancellation_informs_the_enforce_gate_and_decides_nothing(good_owners):
    started = good_owners["started"].where(good_owners["cohort"] == "enforced", 0)
    cancelled = good_owners.assign(
        started=good_owners["started"] + started, cancelled=good_owners["cancelled"] + started
    )
    cancelled["tokens"] += good_owners["tokens"].where(started > 0, 0)
    cancelled["turns"] += good_owners["turns"].where(started > 0, 0)

    evaluation = evaluate(wave(cancelled), POLICY)

    cancellation = metric_of(evaluation, Metric.CANCELLATION)
    assert evaluation.verdict is Verdict.WITHIN
    assert cancellation in evaluation.information
    assert (cancellation.verdict, cancellation.reason) == (None, None)
    assert cancellation.sentence.startswith("For information: cancellation 51.")


def test_the_warn_gate_judges_cancellation(good_owners):
    renamed = good_owners.replace({"cohort": {"enforced": "warned", "control": "holdback"}})
    evidence = wave(
        renamed, gate=Gate.WARN, treated=Cohort.WARNED, reference=Cohort.HOLDBACK, rostered={}
    )

    evaluation = evaluate(evidence, POLICY)

    assert [result.figures.metric for result in evaluation.metrics] == [
        Metric.DISRUPTION,
        Metric.CANCELLATION,
    ]
    assert evaluation.information == ()


def test_latency_without_durations_is_no_data_in_words(good_owners):
    margins = {Gate.ENFORCE: {Metric.LATENCY_P95: 1.10, Metric.COMPLETION: 0.01}}

    evaluation = evaluate(wave(good_owners), dataclasses.replace(POLICY, margins=margins))

    latency = metric_of(evaluation, Metric.LATENCY_P95)
    assert evaluation.verdict is Verdict.NO_DATA
    assert (latency.verdict, latency.reason) == (Verdict.NO_DATA, MetricReason.NO_DURATIONS)
    assert evaluation.sentence == (
        "No data: latency p95 needs the durations of prompts, and none were given."
    )


@pytest.mark.parametrize(
    ("cohort", "words"),
    [
        pytest.param("enforced", "completion has no prompt from control", id="reference empty"),
        pytest.param("control", "completion has no prompt from enforced", id="treated empty"),
        pytest.param("outside", "completion has no prompt from enforced or control", id="both"),
    ],
)
def test_an_empty_cohort_is_no_data(good_owners, cohort, words):
    evaluation = evaluate(wave(good_owners.assign(cohort=cohort)), POLICY)

    assert evaluation.verdict is Verdict.NO_DATA
    assert metric_of(evaluation, Metric.COMPLETION).sentence == f"No data: {words}."
    assert metric_of(evaluation, Metric.TURNS).reason is MetricReason.EMPTY_COHORT


@pytest.mark.parametrize("cohort", ["enforced", "control"])
def test_tokens_that_are_zero_in_a_cohort_give_no_ratio_and_no_data(good_owners, cohort):
    tokens = good_owners["tokens"].where(good_owners["cohort"] != cohort, 0)

    evaluation = evaluate(wave(good_owners.assign(tokens=tokens)), POLICY)

    result = metric_of(evaluation, Metric.TOKENS)
    assert (result.verdict, result.reason) == (Verdict.NO_DATA, MetricReason.ZERO_RATIO)
    assert f"tokens are zero in {cohort}" in evaluation.sentence


def test_a_single_treated_owner_has_an_estimate_and_no_interval(good_owners):
    lone = pd.concat([good_owners.head(1), good_owners.query("cohort == 'control'")])

    evaluation = evaluate(wave(lone), NO_MINIMUM)

    for result in evaluation.metrics:
        assert result.figures.estimate is not None
        assert result.figures.interval is None
        assert result.verdict is Verdict.UNPROVEN


def test_several_undecided_metrics_are_named_in_one_sentence(few_owners):
    evaluation = evaluate(wave(few_owners.head(50)), POLICY)

    assert evaluation.sentence.endswith(
        "; disruption, tokens, turns and stop consistency are not proven either."
    )
    assert evaluation.sentence.count(". ") == 0
