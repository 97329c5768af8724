"""Waves: simulated waves of one roster after another, and the product's decision on each."""

import datetime as dt
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmarks.proof.outcomes import (
    AMOUNT_MARGIN,
    MARGINS,
    SCALE,
    SHIFT,
    Durations,
    Harm,
    Outcome,
    doses,
    joined,
    observe,
    take,
    take_doses,
)
from benchmarks.proof.owners import Owners, Rate, Sizes, draw_owners
from benchmarks.proof.tallies import Cell, Chunk, Design, Passes
from guardwave.analysis.frames.baseline import Baseline
from guardwave.analysis.frames.column_checks import Flags, Floats
from guardwave.analysis.frames.histograms import OwnerHistograms
from guardwave.analysis.frames.owner_totals import Outcomes
from guardwave.analysis.inference import injection
from guardwave.analysis.inference.cohorts import difference, log_ratio
from guardwave.analysis.inference.covariate import Adjustment, Covariates, adjusted
from guardwave.analysis.inference.injection import Experiment, ScaledAmount, ThinnedRate
from guardwave.analysis.inference.latency.shift import LatencyTest, latency_test
from guardwave.analysis.inference.metric_test import ratios
from guardwave.analysis.inference.random_sets import sums_over
from guardwave.analysis.inference.rerandomisation import DrawKey, Draws, Rerandomisation
from guardwave.reducer.vocabulary import Metric

ALPHA = 0.05
TREATED = 0.05
# On the scale of the test: a difference, the logarithm of a ratio, and a number of buckets.
HARM_MARGINS = {
    Metric.COMPLETION: MARGINS[Rate.FAILURE],
    Metric.DISRUPTION: MARGINS[Rate.DISRUPTION],
    Metric.TOKENS: math.log(AMOUNT_MARGIN),
    Metric.TURNS: math.log(AMOUNT_MARGIN),
    Metric.LATENCY_P95: float(SHIFT),
}
BASELINE_DAYS = tuple(dt.date(2026, 11, day) for day in range(2, 9))

Counts = Mapping[Cell, Passes]


@dataclass(frozen=True, slots=True)
class RosterFacts:
    """What all waves of one roster share, since no harm changes it."""

    names: tuple[str, ...]
    is_treated: Flags
    baseline: Baseline
    draws: Draws
    uniforms: Mapping[Metric, Floats]
    adjustments: Mapping[Metric, Adjustment]


def repeat(chunk: Chunk, design: Design, harms: Sequence[Harm] = tuple(Harm)) -> Counts:
    """Run one chunk and count the passes. The draws depend on chunk, seed and harms alone."""
    place = list(Sizes).index(chunk.sizes)
    source = np.random.default_rng([design.seed, chunk.owners, place, chunk.number])
    counts: dict[Cell, Passes] = {}
    for repetition in range(design.chunk_size):
        number = chunk.number * design.chunk_size + repetition
        waves = draw_waves(source, chunk.owners, chunk.sizes, number=number, harms=harms)
        for harm, facts, outcome in waves:
            for metric, has_cuped in itertools.product(HARM_MARGINS, (False, True)):
                experiment = experiment_of(metric, facts, outcome, has_cuped=has_cuped)
                trial = Rerandomisation(experiment, facts.draws)
                has_peer = harm is not Harm.AT_MARGIN and not has_cuped
                passes = judged(metric, trial, design.permutations, has_peer=has_peer)
                cell = Cell(chunk.owners, chunk.sizes, metric, has_cuped, harm)
                counts[cell] = counts.get(cell, Passes()).plus(passes)
    return counts


def draw_waves(
    source: np.random.Generator, owners: int, sizes: Sizes, *, number: int, harms: Sequence[Harm]
) -> Iterator[tuple[Harm, RosterFacts, Outcome]]:
    """Draw one roster and its waves: each harm to the treated, with the same reference."""
    treated = max(1, int(owners * TREATED))
    roster = draw_owners(source, owners, sizes, treated)
    without = doses(roster, Harm.NONE)
    before = observe(source, roster.baseline, without)
    rest = slice(treated, None)
    reference = observe(source, take(roster.wave, rest), take_doses(without, rest))
    facts = _roster_facts(before, roster.is_treated, number)
    for harm in harms:
        yield harm, facts, joined(_treated(source, roster, harm), reference)


def experiment_of(
    metric: Metric, facts: RosterFacts, outcome: Outcome, *, has_cuped: bool
) -> Experiment:
    """Return one metric of a wave, ready for the test."""
    outcomes = Outcomes(facts.names, facts.is_treated, *_harm_and_trials(metric, outcome))
    if metric is Metric.LATENCY_P95:
        baseline = facts.baseline if has_cuped else None
        return latency_test(outcomes, histograms(facts.names, outcome.durations), baseline)
    adjustment = facts.adjustments[metric] if has_cuped else None
    if metric.is_ratio:
        return ScaledAmount(outcomes, adjustment)
    return ThinnedRate(outcomes, facts.uniforms[metric], adjustment)


