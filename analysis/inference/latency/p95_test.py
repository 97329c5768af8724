"""P95 test: latency p95, made ready for the decision test at a margin of whole buckets.

The second half turns shifts of whole buckets into ratios at edges of buckets: bound and interval.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from guardwave.analysis import sentences
from guardwave.analysis.frames import Baseline, Durations, Outcomes
from guardwave.analysis.inference import margins
from guardwave.analysis.inference.cohorts import CohortRatio, Contrast, difference
from guardwave.analysis.inference.covariate import adjusted
from guardwave.analysis.inference.figures import (
    CUPED_METHOD,
    METHOD,
    harmful_end,
    level_of,
    side_of,
    standard_errors_of,
)
from guardwave.analysis.inference.latency.shift import LatencyTest, latency_test
from guardwave.analysis.inference.metric_test import (
    NO_SPREAD_LEFT,
    ComparisonTerms,
    NoComparison,
    has_spread,
    ratios,
)
from guardwave.analysis.inference.rerandomisation import Draws, Rerandomisation, least_passing
from guardwave.analysis.report import Cuped, Figures, Interval, MetricReason, SlowCut

# Two ratios this near are the same edge, computed in two ways.
SAME_EDGE = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class P95Test:
    """Latency ready for the test. `steps` and `upper` are numbers of buckets.

    `upper` lies half a bucket below the least shift that the CR2 interval excludes, so that it is
    below `steps` exactly when that shift is at most `steps`. For an estimate that is not inside the
    margin it is above `steps`.
    """

    figures: Figures
    test: LatencyTest
    steps: int
    upper: float | None
    has_spread: bool
    shortfalls: tuple[str, ...]

    @property
    def margin(self) -> float:
        """The margin on the scale of the test: a number of buckets."""
        return float(self.steps)

    @property
    def resolution(self) -> float:
        """The resolution of bounds: one bucket."""
        return 1.0

    def trial(self, draws: Draws) -> Rerandomisation:
        """Return the test of latency."""
        return Rerandomisation(self.test, draws)

    def to_native(self, shift: float | None) -> float | None:
        """Return the ratio that a bound in buckets stands for."""
        least = None if shift is None else math.ceil(shift)
        return bound_at(self.test, least, self.steps, self.figures)


def prepare_p95_test(
    blank: Figures,
    owners: Outcomes,
    durations: Durations | None,
    *,
    baseline: Baseline | None,
    terms: ComparisonTerms,
) -> P95Test | NoComparison:
    """Prepare the test of latency p95; `owners` are those that started a prompt, with cohorts."""
    label = sentences.label(blank.metric)
    if durations is None:
        why = f"{label} needs the durations of prompts, and none were given"
        return NoComparison(blank, MetricReason.NO_DURATIONS, why)
    test = latency_test(owners, durations, baseline)
    pair = ratios(test.outcomes)
    treated, reference = (side_of(blank.metric, ratio) for ratio in pair)
    if None in pair:
        figures = replace(blank, treated=treated, reference=reference)
        why = f"{label} has no duration from {terms.empty_cohorts(pair)}"
        return NoComparison(figures, MetricReason.EMPTY_COHORT, why)
    edges = test.percentile_edges()
    if math.isinf(max(edges)):
        why = f"{label} lies in the last bucket, which has no upper edge"
        return NoComparison(blank, MetricReason.BUCKETS_TOO_WIDE, why)
    if min(edges) <= 0.0:
        why = f"{label} lies in a bucket whose upper edge is not above 0 ms, so there is no ratio"
        return NoComparison(blank, MetricReason.BUCKETS_TOO_WIDE, why)
    figures = replace(
        blank,
        treated=replace(treated, value=edges[0]),
        reference=replace(reference, value=edges[1]),
        estimate=edges[0] / edges[1],
    )
    steps = 0 if blank.margin is None else test.steps_within(blank.margin)
    if steps is None:
        why = (
            f"the buckets of {label} are too wide: no two edges near the 95th percentile are at "
            f"most {blank.margin:g} times apart"
        )
        return NoComparison(figures, MetricReason.BUCKETS_TOO_WIDE, why)
    return _prepare(figures, test, steps, terms)


def _prepare(figures: Figures, test: LatencyTest, steps: int, terms: ComparisonTerms) -> P95Test:
    alpha, cut = terms.policy.alpha, test.cut(steps)
    pair = _pair(test.outcomes_at(cut))
    plain, growth = difference(*pair), test.growth_at(cut.treated)
    figures = replace(
        figures,
        degrees_of_freedom=None if plain is None else plain.degrees_of_freedom,
        standard_errors=standard_errors_of(pair),
        tested_margin=None if figures.margin is None else cut.ratio,
        cut=SlowCut(
            scale=None if test.bounds else test.histograms.scale,
            growth=growth,
            treated_ms=test.edge(cut.treated),
            reference_ms=test.edge(cut.reference),
            treated=pair[0].ratio,
            reference=pair[1].ratio,
        ),
    )
    high = None
    if has_spread(plain):
        shifts = _shifts(test, figures, alpha, has_cuped=False)
        high = shifts[1]
        figures = replace(figures, interval=_interval(test, shifts, steps, figures, alpha=alpha))
    figures, test, high = _with_cuped(figures, test, steps, high, plain=plain, alpha=alpha)
    upper = None if high is None else high - 0.5
    if upper is not None and is_at_least(figures.estimate, figures.margin):
        upper = max(upper, steps + 0.5)
    shortages = margins.shortfalls(
        figures.metric, 0.0, pair, cohorts=terms.cohorts, policy=terms.policy
    )
    return P95Test(
        figures,
        test,
        steps,
        upper,
        plain is None or plain.standard_error > 0.0,
        (*shortages, *_few_slow(pair, terms)),
    )


def _with_cuped(
    figures: Figures,
    test: LatencyTest,
    steps: int,
    high: int | None,
    *,
    plain: Contrast | None,
    alpha: float,
) -> tuple[Figures, LatencyTest, int | None]:
    """Return figures, test and the least excluded shift, all three adjusted or none of them."""
    covariates = test.covariates(test.cut(steps))
    if isinstance(covariates, str):
        return replace(figures, without_cuped=covariates), test, high
    contrast = _contrast(test, steps, has_cuped=True)
    if not (has_spread(plain) and has_spread(contrast)):
        plain_figures = replace(figures, without_cuped=NO_SPREAD_LEFT)
        return plain_figures, replace(test, before=NO_SPREAD_LEFT), high
    shifts = _shifts(test, figures, alpha, has_cuped=True)
    interval = _interval(test, shifts, steps, figures, alpha=alpha, method=CUPED_METHOD)
    cuped = Cuped(
        (contrast.standard_error / plain.standard_error) ** 2,
        covariates.owners_with_baseline,
        len(covariates.trials) - covariates.owners_with_baseline,
        covariates.days,
        contrast.estimate,
        contrast.standard_error,
        interval,
        harmful_end(figures.metric, interval),
    )
    return replace(figures, cuped=cuped), test, shifts[1]


def _shifts(
    test: LatencyTest, figures: Figures, alpha: float, *, has_cuped: bool
) -> tuple[int | None, int | None]:
    """Return the least shifts below 0 at the lower and at the upper bound of their contrast."""
    growth = None if figures.cut is None else figures.cut.growth
    guess = 0 if growth is None else round(math.log(figures.estimate or 1.0) / math.log(growth))
    low, high = (
        _least_below(test, confidence, guess, has_cuped=has_cuped)
        for confidence in (alpha, 1.0 - alpha)
    )
    return low, high


def _interval(
    test: LatencyTest,
    shifts: tuple[int | None, int | None],
    steps: int,
    figures: Figures,
    *,
    alpha: float,
    method: str = METHOD,
) -> Interval | None:
    return interval_at(test, shifts, steps, figures=figures, level=level_of(alpha), method=method)


def _contrast(test: LatencyTest, steps: int, *, has_cuped: bool) -> Contrast | None:
    """Contrast the shares of slow prompts with the reference shifted by some buckets."""
    cut = test.cut(steps)
    slow = test.outcomes_at(cut)
    adjustment = test.adjustment(cut) if has_cuped else None
    return difference(*_pair(slow if adjustment is None else adjusted(slow, adjustment)))


def _least_below(
    test: LatencyTest, confidence: float, guess: int, *, has_cuped: bool
) -> int | None:
    """Return the least shift whose contrast has its bound below 0, or None without one."""

    def gap(steps: int) -> float:
        contrast = _contrast(test, steps, has_cuped=has_cuped)
        return math.nan if contrast is None else contrast.upper(confidence)

    start = gap(0)
    if math.isnan(start):
        return None
    lowest, highest = test.limits
    limits = (round(lowest), round(highest))
    return least_passing(gap, start=start, guess=guess, limits=limits)


def _few_slow(pair: tuple[CohortRatio, CohortRatio], terms: ComparisonTerms) -> Iterator[str]:
    """Name the first cohort whose expected number of slow prompts is too small."""
    least = terms.policy.minimum_data.expected_harm_events
    prompts = sum(ratio.trials for ratio in pair)
    share = sum(ratio.ratio * ratio.trials for ratio in pair) / prompts
    for cohort, ratio in zip(terms.cohorts, pair, strict=True):
        expected = ratio.trials * share
        if expected < least:
            yield f"{expected:.1f} slow prompts to expect in {cohort} ({least:g} needed)"
            return


def _pair(outcomes: Outcomes) -> tuple[CohortRatio, CohortRatio]:
    treated, reference = ratios(outcomes)
    if treated is None or reference is None:
        raise ValueError("a cohort has no owner with a duration; compare two that have one")
    return treated, reference


def ratio_at(test: LatencyTest, steps: int | None) -> float | None:
    """Return the ratio of a shift, or None where it has no edge in ms."""
    if steps is None:
        return None
    ratio = test.cut(steps).ratio
    return ratio if math.isfinite(ratio) else None


def is_at_least(ratio: float | None, margin: float | None) -> bool:
    """Whether a ratio reaches a margin; an unknown one does not."""
    return ratio is not None and margin is not None and ratio >= margin * (1.0 - SAME_EDGE)


def bound_at(test: LatencyTest, shift: int | None, steps: int, figures: Figures) -> float | None:
    """Return the bound of the least excluded shift, below the margin exactly if that is inside.

    `steps` is the tested margin. A shift of at most `steps` is inside: its own ratio is excluded,
    so where it equals the margin the bound is the next edge below. A larger shift is outside, and
    its bound is no less than the margin and the estimate.
    """
    edge, margin = ratio_at(test, shift), figures.margin
    if shift is None or margin is None:
        return edge
    if shift > steps:
        reached = [figures.estimate] if figures.estimate is not None else []
        return None if edge is None else max(edge, margin, *reached)
    tested = ratio_at(test, steps)
    inside = min((ratio for ratio in (edge, tested) if ratio is not None), default=None)
    if is_at_least(inside, margin):
        inside = ratio_at(test, shift - 1)
    if inside is None or is_at_least(inside, margin):
        return math.nextafter(margin, 0.0)
    return inside


def interval_at(
    test: LatencyTest,
    shifts: tuple[int | None, int | None],
    steps: int,
    *,
    figures: Figures,
    level: float,
    method: str,
) -> Interval | None:
    """Return the interval between two bounds, each given by its least excluded shift.

    `shifts` are the least ones whose contrast lies below 0 at its lower and at its upper bound.
    """
    low, high = shifts
    ends = [
        None if low is None else ratio_at(test, low - 1),
        bound_at(test, high, steps, figures),
    ]
    values = [end for end in (*ends, figures.estimate) if end is not None]
    if None in ends:
        return None
    return Interval(min(values), max(values), level, method)
