"""Missing values: a metric that too many prompts left out is no data, and never a low sum."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardwave import analysis
from guardwave.analysis.frames.evidence import Share
from guardwave.analysis.frames.histograms import ExplicitHistograms, OwnerHistograms
from guardwave.analysis.frames.missing_values import (
    MOST_MISSING,
    explain_missing,
    is_too_much,
    missing_shares,
    missing_values_of,
)
from guardwave.analysis.gate.alarms import ScheduledLooks, harm_alarms
from guardwave.analysis.gate.verdict import evaluate
from guardwave.analysis.offline.columns import Arms
from guardwave.analysis.offline.owner_file import analyse
from guardwave.analysis.report import MetricReason, MetricResult, Topic
from guardwave.reducer.vocabulary import Cohort, Gate, Metric, Verdict
from tests.support.frames.durations import identical_baseline, lognormal_durations
from tests.support.frames.periods import WARN_POLICY, warn_wave
from tests.support.frames.samples import (
    ENFORCE_MARGINS,
    NO_MINIMUM,
    PAIR,
    POLICY,
    REFERENCES,
    over_days,
    simulated_totals,
    wave,
)

WITH_LATENCY = dataclasses.replace(
    POLICY, margins={Gate.ENFORCE: {**ENFORCE_MARGINS, Metric.LATENCY_P95: 1.10}}
)
DAYS = [f"2026-11-{day}" for day in range(20, 27)]
TOKENS_SENTENCE = (
    "No data: 1,001 of 100,000 prompts of enforced (1 %) left out their tokens, input or output; "
    "at most 1 % may."
)


@pytest.fixture(scope="module")
def good_owners():
    return simulated_totals(treated=200, control=1800)


def of_metric(results: tuple[MetricResult, ...], metric: Metric) -> MetricResult:
    (found,) = [result for result in results if result.figures.metric is metric]
    return found


@pytest.mark.parametrize("metric", [Metric.TOKENS, Metric.TURNS])
@pytest.mark.parametrize(
    ("treated", "control", "is_judged"),
    [
        pytest.param(0, 0, True, id="nothing is missing"),
        pytest.param(1_000, 1_000, True, id="both leave out the hundredth part"),
        pytest.param(1_001, 0, False, id="the treated leave out one more"),
        pytest.param(0, 1_001, False, id="the reference leaves out one more"),
    ],
)
def test_a_metric_is_judged_until_more_than_the_hundredth_part_is_missing(
    good_owners, metric, treated, control, is_judged
):
    missing = {
        metric: {
            Cohort.ENFORCED: Share(treated, 100_000),
            Cohort.CONTROL: Share(control, 100_000),
        }
    }
    complete = evaluate(wave(good_owners), POLICY).metrics
    metrics = evaluate(wave(good_owners, missing=missing), POLICY).metrics
    other = Metric.TURNS if metric is Metric.TOKENS else Metric.TOKENS
    assert of_metric(metrics, other) == of_metric(complete, other)
    if is_judged:
        assert metrics == complete
        return
    result = of_metric(metrics, metric)
    assert (result.verdict, result.reason) == (Verdict.NO_DATA, MetricReason.MISSING_VALUES)
    figures = result.figures
    assert (figures.estimate, figures.bound, figures.interval) == (None, None, None)


def test_the_sentence_names_cohort_share_and_what_is_missing(good_owners):
    shares = {Cohort.ENFORCED: Share(1_001, 100_000), Cohort.CONTROL: Share(0, 100_000)}
    evaluation = evaluate(wave(good_owners, missing={Metric.TOKENS: shares}), POLICY)
    assert of_metric(evaluation.metrics, Metric.TOKENS).sentence == TOKENS_SENTENCE
    assert evaluation.verdict is Verdict.NO_DATA
    assert evaluation.sentence == TOKENS_SENTENCE


def test_both_cohorts_have_the_given_names():
    shares = {Cohort.ENFORCED: Share(5, 10), Cohort.CONTROL: Share(30, 90)}
    names = {Cohort.ENFORCED: "on", Cohort.CONTROL: "off"}
    assert explain_missing({Metric.TURNS: shares}, names) == {
        Metric.TURNS: "5 of 10 prompts of on (50 %) and 30 of 90 prompts of off (33.33 %) left out "
        "their turns; at most 1 % may"
    }


@given(st.integers(0, 10**7), st.integers(0, 10**7))
def test_the_limit_is_exact_however_many_prompts_there_are(one, other):
    part, whole = sorted((one, other))
    assert is_too_much(Share(part, whole)) is (100 * part > whole)
    assert float(1 - MOST_MISSING) == POLICY.contract_floor


def days_frame(*rows: tuple[str, str, int, int, int]) -> pd.DataFrame:
    names = ["owner", "cohort", "ended", "tokens_untold", "turns_untold"]
    return pd.DataFrame(list(rows), columns=names)


@pytest.mark.parametrize(
    ("enforced", "control", "beyond"),
    [
        pytest.param((100, 100), (100, 100), (0, 0), id="every prompt ended"),
        pytest.param((100, 90), (1_000, 900), (0, 0), id="both lost a tenth"),
        pytest.param((100, 60), (1_000, 900), (30, 0), id="the treated lost more"),
        pytest.param((100, 90), (1_000, 700), (0, 200), id="the reference lost more"),
        pytest.param((0, 0), (1_000, 700), (0, 300), id="of the treated nothing started"),
    ],
)
def test_prompts_without_an_end_are_missing_where_one_cohort_has_more(enforced, control, beyond):
    rows = pd.DataFrame(
        [("a", "enforced", *enforced, 0), ("b", "control", *control, 0)],
        columns=["owner", "cohort", "started", "ended", "tokens_untold"],
    )
    assert missing_values_of(rows, None, PAIR)[Metric.TOKENS] == {
        cohort: Share(more, ended + more)
        for cohort, (_, ended), more in zip(PAIR, (enforced, control), beyond, strict=True)
    }


def test_missing_values_are_counted_by_cohort_and_metric():
    rows = days_frame(
        ("a", "enforced", 4, 1, 0),
        ("a", "enforced", 6, 2, 1),
        ("b", "control", 9, 0, 9),
        ("c", "outside", 9, 9, 9),
    )
    assert missing_values_of(rows, None, PAIR) == {
        Metric.TOKENS: {Cohort.ENFORCED: Share(3, 10), Cohort.CONTROL: Share(0, 9)},
        Metric.TURNS: {Cohort.ENFORCED: Share(1, 10), Cohort.CONTROL: Share(9, 9)},
    }


def test_a_metric_without_a_count_of_missing_values_is_left_out():
    rows = days_frame(("a", "enforced", 4, 1, 0)).drop(columns="tokens_untold")
    assert set(missing_values_of(rows, None, PAIR)) == {Metric.TURNS}
    assert missing_values_of(rows.drop(columns="turns_untold"), None, PAIR) == {}


@pytest.mark.parametrize(
    "durations",
    [
        pytest.param(
            OwnerHistograms.of(
                pd.DataFrame({"owner": ["a", "a", "b"], "bucket": [1, 2, 2], "count": [3, 4, 9]}), 7
            ),
            id="exponential buckets",
        ),
        pytest.param(
            ExplicitHistograms(("a", "b"), (10.0,), np.array([[3, 4], [0, 9]])),
            id="buckets with bounds of their own",
        ),
    ],
)
def test_a_surplus_duration_of_one_owner_makes_up_for_none_of_another(durations):
    """Of 10, 8 and 2 prompts 7, 9 and none have a duration."""
    rows = days_frame(("a", "enforced", 10, 0, 0), ("b", "enforced", 8, 0, 0), ("c", "x", 2, 0, 0))
    assert missing_shares(rows, durations)[Metric.LATENCY_P95] == Share(5, 20)


def test_latency_without_enough_durations_is_no_data(good_owners):
    owners, slow = good_owners, 1.6
    durations = lognormal_durations(owners, scale=7, treated_times=slow)
    complete = evaluate(wave(owners, durations=durations), WITH_LATENCY)
    assert of_metric(complete.metrics, Metric.LATENCY_P95).verdict is Verdict.BEYOND
    rows = owners.assign(ended=owners["started"])
    fast = _faster_half(durations)
    missing = missing_values_of(rows, fast, PAIR)
    hidden = evaluate(wave(owners, durations=fast, missing=missing), WITH_LATENCY)
    found = of_metric(hidden.metrics, Metric.LATENCY_P95)
    assert (found.verdict, found.reason) == (Verdict.NO_DATA, MetricReason.MISSING_VALUES)
    assert "left out their duration; at most 1 % may." in found.sentence


def _faster_half(durations: OwnerHistograms) -> OwnerHistograms:
    limit = np.median(durations.buckets)
    owners = np.repeat(np.array(durations.owners, dtype=object), np.diff(durations.starts))
    frame = pd.DataFrame({"owner": owners, "bucket": durations.buckets, "count": durations.counts})
    return OwnerHistograms.of(frame[frame["bucket"] <= limit], durations.scale)


@pytest.mark.parametrize(
    ("left_out", "is_judged"),
    [
        pytest.param(None, True, id="the caller vouches"),
        pytest.param(0, True, id="nothing is missing"),
        pytest.param(1, False, id="one of about sixty a day"),
    ],
)
def test_a_frame_counts_what_its_prompts_left_out_or_its_caller_vouches(left_out, is_judged):
    week = over_days(simulated_totals(treated=100, control=900), 7)
    week = week.assign(ended=week["started"])
    if left_out is not None:
        week = week.assign(tokens_untold=left_out)
    found = analysis.evaluate(week, POLICY, days=DAYS).metrics
    reasons = {
        finding.figures.metric for finding in found if finding.reason is MetricReason.MISSING_VALUES
    }
    assert reasons == (set() if is_judged else {Metric.TOKENS})


def test_more_missing_than_ended_is_refused_by_column_row_and_value():
    week = over_days(simulated_totals(treated=2, control=2), 1).assign(ended=1, turns_untold=2)
    with pytest.raises(ValueError, match=r"turns_untold.*exceeds the prompts ended, 1"):
        analysis.evaluate(week, POLICY, days=DAYS[:1])


def test_days_before_that_left_a_metric_out_do_not_adjust_it(good_owners):
    before = identical_baseline(simulated_totals(treated=200, control=1800, seed=8))
    why = "9 of 10 prompts before the wave (90 %) left out their tokens"
    baseline = dataclasses.replace(before, missing_reasons={Metric.TOKENS: why})
    found = evaluate(wave(good_owners, baseline=baseline), POLICY).metrics
    tokens, turns = (of_metric(found, metric).figures for metric in (Metric.TOKENS, Metric.TURNS))
    assert (tokens.cuped, tokens.without_cuped) == (None, why)
    assert turns.cuped is not None
    plain = evaluate(wave(good_owners), POLICY).metrics
    assert tokens.interval == of_metric(plain, Metric.TOKENS).figures.interval


def test_days_before_that_left_durations_out_do_not_adjust_latency(good_owners):
    durations = lognormal_durations(good_owners, scale=7)
    before = dataclasses.replace(identical_baseline(good_owners), durations=durations)
    evidence = wave(good_owners, durations=durations, baseline=before)
    found = of_metric(evaluate(evidence, WITH_LATENCY).metrics, Metric.LATENCY_P95)
    assert found.figures.cuped is not None
    reasons = {Metric.LATENCY_P95: "most left it out"}
    before = dataclasses.replace(before, missing_reasons=reasons)
    evidence = dataclasses.replace(evidence, baseline=before)
    found = of_metric(evaluate(evidence, WITH_LATENCY).metrics, Metric.LATENCY_P95)
    assert (found.figures.cuped, found.figures.without_cuped) == (None, "most left it out")


@pytest.mark.parametrize("is_before", [True, False], ids=["before", "in the wave"])
def test_notes_about_the_days_before_compare_nothing_that_was_left_out(good_owners, is_before):
    durations = lognormal_durations(good_owners, scale=5)
    before = dataclasses.replace(identical_baseline(good_owners), durations=durations)
    lacking = {Metric.TOKENS, Metric.LATENCY_P95} if is_before else {Metric.TOKENS}
    shares = dict.fromkeys(PAIR, Share(5, 10))
    evidence = wave(
        good_owners,
        durations=durations,
        baseline=dataclasses.replace(
            before, missing_reasons=dict.fromkeys(lacking if is_before else (), "")
        ),
        missing={} if is_before else {Metric.TOKENS: shares},
    )
    notes = {note.topic: set(note.numbers) for note in evaluate(evidence, POLICY).notes}
    complete = {f"p_{metric}" for metric in Metric} - {f"p_{metric}" for metric in lacking}
    moved = complete - {f"p_{Metric.LATENCY_P95}"}
    assert notes[Topic.CONTROL_MOVED] == moved
    balanced = complete if is_before else {f"p_{metric}" for metric in Metric}
    assert notes[Topic.BASELINE_BALANCE] == balanced


@pytest.mark.parametrize("is_before", [True, False], ids=["before", "after"])
def test_before_and_after_compare_no_metric_that_either_left_out(is_before):
    evidence = warn_wave()
    assert evidence.baseline is not None
    if is_before:
        why = {Metric.DISRUPTION: "most left it out"}
        baseline = dataclasses.replace(evidence.baseline, missing_reasons=why)
        evidence = dataclasses.replace(evidence, baseline=baseline)
    else:
        shares = {Cohort.WARNED: Share(5, 10), Cohort.HOLDBACK: Share(0, 0)}
        evidence = dataclasses.replace(evidence, missing={Metric.TOKENS: shares})
    margins = {Gate.WARN: {Metric.DISRUPTION: 0.005, Metric.TOKENS: 1.10}}
    found = evaluate(evidence, dataclasses.replace(WARN_POLICY, margins=margins)).metrics
    lacking = {
        finding.figures.metric for finding in found if finding.reason is MetricReason.MISSING_VALUES
    }
    assert lacking == {Metric.DISRUPTION if is_before else Metric.TOKENS}


def test_a_look_without_data_about_one_metric_still_judges_the_others():
    harmed = simulated_totals(treated=200, control=1800, harm=0.06)
    harmed["tokens"] *= np.where(harmed["cohort"] == "enforced", 2, 1)

    def look(missing_reasons):
        alarms = harm_alarms(
            harmed,
            PAIR,
            ENFORCE_MARGINS,
            policy=NO_MINIMUM,
            looks=ScheduledLooks(7),
            missing_reasons=missing_reasons,
        )
        return {alarm.metric: alarm for alarm in alarms}

    complete, partial = look({}), look({Metric.TOKENS: "most left out their tokens"})
    assert complete[Metric.TOKENS].is_raised
    tokens = partial[Metric.TOKENS]
    assert (tokens.is_raised, tokens.is_missing, tokens.estimate) == (False, True, None)
    assert tokens.sentence == "No data about tokens: most left out their tokens."
    assert partial[Metric.COMPLETION] == complete[Metric.COMPLETION]
    assert partial[Metric.COMPLETION].is_raised


def owners_file(**columns: str) -> pd.DataFrame:
    """Return a reference file with more columns: "*" is one of each owner's prompts, "all" all."""
    table = pd.read_csv(REFERENCES / "dev-1-lognormal-aa.csv", dtype=str, keep_default_na=False)
    one = np.where(table["prompts"] == "0", "0", "1")
    for name, text in columns.items():
        if text == "*":
            table[name] = one
        else:
            table[name] = table["prompts"] if text == "all" else text
    return table