def judged(metric: Metric, trial: Rerandomisation, permutations: int, *, has_peer: bool) -> Passes:
    """Judge one metric of one wave by the test, the interval, and the unstudentised test."""
    passes = trial.test(HARM_MARGINS[metric], trial.sets(permutations)).p_harm <= ALPHA
    is_inside = interval_passes(metric, trial.experiment)
    plain = has_peer and unstudentised_passes(metric, trial, permutations)
    return Passes(1, passes, is_inside, passes and is_inside, plain)


def interval_passes(metric: Metric, experiment: Experiment) -> bool:
    """Whether the CR2 t bound is inside the margin; without a bound it is not."""
    margin = HARM_MARGINS[metric]
    adjustment: Adjustment | None = None
    if isinstance(experiment, LatencyTest):
        cut = experiment.cut(SHIFT)
        outcomes, adjustment = experiment.outcomes_at(cut), experiment.adjustment(cut)
        # The cuts are apart by the margin: harm of that size makes the slow shares equal.
        margin = 0.0
    else:
        assert isinstance(experiment, ScaledAmount | ThinnedRate)
        outcomes, adjustment = experiment.outcomes, experiment.adjustment
    if adjustment is not None:
        outcomes = adjusted(outcomes, adjustment)
    treated, reference = ratios(outcomes)
    if treated is None or reference is None:
        return False
    if metric in {Metric.TOKENS, Metric.TURNS}:
        is_ratio = min(treated.ratio, reference.ratio) > 0.0
        contrast = log_ratio(treated, reference) if is_ratio else None
    else:
        contrast = difference(treated, reference)
    return contrast is not None and contrast.upper(1.0 - ALPHA) < margin


def unstudentised_passes(metric: Metric, trial: Rerandomisation, permutations: int) -> bool:
    """Whether the plain difference (or ratio) of the cohorts passes over the same random sets."""
    experiment, margin = trial.experiment, HARM_MARGINS[metric]
    if isinstance(experiment, LatencyTest):
        outcomes = experiment.outcomes_at(experiment.cut(SHIFT))
        harm = outcomes.harm
    elif isinstance(experiment, ThinnedRate):
        outcomes = experiment.outcomes
        harm = injection.with_rate_margin(outcomes, margin, experiment.uniforms)
    else:
        assert isinstance(experiment, ScaledAmount)
        outcomes = experiment.outcomes
        harm = injection.with_ratio_margin(outcomes, margin)
    columns = np.column_stack([harm, outcomes.trials])
    drawn = sums_over(trial.sets(permutations), columns)
    rest = columns.sum(axis=0) - drawn
    # With the sum of both given, the ratio of the two rises whenever their difference does.
    statistics = drawn[:, 0] / drawn[:, 1] - rest[:, 0] / rest[:, 1]
    slack = 1e-9 * max(1.0, abs(float(statistics[0])))
    return float((statistics <= statistics[0] + slack).mean()) <= ALPHA


def histograms(names: tuple[str, ...], durations: Durations) -> OwnerHistograms:
    """Return simulated durations as histograms of the analysis."""
    starts = np.searchsorted(durations.owners, np.arange(len(names) + 1))
    buckets = durations.buckets.astype(np.int32)
    return OwnerHistograms(names, SCALE, starts.astype(np.int64), buckets, durations.counts)


def totals(names: tuple[str, ...], outcome: Outcome) -> pd.DataFrame:
    """Return simulated counts as owner totals without a cohort."""
    columns = {
        "started": outcome.started,
        "cancelled": outcome.cancelled,
        "completed": outcome.ended - outcome.failed,
        "disrupted": outcome.disrupted,
        "tokens": outcome.tokens,
        "turns": outcome.turns,
    }
    return pd.DataFrame({"owner": names, **columns})


def _roster_facts(before: Outcome, is_treated: Flags, number: int) -> RosterFacts:
    names = tuple(f"owner-{place:06d}" for place in range(len(is_treated)))
    frame = totals(names, before).assign(is_comparable=True)
    was_there = before.started > 0
    baseline = Baseline(frame[was_there], BASELINE_DAYS, histograms(names, before.durations))
    key = DrawKey("proof", "guard", number)
    rates = (Metric.COMPLETION, Metric.DISRUPTION)
    # A new owner has zeros, as in the product.
    adjustments = {
        metric: Adjustment.of(Covariates(*_harm_and_trials(metric, before), len(BASELINE_DAYS)))
        for metric in (*rates, Metric.TOKENS, Metric.TURNS)
    }
    uniforms = {metric: injection.uniforms(names, metric, wave=number) for metric in rates}
    return RosterFacts(names, is_treated, baseline, Draws(key), uniforms, adjustments)


def _harm_and_trials(metric: Metric, outcome: Outcome) -> tuple[Floats, Floats]:
    """Return a metric's harm and trials by owner; the harm of p95 follows from the cut."""
    match metric:
        case Metric.COMPLETION:
            return outcome.failed, outcome.ended
        case Metric.DISRUPTION:
            return outcome.disrupted, outcome.started
        case Metric.TOKENS:
            return outcome.tokens, outcome.started
        case Metric.TURNS:
            return outcome.turns, outcome.started
        case _:
            return np.zeros(len(outcome.started)), outcome.started


def _treated(source: np.random.Generator, roster: Owners, harm: Harm) -> Outcome:
    chosen = slice(0, roster.treated)
    dosed = take_doses(doses(roster, harm), chosen)
    return observe(source, take(roster.wave, chosen), dosed)
