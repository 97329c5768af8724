"""The sentences of an evaluation: what was seen, how bad it may be, and what was asked for."""

from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal

from analysis.report import Check, CheckResult, Figures, MetricResult
from reducer.vocabulary import Metric, Verdict

MOST_DIGITS = 6
# A ratio may have as many places before the point as a float can say.
WIDE = Context(prec=400)
# The edges of coarser buckets are more than 2.2 % apart, and the tested margin may be far from the
# asked one.
FINE = 5
LEADS = {
    Verdict.WITHIN: "Within",
    Verdict.UNPROVEN: "Not proven",
    Verdict.NO_DATA: "No data",
    Verdict.BEYOND: "Beyond",
    Verdict.INVALID: "Not valid",
}

NO_SPREAD = "no owner differs from another, so there is no spread to make a bound of"
BEFORE_AFTER = (
    "Nobody was held back, so this compares before and after: any change of the period can fool "
    "it, no level is claimed, and a promotion on it needs a written reason."
)


def percent(fraction: float) -> str:
    """Write a fraction as a percentage: 0.931 -> "93.1 %"."""
    return f"{100.0 * fraction:.1f} %"


def share(part: int, whole: int) -> str:
    """Write a share, rounded down so that only all of it reads "100 %"."""
    return f"{part * 10_000 // whole / 100:g} %"


def label(metric: Metric) -> str:
    """Return the metric's name as words."""
    return metric.value.replace("_", " ")


def seen(figures: Figures, cohorts: tuple[str, str]) -> str:
    """Say what both cohorts had and how far apart they are; the figures must hold an estimate."""
    treated, reference = (
        f"{_value(figures.metric, side.value)} {cohort}"
        for side, cohort in zip((figures.treated, figures.reference), cohorts, strict=True)
    )
    apart = f"{effect(figures.metric, figures.estimate, figures.margin)}{_adjusted(figures)}"
    if figures.metric is Metric.LATENCY_P95:
        return f"{label(figures.metric)} {treated} v {reference}, {apart}"
    if figures.metric.is_ratio:
        return f"{label(figures.metric)} {treated} v {reference} per prompt, {apart}"
    return f"{label(figures.metric)} {treated} v {reference}, difference {apart}"


def interval(figures: Figures) -> str:
    """Say the interval that the verdict agrees with, rounded outwards."""
    known = figures.shown_interval
    if known is None:
        return "interval unknown"
    low = _written(figures, known.low, ROUND_FLOOR, has_unit=False)
    high = _written(figures, known.high, ROUND_CEILING)
    adjusted = "" if figures.cuped is None else "adjusted "
    return f"{adjusted}{known.level * 100:g} % interval {low} to {high}"


def worst(figures: Figures) -> str:
    """Say how bad the official bound lets it be, and the margin."""
    margin = _margin(figures)
    if figures.bound is None:
        return f"no bound can be given; margin {margin}"
    direction = "low" if figures.metric.is_higher_better else "high"
    return f"could be as {direction} as {bound(figures)}; margin {margin}"


def shown_beyond(figures: Figures) -> str:
    """Say that the harm was shown to be more than the margin."""
    tested = _margin(figures)
    if figures.tested_margin not in (None, figures.margin):
        tested = f"{figures.tested_margin:.4f} times, the nearest at a bucket's edge"
    said = f"shown to be worse than the margin of {tested}"
    # The interval is a second opinion: one that reaches inside the margin would read as a doubt.
    if not _is_all_beyond(figures):
        return f"by random sets of owners {said}"
    return f"{interval(figures)}; {said}"


def bound(figures: Figures) -> str:
    """Write the official bound, rounded towards harm."""
    if figures.bound is None:
        return "unknown"
    towards = ROUND_FLOOR if figures.metric.is_higher_better else ROUND_CEILING
    return _written(figures, figures.bound, towards)


def remarks(figures: Figures) -> list[str]:
    """Say what a reader must know of how a metric was tested, beside its numbers."""
    found = []
    if figures.cut is not None and figures.tested_margin not in (None, figures.margin):
        step = figures.cut.growth
        apart = "" if step is None else f", with edges {100.0 * (step - 1.0):.2g} % apart"
        found.append(f"margin tested at the bucket's edge {figures.tested_margin:.4f} times{apart}")
    if figures.cut is not None and (figures.cut.scale is not None) and figures.cut.scale < FINE:
        found.append(
            f"durations came in coarse buckets of scale {figures.cut.scale}, and scale {FINE} or "
            "finer is asked for"
        )
    if figures.cuped is not None:
        left, days = figures.cuped.variance_ratio, figures.cuped.days
        found.append(f"{days} days before the wave leave {100.0 * left:.0f} % of the variance")
    return found


