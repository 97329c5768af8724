"""Forest plot geometry: every metric on one axis, as the share of its margin used.

0 is no difference to the reference cohort and 1 is the margin. Right is worse for every metric,
whatever its own direction. Differences map to estimate / margin, ratios to ln(ratio) / ln(margin).
"""

import math
from dataclasses import dataclass
from enum import StrEnum

from guardwave.control_plane.queries.evaluation_model import EvaluationView, MetricKind, MetricView
from guardwave.reducer.vocabulary import Verdict

DOMAIN = (-1.5, 2.25)
PLOT_LEFT, PLOT_RIGHT = 240.0, 576.0
TOP, ROW_HEIGHT, BOTTOM = 44.0, 58.0, 58.0
# An interval wholly outside the domain still shows, as a stub that ends in an arrow head.
STUB = 12.0
TICKS = ((-1.0, "\N{MINUS SIGN}1"), (0.0, "0"), (1.0, "1"), (2.0, "2"))


class Mark(StrEnum):
    """The shape of a point estimate, which shows the verdict without colour."""

    CIRCLE = "circle"
    DIAMOND = "diamond"
    SQUARE = "square"


_MARKS = {
    Verdict.WITHIN: Mark.CIRCLE,
    Verdict.UNPROVEN: Mark.DIAMOND,
    Verdict.BEYOND: Mark.SQUARE,
}


@dataclass(frozen=True, slots=True)
class Span:
    """A horizontal segment in plot units; a clipped end gets an arrow head instead of a cap."""

    left: float
    right: float
    is_clipped_left: bool
    is_clipped_right: bool


@dataclass(frozen=True, slots=True)
class Tick:
    """One labelled position on the axis."""

    x: float
    label: str


@dataclass(frozen=True, slots=True)
class ForestRow:
    """One metric at the height `y`. `mark` is None when there is nothing to draw, only words."""

    metric: MetricView
    y: float
    mark: Mark | None
    point: float | None
    interval: Span | None
    towards_harm: Span | None


@dataclass(frozen=True, slots=True)
class ForestPlot:
    """Everything a template needs to draw the plot, in the units of its view box."""

    height: float
    left: float
    right: float
    axis_top: float
    axis_bottom: float
    no_difference: float
    margin: float
    ticks: tuple[Tick, ...]
    rows: tuple[ForestRow, ...]


def share_of_margin(metric: MetricView, value: float) -> float | None:
    """Return a native value as the share of the margin used, larger being worse.

    None when the metric has no margin, or one that leaves no room (a difference of 0, a ratio
    of 1). A ratio of zero is infinitely far on the good side (or bad, by the margin's direction).
    """
    margin = metric.margin
    if margin is None:
        return None
    if metric.kind is MetricKind.DIFFERENCE:
        return None if margin == 0 else value / margin
    if margin in (0, 1):
        return None
    return _log(value) / math.log(margin)


def forest_plot(evaluation: EvaluationView) -> ForestPlot:
    """Lay out one row per metric, in the order of the evaluation."""
    rows = tuple(
        _row(metric, TOP + ROW_HEIGHT * (index + 0.5))
        for index, metric in enumerate(evaluation.metrics)
    )
    axis_bottom = TOP + ROW_HEIGHT * len(rows)
    return ForestPlot(
        height=axis_bottom + BOTTOM,
        left=PLOT_LEFT,
        right=PLOT_RIGHT,
        axis_top=TOP,
        axis_bottom=axis_bottom,
        no_difference=_x(0.0),
        margin=_x(1.0),
        ticks=tuple(Tick(_x(share), label) for share, label in TICKS),
        rows=rows,
    )


def verdict_counts(evaluation: EvaluationView) -> tuple[tuple[Verdict, int], ...]:
    """Count each verdict that occurs among the deciding metrics, worst last."""
    found = [metric.verdict for metric in evaluation.metrics if metric.verdict is not None]
    return tuple((verdict, found.count(verdict)) for verdict in Verdict if verdict in found)


def _row(metric: MetricView, y: float) -> ForestRow:
    mark = None if metric.verdict is None else _MARKS.get(metric.verdict)
    point = (
        None if metric.shown_estimate is None else share_of_margin(metric, metric.shown_estimate)
    )
    if mark is None or point is None:
        return ForestRow(metric, y, mark=None, point=None, interval=None, towards_harm=None)
    ends = None
    if metric.shown_interval is not None:
        ends = (
            share_of_margin(metric, metric.shown_interval.low),
            share_of_margin(metric, metric.shown_interval.high),
        )
    bound = None if metric.bound is None else share_of_margin(metric, metric.bound)
    return ForestRow(
        metric,
        y,
        mark=mark,
        point=_x(point) if DOMAIN[0] <= point <= DOMAIN[1] else None,
        interval=_span(*ends) if ends else None,
        towards_harm=_span(point, bound) if bound is not None and bound > point else None,
    )


def _span(one: float | None, other: float | None) -> Span | None:
    if one is None or other is None:
        return None
    low, high = sorted((one, other))
    left, right = _x(low), _x(high)
    if left == right == PLOT_LEFT:
        right += STUB
    elif left == right == PLOT_RIGHT:
        left -= STUB
    return Span(left, right, low < DOMAIN[0], high > DOMAIN[1])


def _x(share: float) -> float:
    low, high = DOMAIN
    clipped = min(max(share, low), high)
    return round(PLOT_LEFT + (clipped - low) / (high - low) * (PLOT_RIGHT - PLOT_LEFT), 2)


def _log(ratio: float) -> float:
    return math.log(ratio) if ratio > 0 else -math.inf
