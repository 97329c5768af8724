"""The sentences of an evaluation: what was seen, how bad it may be, and what was asked for."""

from collections.abc import Sequence

from analysis.report import CheckResult, Figures, MetricResult
from reducer.vocabulary import Cohort, Metric, Verdict

LEADS = {
    Verdict.WITHIN: "Within",
    Verdict.UNPROVEN: "Not proven",
    Verdict.NO_DATA: "No data",
    Verdict.BEYOND: "Beyond",
    Verdict.INVALID: "Not valid",
}


def percent(fraction: float) -> str:
    """Write a fraction as a percentage: 0.931 -> "93.1 %"."""
    return f"{100.0 * fraction:.1f} %"


def share(part: int, whole: int) -> str:
    """Write a share, rounded down so that only all of it reads "100 %"."""
    return f"{part * 10_000 // whole / 100:g} %"


def label(metric: Metric) -> str:
    """Return the metric's name as words."""
    return metric.value.replace("_", " ")


def seen(figures: Figures, cohorts: tuple[Cohort, Cohort]) -> str:
    """Say what both cohorts had and how far apart they are; the figures must hold an estimate."""
    treated, reference = (
        f"{_value(figures.metric, side.value)} {cohort}"
        for side, cohort in zip((figures.treated, figures.reference), cohorts, strict=True)
    )
    apart = effect(figures.metric, figures.estimate, figures.margin)
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
    return f"{interval(figures)}; shown to be worse than the margin of {_margin(figures)}"


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
    for check in checks:
        if check.verdict is verdict:
            return f"{LEADS[verdict]}: {_lower_first(check.sentence)}"
    deciding = [result for result in metrics if result.verdict is verdict]
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
    return f"{value:,.0f}" if value >= 100.0 else f"{value:.2f}"


def _margin(figures: Figures) -> str:
    if figures.margin is None:
        return "none"
    if figures.metric.is_ratio:
        return f"{figures.margin:.2f} times"
    return f"{100.0 * figures.margin:g} pp"
