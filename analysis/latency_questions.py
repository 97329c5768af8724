"""What latency p95 asks of the decision test: margins in buckets, and the edges that tell them."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from analysis import figures as of
from analysis import margins, sentences
from analysis.baseline import Baseline
from analysis.bounds import least_passing
from analysis.cohorts import CohortRatio, Contrast, difference
from analysis.cuped import adjusted
from analysis.frames import Outcomes
from analysis.histograms import Durations
from analysis.latency import LatencyTest, latency_test
from analysis.latency_bounds import bound_at, interval_at, is_at_least
from analysis.questions import NOTHING_LEFT, Asker, NoAnswer, has_spread, ratios
from analysis.report import Cuped, Figures, Interval, MetricReason, SlowCut
from analysis.rerandomisation import Draws, Rerandomisation


@dataclass(frozen=True, slots=True, eq=False)
class LatencyQuestion:
    """Latency ready for the test. `steps` and `upper` are numbers of buckets.

    `upper` lies half a bucket below the least shift that the CR2 interval excludes, so that it is
    below `steps` exactly when that shift is not above `steps`; and above it for an estimate that
    is not inside the margin.
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
        """Bounds are told in buckets."""
        return 1.0

    def trial(self, draws: Draws) -> Rerandomisation:
        """Return the test of latency."""
        return Rerandomisation(self.test, draws)

    def told(self, shift: float | None) -> float | None:
        """Return the ratio that a bound in buckets stands for (analysis.latency_bounds)."""
        least = None if shift is None else math.ceil(shift)
        return bound_at(self.test, least, self.steps, self.figures)


def of_durations(
    blank: Figures,
    own: Outcomes,
    durations: Durations | None,
    *,
    baseline: Baseline | None,
    asker: Asker,
) -> LatencyQuestion | NoAnswer:
    """Ask about latency p95; `own` names the owners that started a prompt, and their cohorts."""
    label = sentences.label(blank.metric)
    if durations is None:
        why = f"{label} needs the durations of prompts, and none were given"
        return NoAnswer(blank, MetricReason.NO_DURATIONS, why)
    test = latency_test(own, durations, baseline)
    pair = ratios(test.outcomes)
    treated, reference = (of.side(blank.metric, ratio) for ratio in pair)
    if None in pair:
        figures = replace(blank, treated=treated, reference=reference)
        why = f"{label} has no duration from {asker.without(pair)}"
        return NoAnswer(figures, MetricReason.EMPTY_COHORT, why)
    edges = test.percentile_edges()
    if math.isinf(max(edges)):
        why = f"{label} lies in the last bucket, which has no upper edge"
        return NoAnswer(blank, MetricReason.BUCKETS_TOO_WIDE, why)
    if min(edges) <= 0.0:
        why = f"{label} lies in a bucket whose upper edge is not above 0 ms, so there is no ratio"
        return NoAnswer(blank, MetricReason.BUCKETS_TOO_WIDE, why)
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
        return NoAnswer(figures, MetricReason.BUCKETS_TOO_WIDE, why)
    return _asked(figures, test, steps, asker)


def _asked(figures: Figures, test: LatencyTest, steps: int, asker: Asker) -> LatencyQuestion:
    alpha, cut = asker.policy.alpha, test.cut(steps)
    pair = _pair(test.at(cut))
    plain, growth = difference(*pair), test.growth_at(cut.treated)
    figures = replace(
        figures,
        degrees_of_freedom=None if plain is None else plain.degrees_of_freedom,
        standard_errors=of.standard_errors(pair),
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
    lacking = margins.shortfalls(
        figures.metric, 0.0, pair, cohorts=asker.cohorts, policy=asker.policy
    )
    return LatencyQuestion(
        figures,
        test,
        steps,
        upper,
        plain is None or plain.standard_error > 0.0,
        (*lacking, *_few_slow(pair, asker)),
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
    better = _contrast(test, steps, has_cuped=True)
    if not (has_spread(plain) and has_spread(better)):
        return (
            replace(figures, without_cuped=NOTHING_LEFT),
            replace(test, before=NOTHING_LEFT),
            high,
        )
    shifts = _shifts(test, figures, alpha, has_cuped=True)
    interval = _interval(test, shifts, steps, figures, alpha=alpha, method=of.CUPED_METHOD)
    told = Cuped(
        (better.standard_error / plain.standard_error) ** 2,
        covariates.known,
        len(covariates.trials) - covariates.known,
        covariates.days,
        better.estimate,
        better.standard_error,
        interval,
        of.harmful_end(figures.metric, interval),
    )
    return replace(figures, cuped=told), test, shifts[1]


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
    method: str = of.METHOD,
) -> Interval | None:
    return interval_at(
        test, shifts, steps, figures=figures, level=of.level_of(alpha), method=method
    )


def _contrast(test: LatencyTest, steps: int, *, has_cuped: bool) -> Contrast | None:
    """Contrast the shares of slow prompts with the reference shifted by some buckets."""
    cut = test.cut(steps)
    own = test.at(cut)
    adjustment = test.adjustment(cut) if has_cuped else None
    return difference(*_pair(own if adjustment is None else adjusted(own, adjustment)))


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


def _few_slow(pair: tuple[CohortRatio, CohortRatio], asker: Asker) -> Iterator[str]:
    """Name the first cohort that has too few slow prompts to expect to say anything of them."""
    least = asker.policy.minimum_data.expected_harm_events
    prompts = sum(ratio.trials for ratio in pair)
    share = sum(ratio.ratio * ratio.trials for ratio in pair) / prompts
    for cohort, ratio in zip(asker.cohorts, pair, strict=True):
        expected = ratio.trials * share
        if expected < least:
            yield f"{expected:.1f} slow prompts to expect in {cohort} ({least:g} needed)"
            return


def _pair(own: Outcomes) -> tuple[CohortRatio, CohortRatio]:
    treated, reference = ratios(own)
    if treated is None or reference is None:
        raise ValueError("a cohort has no owner with a duration; compare two that have one")
    return treated, reference
