"""A warn wave without holdback, the days before a wave, and what the notes say of both."""

import dataclasses
import datetime as dt

import numpy as np
import pandas as pd
import pytest

from analysis.baseline import Baseline
from analysis.evidence import DrawInputs, comparison_of
from analysis.frames import COUNTS
from analysis.gates import evaluate
from analysis.histograms import OwnerHistograms
from analysis.pairing import Paired, paired_contrast, two_sided_p
from analysis.report import Comparison, MetricReason, Topic
from reducer.vocabulary import Cohort, Gate, Metric, Verdict
from tests.analysis.samples import POLICY, days, simulated_totals, wave

WARN_MARGINS = {
    Metric.CANCELLATION: 0.005,
    Metric.DISRUPTION: 0.005,
    Metric.TOKENS: 1.10,
    Metric.TURNS: 1.10,
}
WARN_POLICY = dataclasses.replace(POLICY, margins={**POLICY.margins, Gate.WARN: WARN_MARGINS})
WEEK_BEFORE = tuple(dt.date(2026, 11, 13) + dt.timedelta(days=place) for place in range(7))


def baseline_of(totals, *, days_before=WEEK_BEFORE, durations=None, comparable=True):
    owners = totals[["owner", *COUNTS]].assign(is_comparable=comparable)
    return Baseline(owners, days_before, durations)


def warn_wave(*, seed=7, before_seed=8, owners=600, **changes):
    """Return a warn wave of which nobody is held back, with the week before it."""
    after = simulated_totals(treated=owners, control=0, seed=seed).assign(cohort="warned")
    before = simulated_totals(treated=owners, control=0, seed=before_seed)
    arguments = {"baseline": baseline_of(before), **changes}
    return wave(
        after, gate=Gate.WARN, treated=Cohort.WARNED, reference=Cohort.HOLDBACK, **arguments
    )


def durations_of(owners, *, times=1.0, seed=3, scale=7):
    source = np.random.default_rng(seed)
    names = np.repeat(owners["owner"].to_numpy(dtype=object), owners["started"])
    slow = source.lognormal(8.0, 0.8, len(names)) * times
    buckets = np.ceil(np.log2(slow) * 2.0**scale).astype(int) - 1
    return OwnerHistograms.of(pd.DataFrame({"owner": names, "bucket": buckets, "count": 1}), scale)


def test_without_holdback_the_gate_compares_before_and_after_and_says_so():
    evaluation = evaluate(warn_wave(), WARN_POLICY)

    assert evaluation.comparison is Comparison.BEFORE_AFTER
    assert evaluation.verdict is Verdict.WITHIN
    assert evaluation.sentence.startswith("Within every margin: disruption at worst ")
    assert evaluation.sentence.endswith(
        "Nobody was held back, so this compares before and after: any change of the period can "
        "fool it, no level is claimed, and a promotion on it needs a written reason."
    )
    for result in evaluation.metrics:
        assert result.sentence.startswith("Within: before/after, ")
        assert result.figures.interval is not None
        assert result.figures.interval.method == "paired owner t"
        assert result.figures.permutations == 0
        assert result.figures.reference.owners == 600


@pytest.mark.parametrize(
    ("rostered", "comparison"),
    [
        pytest.param({Cohort.WARNED: 9, Cohort.HOLDBACK: 0}, Comparison.BEFORE_AFTER, id="none"),
        pytest.param({Cohort.WARNED: 9, Cohort.HOLDBACK: 1}, Comparison.CONCURRENT, id="one"),
        pytest.param({}, Comparison.CONCURRENT, id="a roster that nobody reported"),
    ],
)
def test_only_a_roster_that_is_known_to_hold_nobody_back_is_compared_with_before(
    rostered, comparison
):
    assert comparison_of(warn_wave(owners=9, rostered=rostered)) is comparison


def test_an_enforce_wave_is_never_compared_with_before():
    lone = simulated_totals(treated=50, control=0)
    assert comparison_of(wave(lone)) is Comparison.CONCURRENT


def test_a_period_that_got_worse_is_beyond():
    before = simulated_totals(treated=600, control=0, seed=8)
    fewer = before.assign(tokens=(before["tokens"] * 0.8).round())

    evaluation = evaluate(warn_wave(baseline=baseline_of(fewer)), WARN_POLICY)

    tokens = next(each for each in evaluation.metrics if each.figures.metric is Metric.TOKENS)
    assert (tokens.verdict, tokens.reason) == (Verdict.BEYOND, MetricReason.BEYOND_MARGIN)
    assert evaluation.verdict is Verdict.BEYOND