def without_the_slowest(file: pd.DataFrame) -> pd.DataFrame:
    cut = [" ".join(text.split()[:-1]) for text in file["latency_hist"]]
    return file.assign(latency_hist=cut)


@pytest.mark.parametrize(
    ("file", "lacking"),
    [
        pytest.param(owners_file(), set(), id="a file without the columns vouches"),
        pytest.param(
            owners_file(tokens_untold="0", turns_untold="0"),
            set(),
            id="a file without missing values",
        ),
        pytest.param(owners_file(tokens_untold="*"), {Metric.TOKENS}, id="one prompt of each"),
        pytest.param(
            owners_file(ended="all", turns_untold="all"), {Metric.TURNS}, id="all that ended"
        ),
        pytest.param(
            without_the_slowest(owners_file()), {Metric.LATENCY_P95}, id="the slowest of each"
        ),
        pytest.param(without_the_slowest(owners_file(ended="0")), set(), id="none that ended"),
    ],
)
def test_a_file_of_owners_has_the_same_limit(file, lacking):
    result = analyse(file, Arms("enforce", "warn"), WITH_LATENCY)
    found = {
        metric.figures.metric
        for metric in result.metrics
        if metric.reason is MetricReason.MISSING_VALUES
    }
    assert (found, result.remarks) == (lacking, ())


def test_the_sentence_about_a_file_has_its_names_of_the_arms():
    file = owners_file(tokens_untold="*")
    result = analyse(file, Arms("enforce", "warn"), POLICY)
    sentence = of_metric(result.metrics, Metric.TOKENS).sentence
    assert " prompts of enforce (" in sentence
    assert " prompts of warn (" in sentence


def test_more_ended_than_prompts_is_refused():
    with pytest.raises(ValueError, match=r"column 'ended', row 0: '9999999' exceeds prompts"):
        analyse(owners_file(ended="9999999"), Arms("enforce", "warn"), POLICY)
