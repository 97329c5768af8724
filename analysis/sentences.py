"""Sentences of an evaluation: its values, how bad the truth may be, and the margin."""

from collections.abc import Sequence

from guardwave.analysis.report import Check, CheckResult, Figures, MetricResult
from guardwave.reducer import number_format
from guardwave.reducer.vocabulary import Metric, Verdict

# The edges of coarser buckets are more than 2.2 % apart, and the tested margin may be far from the
# policy's.
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


def rate(fraction: float) -> str:
    """Write a rate that cohorts are compared by: 0.9312 -> "93.12 %"."""
    return number_format.level(Metric.COMPLETION, fraction)


def values(figures: Figures, cohorts: tuple[str, str]) -> str:
    """State the values of both cohorts and their difference; there must be an estimate."""
    treated, reference = (
        f"{_level(figures.metric, side.value)} {cohort}"
        for side, cohort in zip((figures.treated, figures.reference), cohorts, strict=True)
    )
    apart = f"{effect(figures.metric, figures.estimate, figures.margin)}{_adjusted(figures)}"
    if figures.metric is Metric.LATENCY_P95:
        return f"{label(figures.metric)} {treated} v {reference}, {apart}"
    if figures.metric.is_ratio:
        return f"{label(figures.metric)} {treated} v {reference} per prompt, {apart}"
    return f"{label(figures.metric)} {treated} v {reference}, difference {apart}"


def interval(figures: Figures) -> str:
    """State the interval that the verdict agrees with, rounded outwards."""
    shown = figures.shown_interval
    if shown is None:
        return "interval unknown"
    low, high = number_format.ends(figures.metric, shown.low, shown.high, figures.margin)
    adjusted = "" if figures.cuped is None else "adjusted "
    return f"{adjusted}{shown.level * 100:g} % interval {low} to {high} {_unit(figures.metric)}"


def worst(figures: Figures) -> str:
    """State how bad the truth may be by the official bound, and the margin."""
    margin = _margin(figures)
    if figures.bound is None:
        return f"no bound can be given; margin {margin}"
    direction = "low" if figures.metric.is_higher_better else "high"
    # The estimate of latency is unadjusted, so the bound is marked instead.
    mark = ""
    if figures.cuped is not None and figures.metric is Metric.LATENCY_P95:
        mark = f" adjusted by the {figures.cuped.days} days before"
    return f"could be as {direction} as {bound(figures)}{mark}; margin {margin}"


def shown_beyond(figures: Figures) -> str:
    """State that the harm was shown to be more than the margin."""
    tested = _margin(figures)
    if figures.tested_margin not in (None, figures.margin):
        tested = f"{_tested(figures)}, the nearest at a bucket's edge"
    sentence = f"shown to be worse than the margin of {tested}"
    # The interval is a second opinion: one that reaches inside the margin would look like a doubt.
    if not _is_all_beyond(figures):
        return f"by random sets of owners {sentence}"
    return f"{interval(figures)}; {sentence}"


def bound(figures: Figures) -> str:
    """Write the official bound, rounded towards harm."""
    if figures.bound is None:
        return "unknown"
    shown = number_format.bound(figures.metric, figures.bound, figures.margin)
    return f"{shown} {_unit(figures.metric)}"


def remarks(figures: Figures) -> list[str]:
    """Return what a reader must know about the test of a metric, beside its numbers."""
    sentences = []
    if figures.cut is not None and figures.tested_margin not in (None, figures.margin):
        step = figures.cut.growth
        apart = "" if step is None else f", with edges {100.0 * (step - 1.0):.2g} % apart"
        sentences.append(f"margin tested at the bucket's edge {_tested(figures)}{apart}")
    if figures.cut is not None and (figures.cut.scale is not None) and figures.cut.scale < FINE:
        sentences.append(
            f"durations came in coarse buckets of scale {figures.cut.scale}, and scale {FINE} or "
            "finer is asked for"
        )
    return sentences


def effect(metric: Metric, value: float | None, margin: float | None) -> str:
    """Write an effect with its unit, and with enough digits to distinguish it from the margin."""
    return (
        "unknown"
        if value is None
        else f"{number_format.effect(metric, value, margin)} {_unit(metric)}"
    )


def gate(checks: Sequence[CheckResult], metrics: Sequence[MetricResult], verdict: Verdict) -> str:
    """State a gate's verdict in one sentence: the numbers that decided it, and what else failed."""
    if verdict is Verdict.WITHIN:
        return _all_within(checks, metrics)
    of_checks = [check for check in checks if check.verdict is verdict]
    of_metrics = [result for result in metrics if result.verdict is verdict]
    # People read the metrics first, so stops come after them.
    late = [check for check in of_checks if check.check is Check.STOP_CONSISTENCY and of_metrics]
    early = [check for check in of_checks if check not in late]
    if not early:
        return _with_others(of_metrics[0].sentence, _labels(of_metrics[1:], late), verdict)
    sentence = f"{LEADS[verdict]}: {_lower_first(early[0].sentence)}"
    # Before the declared days nothing is judged, so all else is unproven for that reason alone.
    if early[0].check is Check.DWELL:
        return sentence
    return _with_others(sentence, _labels(of_metrics, [*early[1:], *late]), verdict)


def listed(words: Sequence[str]) -> str:
    """Join words as in prose: "tokens, turns and completion"."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


def _labels(metrics: Sequence[MetricResult], checks: Sequence[CheckResult]) -> list[str]:
    return [
        *(label(result.figures.metric) for result in metrics),
        *(check.check.value.replace("_", " ") for check in checks),
    ]


def _with_others(sentence: str, others: Sequence[str], verdict: Verdict) -> str:
    if not others:
        return sentence
    are = "is" if len(others) == 1 else "are"
    too = {
        Verdict.UNPROVEN: "not proven either",
        Verdict.NO_DATA: "without data too",
        Verdict.INVALID: "not valid either",
    }.get(verdict, f"{verdict} too")
    return f"{sentence.removesuffix('.')}; {listed(others)} {are} {too}."


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


def _level(metric: Metric, value: float | None) -> str:
    return "nothing" if value is None else number_format.level(metric, value)


def _unit(metric: Metric) -> str:
    return "times" if metric.is_ratio else "pp"


def _margin(figures: Figures) -> str:
    if figures.margin is None:
        return "none"
    return f"{number_format.margin(figures.metric, figures.margin)} {_unit(figures.metric)}"


def _tested(figures: Figures) -> str:
    return effect(figures.metric, figures.tested_margin, figures.margin)


def _adjusted(figures: Figures) -> str:
    """State the estimate adjusted by the days before; that of latency has no ratio to state."""
    if figures.cuped is None or figures.metric is Metric.LATENCY_P95:
        return ""
    plain = effect(figures.metric, figures.estimate, figures.margin)
    adjusted = effect(figures.metric, figures.cuped.estimate, figures.margin)
    words = "the same" if adjusted == plain else adjusted
    return f" ({words} adjusted by the {figures.cuped.days} days before)"


def _is_all_beyond(figures: Figures) -> bool:
    shown, margin = figures.shown_interval, figures.tested_margin or figures.margin
    if shown is None or margin is None:
        return False
    return shown.high <= margin if figures.metric.is_higher_better else shown.low >= margin
