"""Before/after study: how a common shift of the period fools the comparison, as a table.

Every owner is warned and compared with itself a week before, as in a warn wave without holdback. In
the warn week a shift affects everybody and has nothing to do with the guard. Beside it stands the
test of a wave that holds a fifth of the owners back: the shift affects both cohorts, so it does not
change the comparison. The metric is disruption, with a margin of 0.5 pp.
"""

import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import numpy as np  # path first

from benchmarks.proof.outcomes import MARGINS
from benchmarks.proof.owners import Floats, Owners, Rate, Sizes, draw_owners
from guardwave.analysis.frames.owner_totals import Outcomes
from guardwave.analysis.inference import injection
from guardwave.analysis.inference.cohorts import Paired, paired_contrast
from guardwave.analysis.inference.injection import ThinnedRate
from guardwave.analysis.inference.rerandomisation import DrawKey, Draws, Rerandomisation
from guardwave.reducer.vocabulary import Metric

SEED = 20_261_201
OWNERS = 1_000
WAVES = 1_000
WARNED = 0.8
PERMUTATIONS = 499
ALPHA = 0.05
MARGIN = MARGINS[Rate.DISRUPTION]
SHIFTS = (-0.006, -0.004, -0.002, 0.0, 0.002, 0.004)


class Passed(NamedTuple):
    """Whether a wave passed before and after, and against the owners held back."""

    before_after: bool
    holdback: bool


def main() -> None:
    """Simulate and print the table."""
    print(
        f"{WAVES:,} waves of {OWNERS:,} owners (lognormal sizes), seed {SEED}; percent that pass.\n"
    )
    columns = [
        f"{kind}, {harm}"
        for harm in ("harm at the margin", "no harm")
        for kind in ("before/after", "20 % held back")
    ]
    print(f"| shift of the period | {' | '.join(columns)} |")
    print(f"| ---: |{' ---: |' * len(columns)}")
    for shift in SHIFTS:
        shares = [share for harm in (MARGIN, 0.0) for share in passing_shares(shift, harm)]
        print(f"| {100 * shift:+.1f} pp | {' | '.join(f'{100 * share:.1f}' for share in shares)} |")


def passing_shares(shift: float, harm: float) -> tuple[float, float]:
    """Return the shares of waves that pass before and after, and with a holdback."""
    # The same owners for every shift and harm, so that rows differ by these alone.
    source = np.random.default_rng(SEED)
    waves = [one_wave(source, shift, harm, number) for number in range(WAVES)]
    before_after, holdback = np.array(waves).mean(axis=0)
    return float(before_after), float(holdback)


def one_wave(source: np.random.Generator, shift: float, harm: float, number: int) -> Passed:
    """Simulate one wave, once with everybody warned and once with a fifth held back."""
    owners = draw_owners(source, OWNERS, Sizes.LOGNORMAL, treated=int(WARNED * OWNERS))
    before = disrupted(source, owners.baseline.prompts, owners.baseline.rates[Rate.DISRUPTION])
    shifted = moved(owners.wave.rates[Rate.DISRUPTION], shift)
    harmed = moved(shifted, harm)
    everybody = disrupted(source, owners.wave.prompts, harmed)
    held = disrupted(source, owners.wave.prompts, shifted)
    after = np.where(owners.is_treated, everybody, held)
    return Passed(
        passes_before_after(owners, everybody, before), passes_holdback(owners, after, number)
    )


def moved(rates: Floats, by: float) -> Floats:
    """Return rates whose mean differs by `by`, with each owner's rate moved in proportion."""
    mean = Rate.DISRUPTION.mean
    if by < 0.0:
        return rates * (1.0 + by / mean)
    return rates + (1.0 - rates) * by / (1.0 - mean)


def disrupted(source: np.random.Generator, prompts: Floats, rates: Floats) -> Floats:
    """Draw the disrupted prompts of every owner."""
    return source.binomial(prompts.astype(np.int64), rates).astype(np.float64)


def passes_before_after(owners: Owners, after: Floats, before: Floats) -> bool:
    """Compare every owner that was there before with itself."""
    was_there = owners.baseline.prompts > 0
    trials = owners.wave.prompts[was_there], owners.baseline.prompts[was_there]
    contrast = paired_contrast(
        Paired(after[was_there], trials[0], before[was_there], trials[1]), is_log=False
    )
    return contrast is not None and contrast.upper(1.0 - ALPHA) < MARGIN


def passes_holdback(owners: Owners, harm: Floats, number: int) -> bool:
    """Run the decision test of the warned against those held back."""
    names = tuple(f"owner-{place:06d}" for place in range(OWNERS))
    outcomes = Outcomes(names, owners.is_treated, harm, owners.wave.prompts)
    uniforms = injection.uniforms(names, Metric.DISRUPTION, wave=number)
    draws = Draws(DrawKey("proof", "warn", number))
    trial = Rerandomisation(ThinnedRate(outcomes, uniforms, None), draws)
    return trial.test(MARGIN, trial.sets(PERMUTATIONS)).p_harm <= ALPHA


if __name__ == "__main__":
    main()
