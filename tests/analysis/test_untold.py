"""What prompts did not tell: a metric that too many leave out is no data, and never a low sum."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import analysis
from analysis.alarms import Scheduled, harm_alarms
from analysis.evidence import Share
from analysis.gates import evaluate
from analysis.histograms import ExplicitHistograms, OwnerHistograms
from analysis.offline import analyse
from analysis.offline_columns import Arms
from analysis.report import MetricReason, MetricResult, Topic
from analysis.untold import MOST_UNTOLD, is_too_much, shares_of, untold_of, why_untold
from reducer.vocabulary import Cohort, Gate, Metric, Verdict
from tests.analysis.durations import foretelling_baseline, lognormal_durations
from tests.analysis.periods import WARN_POLICY, warn_wave
from tests.analysis.samples import (
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
    (found,) = [each for each in results if each.figures.metric is metric]
    return found


@pytest.mark.parametrize("metric", [Metric.TOKENS, Metric.TURNS])
@pytest.mark.parametrize(
    ("treated", "control", "is_judged"),
    [
        pytest.param(0, 0, True, id="all is told"),
        pytest.param(1_000, 1_000, True, id="both leave out the hundredth part"),
        pytest.param(1_001, 0, False, id="the treated leave out one more"),
        pytest.param(0, 1_001, False, id="the reference leaves out one more"),
    ],
)
def test_a_metric_is_judged_until_more_than_the_hundredth_part_is_untold(
    good_owners, metric, treated, control, is_judged
):
    untold = {
        metric: {
            Cohort.ENFORCED: Share(treated, 100_000),
            Cohort.CONTROL: Share(control, 100_000),
        }
    }
    told = evaluate(wave(good_owners), POLICY).metrics
    found = evaluate(wave(good_owners, untold=untold), POLICY).metrics
    other = Metric.TURNS if metric is Metric.TOKENS else Metric.TOKENS
    assert of_metric(found, other) == of_metric(told, other)
    if is_judged:
        assert found == told
        return
    own = of_metric(found, metric)
    assert (own.verdict, own.reason) == (Verdict.NO_DATA, MetricReason.UNTOLD)
    assert (own.figures.estimate, own.figures.bound, own.figures.interval) == (None, None, None)


def test_the_sentence_names_cohort_share_and_what_is_missing(good_owners):
    shares = {Cohort.ENFORCED: Share(1_001, 100_000), Cohort.CONTROL: Share(0, 100_000)}
    evaluation = evaluate(wave(good_owners, untold={Metric.TOKENS: shares}), POLICY)
    assert of_metric(evaluation.metrics, Metric.TOKENS).sentence == TOKENS_SENTENCE
    assert evaluation.verdict is Verdict.NO_DATA
    assert evaluation.sentence == TOKENS_SENTENCE


def test_both_cohorts_are_named_by_what_they_are_called():
    shares = {Cohort.ENFORCED: Share(5, 10), Cohort.CONTROL: Share(30, 90)}
    names = {Cohort.ENFORCED: "on", Cohort.CONTROL: "off"}
    assert why_untold({Metric.TURNS: shares}, names) == {
        Metric.TURNS: "5 of 10 prompts of on (50 %) and 30 of 90 prompts of off (33.33 %) left out "
        "their turns; at most 1 % may"
    }


@given(st.integers(0, 10**7), st.integers(0, 10**7))
def test_the_limit_is_exact_however_many_prompts_there_are(one, other):
    part, whole = sorted((one, other))
    assert is_too_much(Share(part, whole)) is (100 * part > whole)
    assert float(1 - MOST_UNTOLD) == POLICY.contract_floor


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
def test_prompts_without_an_end_tell_nothing_as_far_as_one_cohort_has_more(
    enforced, control, beyond
):
    rows = pd.DataFrame(
        [("a", "enforced", *enforced, 0), ("b", "control", *control, 0)],
        columns=["owner", "cohort", "started", "ended", "tokens_untold"],
    )
    assert untold_of(rows, None, PAIR)[Metric.TOKENS] == {
        cohort: Share(more, ended + more)
        for cohort, (_, ended), more in zip(PAIR, (enforced, control), beyond, strict=True)
    }


def test_untold_prompts_are_counted_by_cohort_and_metric():
    rows = days_frame(
        ("a", "enforced", 4, 1, 0),
        ("a", "enforced", 6, 2, 1),
        ("b", "control", 9, 0, 9),
        ("c", "outside", 9, 9, 9),
    )
    assert untold_of(rows, None, PAIR) == {
        Metric.TOKENS: {Cohort.ENFORCED: Share(3, 10), Cohort.CONTROL: Share(0, 9)},
        Metric.TURNS: {Cohort.ENFORCED: Share(1, 10), Cohort.CONTROL: Share(9, 9)},
    }


def test_a_metric_of_which_nobody_told_how_much_is_missing_is_not_named():
    rows = days_frame(("a", "enforced", 4, 1, 0)).drop(columns="tokens_untold")
    assert set(untold_of(rows, None, PAIR)) == {Metric.TURNS}
    assert untold_of(rows.drop(columns="turns_untold"), None, PAIR) == {}


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
def test_a_duration_too_many_of_one_owner_makes_up_for_none_of_another(durations):
    """Of 10, 8 and 2 prompts 7, 9 and none have a duration."""
    rows = days_frame(("a", "enforced", 10, 0, 0), ("b", "enforced", 8, 0, 0), ("c", "x", 2, 0, 0))
    assert shares_of(rows, durations)[Metric.LATENCY_P95] == Share(5, 20)


def test_latency_without_enough_durations_is_no_data(good_owners):
    owners, slow = good_owners, 1.6
    durations = lognormal_durations(owners, scale=7, treated_times=slow)
    told = evaluate(wave(owners, durations=durations), WITH_LATENCY)
    assert of_metric(told.metrics, Metric.LATENCY_P95).verdict is Verdict.BEYOND
    rows = owners.assign(ended=owners["started"])
    fast = _faster_half(durations)
    untold = untold_of(rows, fast, PAIR)
    hidden = evaluate(wave(owners, durations=fast, untold=untold), WITH_LATENCY)
    found = of_metric(hidden.metrics, Metric.LATENCY_P95)
    assert (found.verdict, found.reason) == (Verdict.NO_DATA, MetricReason.UNTOLD)
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
        pytest.param(0, True, id="all is told"),
        pytest.param(1, False, id="one of about sixty a day"),
    ],
)
def test_a_frame_says_what_its_prompts_left_out_or_its_caller_vouches(left_out, is_judged):
    week = over_days(simulated_totals(treated=100, control=900), 7)
    week = week.assign(ended=week["started"])
    if left_out is not None:
        week = week.assign(tokens_untold=left_out)
    found = analysis.evaluate(week, POLICY, days=DAYS).metrics
    reasons = {each.figures.metric for each in found if each.reason is MetricReason.UNTOLD}
    assert reasons == (set() if is_judged else {Metric.TOKENS})


def test_more_untold_than_ended_is_refused_by_column_row_and_value():
    week = over_days(simulated_totals(treated=2, control=2), 1).assign(ended=1, turns_untold=2)
    with pytest.raises(ValueError, match=r"turns_untold.*exceeds the prompts ended, 1"):
        analysis.evaluate(week, POLICY, days=DAYS[:1])


def test_days_before_that_left_a_metric_out_take_no_noise_off_it(good_owners):
    before = foretelling_baseline(simulated_totals(treated=200, control=1800, seed=8))
    why = "9 of 10 prompts before the wave (90 %) left out their tokens"
    untold = dataclasses.replace(before, untold={Metric.TOKENS: why})
    found = evaluate(wave(good_owners, baseline=untold), POLICY).metrics
    tokens, turns = (of_metric(found, each).figures for each in (Metric.TOKENS, Metric.TURNS))
    assert (tokens.cuped, tokens.without_cuped) == (None, why)
    assert turns.cuped is not None
    plain = evaluate(wave(good_owners), POLICY).metrics
    assert tokens.interval == of_metric(plain, Metric.TOKENS).figures.interval


def test_days_before_that_left_durations_out_take_no_noise_off_latency(good_owners):
    durations = lognormal_durations(good_owners, scale=7)
    before = dataclasses.replace(foretelling_baseline(good_owners), durations=durations)
    evidence = wave(good_owners, durations=durations, baseline=before)
    found = of_metric(evaluate(evidence, WITH_LATENCY).metrics, Metric.LATENCY_P95)
    assert found.figures.cuped is not None
    untold = dataclasses.replace(before, untold={Metric.LATENCY_P95: "most left it out"})
    evidence = dataclasses.replace(evidence, baseline=untold)
    found = of_metric(evaluate(evidence, WITH_LATENCY).metrics, Metric.LATENCY_P95)
    assert (found.figures.cuped, found.figures.without_cuped) == (None, "most left it out")


@pytest.mark.parametrize("is_before", [True, False], ids=["before", "in the wave"])
def test_notes_about_the_days_before_compare_nothing_that_was_left_out(good_owners, is_before):
    durations = lognormal_durations(good_owners, scale=5)
    before = dataclasses.replace(foretelling_baseline(good_owners), durations=durations)
    lacking = {Metric.TOKENS, Metric.LATENCY_P95} if is_before else {Metric.TOKENS}
    shares = dict.fromkeys(PAIR, Share(5, 10))
    evidence = wave(
        good_owners,
        durations=durations,
        baseline=dataclasses.replace(
            before, untold=dict.fromkeys(lacking if is_before else (), "")
        ),
        untold={} if is_before else {Metric.TOKENS: shares},
    )
    notes = {note.topic: set(note.numbers) for note in evaluate(evidence, POLICY).notes}
    told = {f"p_{metric}" for metric in Metric} - {f"p_{metric}" for metric in lacking}
    moved = told - {f"p_{Metric.LATENCY_P95}"}
    assert notes[Topic.CONTROL_MOVED] == moved
    balanced = told if is_before else {f"p_{metric}" for metric in Metric}
    assert notes[Topic.BASELINE_BALANCE] == balanced


@pytest.mark.parametrize("is_before", [True, False], ids=["before", "after"])
def test_before_and_after_compare_no_metric_that_either_left_out(is_before):
    evidence = warn_wave()
    assert evidence.baseline is not None
    if is_before:
        why = {Metric.DISRUPTION: "most left it out"}
        baseline = dataclasses.replace(evidence.baseline, untold=why)
        evidence = dataclasses.replace(evidence, baseline=baseline)
    else:
        shares = {Cohort.WARNED: Share(5, 10), Cohort.HOLDBACK: Share(0, 0)}
        evidence = dataclasses.replace(evidence, untold={Metric.TOKENS: shares})
    margins = {Gate.WARN: {Metric.DISRUPTION: 0.005, Metric.TOKENS: 1.10}}
    found = evaluate(evidence, dataclasses.replace(WARN_POLICY, margins=margins)).metrics
    lacking = {each.figures.metric for each in found if each.reason is MetricReason.UNTOLD}
    assert lacking == {Metric.DISRUPTION if is_before else Metric.TOKENS}


def test_a_look_that_cannot_see_one_metric_still_sees_the_others():
    harmed = simulated_totals(treated=200, control=1800, harm=0.06)
    harmed["tokens"] *= np.where(harmed["cohort"] == "enforced", 2, 1)

    def look(untold):
        alarms = harm_alarms(
            harmed, PAIR, ENFORCE_MARGINS, policy=NO_MINIMUM, looks=Scheduled(7), untold=untold
        )
        return {alarm.metric: alarm for alarm in alarms}

    seen, blind = look({}), look({Metric.TOKENS: "most left out their tokens"})
    assert seen[Metric.TOKENS].is_raised
    tokens = blind[Metric.TOKENS]
    assert (tokens.is_raised, tokens.is_untold, tokens.estimate) == (False, True, None)
    assert tokens.sentence == "No data about tokens: most left out their tokens."
    assert blind[Metric.COMPLETION] == seen[Metric.COMPLETION]
    assert blind[Metric.COMPLETION].is_raised


def owners_file(**columns: str) -> pd.DataFrame:
    """Return a reference file with columns more: "*" is one of each owner's prompts, "all" all."""
    table = pd.read_csv(REFERENCES / "dev-1-lognormal-aa.csv", dtype=str, keep_default_na=False)
    one = np.where(table["prompts"] == "0", "0", "1")
    for name, text in columns.items():
        if text == "*":
            table[name] = one
        else:
            table[name] = table["prompts"] if text == "all" else text
    return table