@pytest.mark.parametrize(
    ("changes", "reason", "words"),
    [
        pytest.param({"baseline": None}, MetricReason.NO_BASELINE, "no week before", id="none"),
        pytest.param(
            {"days": days(7, incomplete=2)},
            None,
            "before/after",
            id="seven days have all weekdays wherever they start",
        ),
        pytest.param(
            {"days": days(8), "declared_days": 8},
            MetricReason.NO_BASELINE,
            "not the same weekdays",
            id="eight days against seven",
        ),
        pytest.param(
            {"days": days(3)}, MetricReason.DWELL, "judged only when", id="too early to judge"
        ),
    ],
)
def test_before_and_after_need_the_same_weekdays(changes, reason, words):
    for result in evaluate(warn_wave(**changes), WARN_POLICY).metrics:
        assert result.reason is reason
        assert words in result.sentence


def test_few_owners_are_too_little_data_before_and_after():
    for result in evaluate(warn_wave(owners=20), WARN_POLICY).metrics:
        assert result.verdict is Verdict.UNPROVEN
        assert result.reason is MetricReason.MINIMUM_DATA
        assert "20 owners with data in warned (30 needed)" in result.sentence
        assert result.figures.bound is None


def test_owners_without_a_day_before_are_not_compared():
    before = simulated_totals(treated=600, control=0, seed=8)
    half = baseline_of(before.head(300))

    result = evaluate(warn_wave(baseline=half), WARN_POLICY).metrics[0]

    assert (result.figures.treated.owners, result.figures.reference.owners) == (300, 300)
    nobody = baseline_of(before.assign(owner=before["owner"] + "-x"))
    assert evaluate(warn_wave(baseline=nobody), WARN_POLICY).metrics[0].reason is (
        MetricReason.EMPTY_COHORT
    )


def test_owners_who_are_all_alike_have_no_bound():
    alike = simulated_totals(treated=100, control=0).assign(
        cohort="warned", started=60, cancelled=0, completed=60, disrupted=0, tokens=60, turns=60
    )
    evidence = dataclasses.replace(warn_wave(owners=100), owners=alike, baseline=baseline_of(alike))

    for result in evaluate(evidence, WARN_POLICY).metrics:
        assert (result.figures.interval, result.figures.bound) == (None, None)
        assert result.verdict is Verdict.UNPROVEN


@pytest.mark.parametrize(
    ("times", "verdict"),
    [
        pytest.param(1.0, Verdict.WITHIN, id="as slow as before"),
        pytest.param(1.3, Verdict.BEYOND, id="slower by 30 %"),
    ],
)
def test_latency_is_compared_before_and_after_at_one_pooled_cut(times, verdict):
    policy = dataclasses.replace(POLICY, margins={Gate.WARN: {Metric.LATENCY_P95: 1.10}})
    evidence = warn_wave()
    before = simulated_totals(treated=600, control=0, seed=8)
    timed = dataclasses.replace(
        evidence,
        durations=durations_of(evidence.owners, times=times),
        baseline=baseline_of(before, durations=durations_of(before, seed=4)),
    )

    (latency,) = evaluate(timed, policy).metrics

    figures = latency.figures
    assert latency.verdict is verdict
    assert figures.estimate == pytest.approx(times, rel=0.05)
    assert figures.tested_margin == pytest.approx(1.0964, abs=1e-4)
    assert figures.interval is not None
    assert figures.interval.low < times < figures.interval.high
    assert (figures.bound is not None) is (verdict is Verdict.WITHIN)


def test_latency_without_durations_of_both_periods_is_no_data():
    policy = dataclasses.replace(POLICY, margins={Gate.WARN: {Metric.LATENCY_P95: 1.10}})

    (latency,) = evaluate(warn_wave(), policy).metrics

    assert (latency.verdict, latency.reason) == (Verdict.NO_DATA, MetricReason.NO_DURATIONS)


def test_the_paired_contrast_is_the_t_test_of_paired_differences_for_equal_owners():
    source = np.random.default_rng(5)
    after, before = source.poisson(20.0, 200).astype(float), source.poisson(20.0, 200).astype(float)
    trials = np.full(200, 100.0)

    contrast = paired_contrast(Paired(after, trials, before, trials), is_log=False)

    apart = (after - before) / 100.0
    assert contrast is not None
    assert contrast.estimate == pytest.approx(apart.mean())
    assert contrast.standard_error == pytest.approx(apart.std(ddof=1) / np.sqrt(200))
    assert contrast.degrees_of_freedom == pytest.approx(199, rel=0.01)


