"""Metamorphic laws of a verdict over counts, durations and the days before the wave."""

import dataclasses
import datetime as dt
from typing import NamedTuple

import numpy as np
import orjson
import pandas as pd
import pytest

from guardwave.analysis.frames.baseline import Baseline
from guardwave.analysis.frames.histograms import OwnerHistograms
from guardwave.analysis.frames.owner_totals import COUNTS, GUARD_COUNTS, checked_totals
from guardwave.analysis.gate.comparison import Judge
from guardwave.analysis.gate.verdict import evaluate
from guardwave.analysis.inference.rerandomisation import DrawKey
from guardwave.analysis.report import Figures, MetricResult, to_wire
from guardwave.reducer.vocabulary import Cohort, Gate, Metric
from tests.support.frames.samples import ENFORCE_MARGINS, NO_MINIMUM, PAIR, wave

MARGINS = {**ENFORCE_MARGINS, Metric.LATENCY_P95: 1.10}
POLICY = dataclasses.replace(
    NO_MINIMUM, margins={Gate.ENFORCE: MARGINS}, permutations=199, refined_permutations=199
)
WEEK = tuple(dt.date(2026, 11, day) for day in range(2, 9))
SCALE = 7


class Seen(NamedTuple):
    """A wave's owners with their durations, and the same of the week before it."""

    owners: pd.DataFrame
    durations: pd.DataFrame
    before: pd.DataFrame
    durations_before: pd.DataFrame


def observed(seed: int, *, treated: int = 12, reference: int = 60) -> Seen:
    """Return owners that differ in size, rates and speed, most of whom were there before."""
    source = np.random.default_rng(seed)
    count = treated + reference
    names = [f"owner-{place:03d}" for place in source.permutation(count)]
    rates, speeds = source.beta(1.0, 12.0, count), source.lognormal(0.0, 0.3, count)
    weeks = [_week(source, names, rates, speeds) for _ in range(2)]
    owners, durations = weeks[0]
    before, durations_before = weeks[1]
    was_there = before["owner"].isin(source.choice(names, count - 5, replace=False))
    before = before[was_there].assign(is_comparable=source.random(count - 5) < 0.9)
    durations_before = durations_before[durations_before["owner"].isin(before["owner"])]
    cohorts = ["enforced" if place < treated else "control" for place in range(count)]
    return Seen(owners.assign(cohort=cohorts), durations, before, durations_before)


def _week(source, names, rates, speeds) -> tuple[pd.DataFrame, pd.DataFrame]:
    started = source.integers(5, 60, len(names))
    cancelled = source.binomial(started, 0.05)
    counts = {
        "started": started,
        "cancelled": cancelled,
        "completed": source.binomial(started - cancelled, 1.0 - rates),
        "disrupted": source.binomial(started, rates / 3.0),
        "tokens": started * source.integers(5_000, 20_000, len(names)),
        "turns": started * source.integers(2, 9, len(names)),
    }
    calls = pd.DataFrame({"owner": np.repeat(names, started), "count": 1})
    seconds = np.repeat(speeds, started) * source.lognormal(2.0, 0.8, len(calls))
    calls["bucket"] = np.floor(np.log2(1_000.0 * seconds) * 2.0**SCALE).astype(int)
    return pd.DataFrame({"owner": names, **counts}), calls[["owner", "bucket", "count"]]


def verdict_on(seen: Seen) -> bytes:
    """Return the whole evaluation as the bytes that are stored."""
    evaluation = evaluate(
        wave(
            seen.owners,
            guard_totals=guard_totals_of(seen.owners),
            durations=OwnerHistograms.of(seen.durations, SCALE),
            baseline=baseline_of(seen),
        ),
        POLICY,
    )
    return orjson.dumps(to_wire(evaluation), option=orjson.OPT_SORT_KEYS)


def guard_totals_of(owners: pd.DataFrame) -> pd.DataFrame:
    """Return stops that follow from an owner's own counts alone."""
    stops = owners["started"] // 20
    return pd.DataFrame({"owner": owners["owner"], **dict.fromkeys(GUARD_COUNTS, stops)})


def baseline_of(seen: Seen) -> Baseline:
    return Baseline(seen.before, WEEK, OwnerHistograms.of(seen.durations_before, SCALE))


def metrics_of(
    seen: Seen, *, cohorts: tuple[Cohort, Cohort] = PAIR, permutations: int = 199
) -> dict[Metric, MetricResult]:
    policy = dataclasses.replace(POLICY, permutations=permutations)
    judge = Judge(cohorts, DrawKey("internal", "guard", 3), policy, is_look_due=True)
    totals, durations = checked_totals(seen.owners), OwnerHistograms.of(seen.durations, SCALE)
    baseline = baseline_of(seen)
    return {
        metric: judge.compare(totals, metric, margin, durations=durations, baseline=baseline)
        for metric, margin in MARGINS.items()
    }


several = pytest.mark.parametrize("seed", [3, 14, 159])


def test_the_sample_has_p95_and_cuped_in_it():
    """Without them the laws below would prove less than they seem to."""
    found = metrics_of(observed(1))
    assert all(result.figures.cuped is not None for result in found.values())
    assert found[Metric.LATENCY_P95].figures.cut is not None
    assert all(result.figures.p_harm_at_margin is not None for result in found.values())


