"""One simulated wave after another, put to the decision test of the product."""

import datetime as dt
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis import injection
from analysis.baseline import Baseline
from analysis.cohorts import cohort_ratio, difference, log_ratio
from analysis.cuped import Adjustment, Covariates, adjusted
from analysis.experiments import Experiment, ScaledAmount, ThinnedRate
from analysis.frames import Flags, Floats, Outcomes
from analysis.histograms import OwnerHistograms
from analysis.latency import LatencyTest, latency_test
from analysis.rerandomisation import DrawKey, Draws, Rerandomisation
from analysis.shuffles import sums_over
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
from reducer.vocabulary import Metric

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
class Known:
    """What the waves of one roster share, whatever the guard does: all that a harm leaves alone."""

    names: tuple[str, ...]
    is_treated: Flags
    baseline: Baseline
    draws: Draws
    uniforms: Mapping[Metric, Floats]
    adjustments: Mapping[Metric, Adjustment]


def repeat(chunk: Chunk, design: Design, harms: Sequence[Harm] = tuple(Harm)) -> Counts:
    """Run one chunk and count what passed. Chunk, seed and harms alone decide what is drawn."""
    place = list(Sizes).index(chunk.sizes)
    source = np.random.default_rng([design.seed, chunk.owners, place, chunk.number])
    counts: dict[Cell, Passes] = {}
    for repetition in range(design.chunk_size):
        number = chunk.number * design.chunk_size + repetition
        waves = draw_waves(source, chunk.owners, chunk.sizes, number=number, harms=harms)
        for harm, known, outcome in waves:
            for metric, has_cuped in itertools.product(HARM_MARGINS, (False, True)):
                experiment = experiment_of(metric, known, outcome, has_cuped=has_cuped)
                trial = Rerandomisation(experiment, known.draws)
                has_peer = harm is not Harm.AT_MARGIN and not has_cuped
                passes = judged(metric, trial, design.permutations, has_peer=has_peer)
                cell = Cell(chunk.owners, chunk.sizes, metric, has_cuped, harm)
                counts[cell] = counts.get(cell, Passes()).plus(passes)
    return counts


def draw_waves(
    source: np.random.Generator, owners: int, sizes: Sizes, *, number: int, harms: Sequence[Harm]
) -> Iterator[tuple[Harm, Known, Outcome]]:
    """Draw one roster and its waves: the same owners and reference, treated under each harm."""
    treated = max(1, int(owners * TREATED))
    roster = draw_owners(source, owners, sizes, treated)
    without = doses(roster, Harm.NONE)
    before = observe(source, roster.baseline, without)
    rest = slice(treated, None)
    reference = observe(source, take(roster.wave, rest), take_doses(without, rest))
    known = _known(before, roster.is_treated, number)
    for harm in harms:
        yield harm, known, joined(_treated(source, roster, harm), reference)


def experiment_of(metric: Metric, known: Known, seen: Outcome, *, has_cuped: bool) -> Experiment:
    """Return one metric of a wave as the test takes it."""
    own = Outcomes(known.names, known.is_treated, *_harm_and_trials(metric, seen))
    if metric is Metric.LATENCY_P95:
        baseline = known.baseline if has_cuped else None
        return latency_test(own, histograms(known.names, seen.durations), baseline)
    adjustment = known.adjustments[metric] if has_cuped else None
    if metric.is_ratio:
        return ScaledAmount(own, adjustment)
    return ThinnedRate(own, known.uniforms[metric], adjustment)


def judged(metric: Metric, trial: Rerandomisation, permutations: int, *, has_peer: bool) -> Passes:
    """Put one metric of one wave to the test, to the interval, and to the unstudentised test."""
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
        own, adjustment = experiment.at(cut), experiment.adjustment(cut)
        # Slower than the cut as often as the reference is slower than the cut less the margin.
        margin = 0.0
    else:
        assert isinstance(experiment, ScaledAmount | ThinnedRate)
        own, adjustment = experiment.outcomes, experiment.adjustment
    if adjustment is not None:
        own = adjusted(own, adjustment)
    treated = cohort_ratio(own.harm[own.is_treated], own.trials[own.is_treated])
    reference = cohort_ratio(own.harm[~own.is_treated], own.trials[~own.is_treated])
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
        own = experiment.at(experiment.cut(SHIFT))
        harm = own.harm
    elif isinstance(experiment, ThinnedRate):
        own = experiment.outcomes
        harm = injection.with_rate_margin(own, margin, experiment.uniforms)
    else:
        assert isinstance(experiment, ScaledAmount)
        own = experiment.outcomes
        harm = injection.with_ratio_margin(own, margin)
    columns = np.column_stack([harm, own.trials])
    drawn = sums_over(trial.sets(permutations), columns)
    rest = columns.sum(axis=0) - drawn
    # With the sum of both given, the ratio of the two rises whenever their difference does.
    statistics = drawn[:, 0] / drawn[:, 1] - rest[:, 0] / rest[:, 1]
    slack = 1e-9 * max(1.0, abs(float(statistics[0])))
    return float((statistics <= statistics[0] + slack).mean()) <= ALPHA


def histograms(names: tuple[str, ...], durations: Durations) -> OwnerHistograms:
    """Return simulated durations as the analysis takes them."""
    starts = np.searchsorted(durations.owners, np.arange(len(names) + 1))
    buckets = durations.buckets.astype(np.int32)
    return OwnerHistograms(names, SCALE, starts.astype(np.int64), buckets, durations.counts)


def totals(names: tuple[str, ...], seen: Outcome) -> pd.DataFrame:
    """Return simulated counts as owner totals without a cohort."""
    columns = {
        "started": seen.started,
        "cancelled": seen.cancelled,
        "completed": seen.ended - seen.failed,
        "disrupted": seen.disrupted,
        "tokens": seen.tokens,
        "turns": seen.turns,
    }
    return pd.DataFrame({"owner": names, **columns})


def _known(before: Outcome, is_treated: Flags, number: int) -> Known:
    names = tuple(f"owner-{place:06d}" for place in range(len(is_treated)))
    frame = totals(names, before).assign(is_comparable=True)
    was_there = before.started > 0
    baseline = Baseline(frame[was_there], BASELINE_DAYS, histograms(names, before.durations))
    key = DrawKey("proof", "guard", number)
    rates = (Metric.COMPLETION, Metric.DISRUPTION)
    # An owner that was not there has zeros, which is what stands for a new one.
    adjustments = {
        metric: Adjustment.of(Covariates(*_harm_and_trials(metric, before), len(BASELINE_DAYS)))
        for metric in (*rates, Metric.TOKENS, Metric.TURNS)
    }
    uniforms = {metric: injection.uniforms(names, metric, wave=number) for metric in rates}
    return Known(names, is_treated, baseline, Draws(key), uniforms, adjustments)


def _harm_and_trials(metric: Metric, seen: Outcome) -> tuple[Floats, Floats]:
    """Return a metric's harm and trials by owner; of p95 the cut makes the harm."""
    match metric:
        case Metric.COMPLETION:
            return seen.failed, seen.ended
        case Metric.DISRUPTION:
            return seen.disrupted, seen.started
        case Metric.TOKENS:
            return seen.tokens, seen.started
        case Metric.TURNS:
            return seen.turns, seen.started
        case _:
            return np.zeros(len(seen.started)), seen.started


def _treated(source: np.random.Generator, roster: Owners, harm: Harm) -> Outcome:
    chosen = slice(0, roster.treated)
    dosed = take_doses(doses(roster, harm), chosen)
    return observe(source, take(roster.wave, chosen), dosed)
