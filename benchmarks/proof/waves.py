"""One simulated wave after another, put to the decision test of the product."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from analysis import injection
from analysis.cohorts import cohort_ratio, difference, log_ratio
from analysis.frames import Outcomes
from analysis.rerandomisation import DrawKey, Rerandomisation
from analysis.shuffles import Sets, sums_over
from benchmarks.proof.outcomes import (
    AMOUNT_MARGIN,
    MARGINS,
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
HARM_MARGINS = {
    Metric.COMPLETION: MARGINS[Rate.FAILURE],
    Metric.DISRUPTION: MARGINS[Rate.DISRUPTION],
    Metric.TOKENS: float(np.log(AMOUNT_MARGIN)),
    Metric.TURNS: float(np.log(AMOUNT_MARGIN)),
}

Counts = Mapping[Cell, Passes]


@dataclass(frozen=True, slots=True)
class Wave:
    """What one repetition observed: the wave under one harm, and the week before it."""

    outcome: Outcome
    baseline: Outcome
    treated: int
    number: int

    @property
    def names(self) -> tuple[str, ...]:
        """Owner names in the order of the counts, which is also their sorted order."""
        return tuple(f"owner-{place:06d}" for place in range(len(self.outcome.started)))

    def of(self, metric: Metric) -> Outcomes:
        """Return harm and trials of one metric."""
        seen = self.outcome
        harm, trials = {
            Metric.COMPLETION: (seen.failed, seen.ended),
            Metric.DISRUPTION: (seen.disrupted, seen.started),
            Metric.TOKENS: (seen.tokens, seen.started),
            Metric.TURNS: (seen.turns, seen.started),
        }[metric]
        is_treated = np.arange(len(trials)) < self.treated
        return Outcomes(self.names, is_treated, harm, trials)


def repeat(chunk: Chunk, design: Design) -> Counts:
    """Run one chunk and count what passed. The chunk and the seed alone decide what is drawn."""
    place = list(Sizes).index(chunk.sizes)
    source = np.random.default_rng([design.seed, chunk.owners, place, chunk.number])
    counts: dict[Cell, Passes] = {}
    for repetition in range(design.chunk_size):
        number = chunk.number * design.chunk_size + repetition
        for harm, wave in draw_waves(source, chunk.owners, chunk.sizes, number=number).items():
            for metric, has_cuped, passes in judged(wave, design.permutations, harm):
                cell = Cell(chunk.owners, chunk.sizes, metric, has_cuped, harm)
                counts[cell] = counts.get(cell, Passes()).plus(passes)
    return counts


def draw_waves(
    source: np.random.Generator, owners: int, sizes: Sizes, *, number: int
) -> dict[Harm, Wave]:
    """Draw one roster with its waves: the same owners and reference, treated under each harm."""
    treated = max(1, int(owners * TREATED))
    roster = draw_owners(source, owners, sizes, treated)
    without = doses(roster, Harm.NONE)
    baseline = observe(source, roster.baseline, without)
    rest = slice(treated, None)
    reference = observe(source, take(roster.wave, rest), take_doses(without, rest))
    return {
        harm: Wave(joined(_treated(source, roster, harm), reference), baseline, treated, number)
        for harm in Harm
    }


def _treated(source: np.random.Generator, roster: Owners, harm: Harm) -> Outcome:
    chosen = slice(0, roster.treated)
    dosed = take_doses(doses(roster, harm), chosen)
    return observe(source, take(roster.wave, chosen), dosed)


def judged(wave: Wave, permutations: int, harm: Harm) -> list[tuple[Metric, bool, Passes]]:
    """Put one wave to the test, metric by metric, with and without the week before it."""
    found = []
    sets: tuple[Sets, ...] = ()
    for metric, margin in HARM_MARGINS.items():
        trial = Rerandomisation.of(wave.of(metric), metric, DrawKey("proof", "guard", wave.number))
        sets = sets or tuple(trial.sets(permutations))
        passes = trial.test(margin, sets).p_harm <= ALPHA
        is_inside = interval_passes(trial.outcomes, metric, margin)
        plain = harm is Harm.NONE and unstudentised_passes(trial, margin, sets)
        counted = Passes(1, passes, is_inside, passes and is_inside, plain)
        found.append((metric, False, counted))
    return found


def interval_passes(own: Outcomes, metric: Metric, margin: float) -> bool:
    """Whether the CR2 t bound is inside the margin; without a bound it is not."""
    treated = cohort_ratio(own.harm[own.is_treated], own.trials[own.is_treated])
    reference = cohort_ratio(own.harm[~own.is_treated], own.trials[~own.is_treated])
    if treated is None or reference is None:
        return False
    if metric.is_ratio and min(treated.ratio, reference.ratio) <= 0.0:
        return False
    contrast = (log_ratio if metric.is_ratio else difference)(treated, reference)
    return contrast is not None and contrast.upper(1.0 - ALPHA) < margin


def unstudentised_passes(trial: Rerandomisation, margin: float, sets: Sequence[Sets]) -> bool:
    """Whether the plain difference (or log ratio) passes over the same random sets."""
    own = trial.outcomes
    if trial.metric.is_ratio:
        harm = injection.with_ratio_margin(own, margin)
    else:
        harm = injection.with_rate_margin(own, margin, trial.uniforms)
    columns = np.column_stack([harm, own.trials])
    drawn = sums_over(sets, columns)
    rest = columns.sum(axis=0) - drawn
    treated, reference = drawn[:, 0] / drawn[:, 1], rest[:, 0] / rest[:, 1]
    statistics = treated / reference if trial.metric.is_ratio else treated - reference
    return float((statistics <= statistics[0] + 1e-12).mean()) <= ALPHA