def without_the_slowest(file: pd.DataFrame) -> pd.DataFrame:
    cut = [" ".join(told.split()[:-1]) for told in file["latency_hist"]]
    return file.assign(latency_hist=cut)


@pytest.mark.parametrize(
    ("file", "lacking"),
    [
        pytest.param(owners_file(), set(), id="a file that does not say vouches"),
        pytest.param(
            owners_file(tokens_untold="0", turns_untold="0"), set(), id="a file that told all"
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
def test_a_file_of_owners_is_held_to_the_same(file, lacking):
    result = analyse(file, Arms("enforce", "warn"), WITH_LATENCY)
    found = {each.figures.metric for each in result.metrics if each.reason is MetricReason.UNTOLD}
    assert (found, result.remarks) == (lacking, ())


def test_the_sentence_about_a_file_has_its_own_words_for_the_arms():
    file = owners_file(tokens_untold="*")
    result = analyse(file, Arms("enforce", "warn"), POLICY)
    sentence = of_metric(result.metrics, Metric.TOKENS).sentence
    assert " prompts of enforce (" in sentence
    assert " prompts of warn (" in sentence


def test_more_ended_than_prompts_is_refused():
    with pytest.raises(ValueError, match=r"column 'ended', row 0: '9999999' exceeds prompts"):
        analyse(owners_file(ended="9999999"), Arms("enforce", "warn"), POLICY)