def effect(metric: Metric, value: float | None, margin: float | None) -> str:
    """Write an effect with as many digits as tell it from the margin, at most six."""
    return "unknown" if value is None else _rounded(metric, value, margin, ROUND_HALF_EVEN)


def gate(checks: Sequence[CheckResult], metrics: Sequence[MetricResult], verdict: Verdict) -> str:
    """Say a gate's verdict in one sentence that names the numbers which decided it."""
    if verdict is Verdict.WITHIN:
        return _all_within(checks, metrics)
    deciding = [result for result in metrics if result.verdict is verdict]
    for check in checks:
        # Stops are asked about once the metrics are in order: they say what people came for.
        is_last = check.check is Check.STOP_CONSISTENCY and deciding
        if check.verdict is verdict and not is_last:
            return f"{LEADS[verdict]}: {_lower_first(check.sentence)}"
    first, others = deciding[0], [label(result.figures.metric) for result in deciding[1:]]
    if not others:
        return first.sentence
    are = "is" if len(others) == 1 else "are"
    alike = {
        Verdict.UNPROVEN: "not proven either",
        Verdict.NO_DATA: "without data too",
    }.get(verdict, f"{verdict} too")
    return f"{first.sentence.removesuffix('.')}; {listed(others)} {are} {alike}."


def listed(words: Sequence[str]) -> str:
    """Join words as in prose: "tokens, turns and completion"."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


def _all_within(checks: Sequence[CheckResult], metrics: Sequence[MetricResult]) -> str:
    if not metrics:
        parts = [_lower_first(check.sentence).removesuffix(".") for check in checks]
        return f"Within: {'; '.join(parts)}."
    parts = []
    for result in metrics:
        figures = result.figures
        worst_case = f"at worst {bound(figures)} (margin {_margin(figures)})"
        parts.append(f"{label(figures.metric)} {worst_case}")
    return f"Within every margin: {', '.join(parts)}."


def _lower_first(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def _value(metric: Metric, value: float | None) -> str:
    if value is None:
        return "nothing"
    if not metric.is_ratio:
        return percent(value)
    if metric is Metric.LATENCY_P95:
        return f"{value:,.0f} ms"
    return f"{value:,.0f}" if value >= 100.0 else f"{value:.2f}"


def _margin(figures: Figures) -> str:
    if figures.margin is None:
        return "none"
    if figures.metric.is_ratio:
        return f"{_places(figures.margin)} times"
    return f"{100.0 * figures.margin:g} pp"


def _places(ratio: float) -> str:
    return f"{ratio:.2f}" if round(ratio, 2) == ratio else f"{ratio:g}"


def _adjusted(figures: Figures) -> str:
    """Say the estimate without what the days before foretold; of latency it is no ratio."""
    if figures.cuped is None:
        return ""
    by = f"adjusted by the {figures.cuped.days} days before"
    if figures.metric is Metric.LATENCY_P95:
        return f" ({by} in what follows)"
    return f" ({effect(figures.metric, figures.cuped.estimate, figures.margin)} {by})"


def _is_all_beyond(figures: Figures) -> bool:
    known, margin = figures.shown_interval, figures.tested_margin or figures.margin
    if known is None or margin is None:
        return False
    return known.high <= margin if figures.metric.is_higher_better else known.low >= margin


def _written(figures: Figures, value: float, rounding: str, *, has_unit: bool = True) -> str:
    return _rounded(figures.metric, value, figures.margin, rounding, has_unit=has_unit)


def _rounded(
    metric: Metric, value: float, margin: float | None, rounding: str, *, has_unit: bool = True
) -> str:
    """Write a value with more digits where fewer would show the margin, its far side, or nothing.

    Nothing is a difference of 0 or a ratio of 1 where an end of an interval is none.
    """
    power, digits, unit = (0, 2, " times") if metric.is_ratio else (2, 1, " pp")
    exact = Decimal(repr(float(value))).scaleb(power)
    limit = None if margin is None else Decimal(repr(float(margin))).scaleb(power)
    nothing = Decimal(1 if metric.is_ratio else 0)
    while True:
        shown = exact.quantize(Decimal(1).scaleb(-digits), rounding, WIDE)
        is_told = limit is None or _side(shown, limit) == _side(exact, limit)
        if rounding != ROUND_HALF_EVEN:
            is_told = is_told and (shown != nothing or exact == nothing)
        if is_told or digits >= MOST_DIGITS:
            break
        digits += 1
    # A rounded -0.0 reads 0.0.
    return f"{shown or abs(shown):.{digits}f}{unit if has_unit else ''}"


def _side(value: Decimal, limit: Decimal) -> int:
    return (value > limit) - (value < limit)