@several
def test_the_order_of_any_rows_changes_no_byte(seed):
    seen = observed(seed)
    shuffled = Seen(*(frame.sample(frac=1.0, random_state=seed) for frame in seen))
    assert verdict_on(shuffled) == verdict_on(seen)


@several
def test_the_split_of_durations_over_days_changes_no_byte(seed):
    seen = observed(seed)
    first = np.random.default_rng(seed).binomial(3 * seen.durations["count"], 0.4)
    tripled = seen._replace(durations=seen.durations.assign(count=3 * seen.durations["count"]))
    split = [seen.durations.assign(count=part) for part in (first, 3 - first)]
    assert verdict_on(seen._replace(durations=pd.concat(split))) == verdict_on(tripled)


@pytest.mark.parametrize("cohort", [Cohort.OUTSIDE, Cohort.INELIGIBLE, Cohort.EVERYONE], ids=str)
def test_owners_who_are_not_compared_change_no_byte(cohort):
    seen, others = observed(3), observed(4)
    added = [frame.assign(owner=frame["owner"] + "-other") for frame in others]
    added[0] = added[0].assign(cohort=cohort.value)
    both = Seen(*(pd.concat(pair) for pair in zip(seen, added, strict=True)))
    assert verdict_on(both) == verdict_on(seen)


@several
def test_other_names_leave_estimates_and_errors_as_they_are(seed):
    seen = observed(seed)
    here, there = metrics_of(seen), metrics_of(renamed(seen, seed))
    for metric, result in here.items():
        old, new = result.figures, there[metric].figures
        assert shown(new) == pytest.approx(shown(old), rel=1e-9)
        assert old.cuped is not None
        assert new.cuped is not None
        assert new.cuped.variance_ratio == pytest.approx(old.cuped.variance_ratio, rel=1e-9)


def shown(figures: Figures) -> list[float]:
    """Return the numbers of a metric that do not depend on random sets; p95 has no error."""
    numbers = [figures.estimate, figures.standard_error, figures.degrees_of_freedom]
    numbers += [figures.tested_margin, None if figures.cuped is None else figures.cuped.estimate]
    return [number for number in numbers if number is not None]


def renamed(seen: Seen, seed: int) -> Seen:
    """Give every owner a name that also sorts differently."""
    names = sorted(seen.owners["owner"])
    others = [f"other-{place:03d}" for place in np.random.default_rng(seed).permutation(len(names))]
    of = dict(zip(names, others, strict=True))
    return Seen(*(frame.assign(owner=frame["owner"].map(of)) for frame in seen))


@pytest.mark.parametrize("metric", [Metric.TOKENS, Metric.TURNS, Metric.LATENCY_P95], ids=str)
def test_other_names_change_p_by_no_more_than_the_random_sets_do(metric):
    """These metrics inject nothing at random, so p differs by at most 5 Monte Carlo errors."""
    sets = 1_999
    seen = observed(11)
    p = metrics_of(seen, permutations=sets)[metric].figures.p_harm_at_margin
    assert p is not None
    for seed in range(3):
        other = metrics_of(renamed(seen, seed), permutations=sets)[metric].figures.p_harm_at_margin
        assert other is not None
        assert abs(other - p) <= 5.0 * np.sqrt(2.0 * max(p * (1.0 - p), 1.0 / sets) / sets)


@several
def test_twice_of_everything_leaves_every_estimate(seed):
    seen = observed(seed)
    counts = {name: list(COUNTS) for name in ("owners", "before")}
    counts |= {name: ["count"] for name in ("durations", "durations_before")}
    doubled = Seen(
        *(
            frame.assign(**{column: 2 * frame[column] for column in counts[name]})
            for name, frame in seen._asdict().items()
        )
    )
    once, twice = metrics_of(seen), metrics_of(doubled)
    for metric, result in once.items():
        old, new = result.figures, twice[metric].figures
        assert len(shown(old)) >= 3
        assert shown(new) == pytest.approx(shown(old), rel=1e-9)


@several
def test_swapped_cohorts_turn_every_estimate_around(seed):
    seen = observed(seed)
    there, back = metrics_of(seen), metrics_of(seen, cohorts=(PAIR[1], PAIR[0]))
    for metric, result in there.items():
        old, new = result.figures, back[metric].figures
        assert old.estimate is not None
        assert new.estimate == pytest.approx(turned(metric, old.estimate), rel=1e-9, abs=1e-12)
        # p95 is cut where the reference is shifted to, and so elsewhere when that is the other one.
        if metric is not Metric.LATENCY_P95:
            assert old.cuped is not None
            assert new.cuped is not None
            expected = turned(metric, old.cuped.estimate)
            assert new.cuped.estimate == pytest.approx(expected, rel=1e-9, abs=1e-12)


def turned(metric: Metric, estimate: float) -> float:
    return 1.0 / estimate if metric.is_ratio else -estimate


@several
def test_only_cancelled_prompts_more_change_nothing_about_completion(seed):
    seen = observed(seed)
    extra = np.random.default_rng(seed).integers(0, 200, len(seen.owners))
    frame = seen.owners
    cancelled = frame.assign(started=frame["started"] + extra, cancelled=frame["cancelled"] + extra)
    after = metrics_of(seen._replace(owners=cancelled))[Metric.COMPLETION]
    assert after == metrics_of(seen)[Metric.COMPLETION]
