"""The sentences of an evaluation: what was seen, how bad it may be, and what was asked for."""

from collections.abc import Sequence

from analysis.report import Check, CheckResult, Figures, MetricResult
from reducer.vocabulary import Metric, Verdict

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
    apart = effect(figures.metric, figures.estimate, figures.margin)
    if figures.metric is Metric.LATENCY_P95:
        return f"{label(figures.metric)} {treated} v {reference}, {apart}"
    if figures.metric.is_ratio:
        return f"{label(figures.metric)} {treated} v {reference} per prompt, {apart}"
    return f"{label(figures.metric)} {treated} v {reference}, difference {apart}"


def interval(figures: Figures) -> str:
    """Say the reported interval."""
    known = figures.interval
    if known is None:
        return "interval unknown"
    low = effect(figures.metric, known.low, figures.margin, has_unit=False)
    high = effect(figures.metric, known.high, figures.margin)
    return f"{known.level * 100:g} % interval {low} to {high}"


def worst(figures: Figures) -> str:
    """Say how bad the official bound lets it be, and the margin."""
    margin = _margin(figures)
    if figures.bound is None:
        return f"no bound can be given; margin {margin}"
    direction = "low" if figures.metric.is_higher_better else "high"
    bound = effect(figures.metric, figures.bound, figures.margin)
    return f"could be as {direction} as {bound}; margin {margin}"


def shown_beyond(figures: Figures) -> str:
    """Say that the harm was shown to be more than the margin."""
    tested = _margin(figures)
    if figures.tested_margin not in (None, figures.margin):
        tested = f"{figures.tested_margin:.4f} times, the nearest at a bucket's edge"
    return f"{interval(figures)}; shown to be worse than the margin of {tested}"


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


def effect(
    metric: Metric, value: float | None, margin: float | None, *, has_unit: bool = True
) -> str:
    """Write an effect with as many digits as tell it from the margin, at most six."""
    if value is None:
        return "unknown"
    scale, digits, unit = (1.0, 2, " times") if metric.is_ratio else (100.0, 1, " pp")
    if margin is not None and value != margin:
        while digits < 6 and round(scale * value, digits) == round(scale * margin, digits):
            digits += 1
    # Adding zero turns a rounded -0.0 into 0.0.
    return f"{round(scale * value, digits) + 0.0:.{digits}f}{unit if has_unit else ''}"


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
        bound = effect(figures.metric, figures.bound, figures.margin)
        parts.append(f"{label(figures.metric)} at worst {bound} (margin {_margin(figures)})")
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
        return f"{figures.margin:.2f} times"
    return f"{100.0 * figures.margin:g} pp"