def test_the_paired_p_value_is_uniform_when_nothing_changed():
    source = np.random.default_rng(20261120)
    found = []
    for _ in range(1_000):
        sizes = source.integers(20, 80, 60)
        rates = source.beta(1.0, 15.0, 60)
        harm = [source.binomial(sizes, rates).astype(float) for _ in range(2)]
        own = Paired(harm[0], sizes.astype(float), harm[1], sizes.astype(float))
        contrast = paired_contrast(own, is_log=False)
        assert contrast is not None
        found.append(two_sided_p(contrast))
    assert np.mean(np.array(found) < 0.05) == pytest.approx(0.05, abs=0.025)
    assert np.mean(np.array(found) < 0.5) == pytest.approx(0.5, abs=0.06)


def enforce_wave(baseline, owners=None):
    owners = simulated_totals(treated=100, control=900) if owners is None else owners
    return wave(owners, baseline=baseline)


def note_of(evidence, topic):
    return next((note for note in evaluate(evidence, POLICY).notes if note.topic is topic), None)


def test_alike_days_before_the_wave_are_noted_without_a_warning():
    evidence = enforce_wave(baseline_of(simulated_totals(treated=100, control=900, seed=9)))

    alike = note_of(evidence, Topic.BASELINE_BALANCE)
    still = note_of(evidence, Topic.CONTROL_MOVED)

    assert alike is not None
    assert still is not None
    assert (alike.is_warning, still.is_warning) == (False, False)
    assert alike.sentence == "On the 7 days before the wave the cohorts were alike."
    assert still.sentence == "Control did as in the days before the wave."
    assert "p_completion" in alike.numbers


def test_cohorts_that_differed_before_the_wave_warn_and_decide_nothing():
    before = simulated_totals(treated=100, control=900, seed=8)
    is_treated = before["cohort"] == "enforced"
    apart = before.assign(tokens=before["tokens"].where(~is_treated, before["tokens"] * 2))

    evaluation = evaluate(enforce_wave(baseline_of(apart)), POLICY)

    note = next(each for each in evaluation.notes if each.topic is Topic.BASELINE_BALANCE)
    assert note.is_warning
    assert "the cohorts already differed in tokens (p = " in note.sentence
    assert all(check.verdict is Verdict.WITHIN for check in evaluation.checks)


def test_a_control_that_moved_warns():
    before = simulated_totals(treated=100, control=900, seed=8)
    quiet = before.assign(disrupted=0)

    note = note_of(enforce_wave(baseline_of(quiet)), Topic.CONTROL_MOVED)

    assert note is not None
    assert note.is_warning
    assert "Control moved against the days before the wave in disruption (p = " in note.sentence


def test_a_baseline_of_another_mode_says_nothing_about_control():
    before = simulated_totals(treated=100, control=900, seed=8)
    evidence = enforce_wave(baseline_of(before, comparable=False))

    assert note_of(evidence, Topic.CONTROL_MOVED) is None


@pytest.mark.parametrize(
    "draw",
    [None, DrawInputs("other-draw-9", "00.0", 500, ())],
    ids=["no draw", "an unknown draw"],
)
def test_without_the_draw_nobody_knows_who_will_be_treated(draw):
    before = baseline_of(simulated_totals(treated=100, control=900, seed=8))
    evidence = dataclasses.replace(enforce_wave(before), draw=draw)

    assert note_of(evidence, Topic.BASELINE_BALANCE) is None


def test_power_is_noted_for_every_metric_with_a_standard_error():
    note = note_of(enforce_wave(None), Topic.POWER)

    assert note is not None
    assert set(note.numbers) == {
        "power_completion",
        "power_disruption",
        "power_tokens",
        "power_turns",
    }
    assert all(0.0 < float(reached) <= 1.0 for reached in note.numbers.values())
    assert note.sentence.startswith("Power with no true harm: completion ")


def test_the_shadow_gate_notes_neither_power_nor_cohorts():
    everyone = simulated_totals(treated=5, control=5).assign(cohort="everyone")
    evidence = wave(
        everyone, gate=Gate.SHADOW, treated=Cohort.EVERYONE, reference=Cohort.EVERYONE, rostered={}
    )

    evaluation = evaluate(evidence, POLICY)

    assert evaluation.comparison is Comparison.NONE
    assert {note.topic for note in evaluation.notes} <= {Topic.SUPPORTED_HOSTS}
