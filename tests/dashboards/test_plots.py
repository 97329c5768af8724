"""The forest plot's geometry: one axis, right is worse, the margin at 1."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardwave.control_plane.queries.evaluation_model import IntervalView, MetricKind, MetricView
from guardwave.dashboards.plots import DOMAIN, Mark, forest_plot, share_of_margin, verdict_counts
from guardwave.reducer.vocabulary import Metric, Verdict
from tests.dashboards.samples import evaluation

SAMPLE = evaluation()
BY_METRIC = {metric.metric: metric for metric in SAMPLE.metrics}
COMPLETION, TOKENS = BY_METRIC[Metric.COMPLETION], BY_METRIC[Metric.TOKENS]


def row_of(metric: MetricView):
    """Return the row of one metric plotted alone."""
    (row,) = forest_plot(replace(SAMPLE, metrics=(metric,))).rows
    return row


@pytest.mark.parametrize(
    ("metric", "value", "expected"),
    [
        pytest.param(COMPLETION, -0.01, 1.0, id="completion lost up to the margin"),
        pytest.param(COMPLETION, 0.005, -0.5, id="completion gained is on the good side"),
        pytest.param(BY_METRIC[Metric.DISRUPTION], 0.0025, 0.5, id="half of disruption's margin"),
        pytest.param(TOKENS, 1.0, 0.0, id="a ratio of one is no difference"),
        pytest.param(TOKENS, 1.1, 1.0, id="a ratio at the margin"),
        pytest.param(TOKENS, 1.21, 2.0, id="a ratio at the margin squared"),
        pytest.param(TOKENS, 0.0, float("-inf"), id="a ratio of zero is infinitely good"),
    ],
)
def test_the_axis_is_the_share_of_the_margin_used(
    metric: MetricView, value: float, expected: float
) -> None:
    assert share_of_margin(metric, value) == pytest.approx(expected)


@pytest.mark.parametrize(
    "metric",
    [
        pytest.param(BY_METRIC[Metric.CANCELLATION], id="no margin"),
        pytest.param(replace(COMPLETION, margin=0.0), id="a margin of zero points"),
        pytest.param(replace(TOKENS, margin=1.0), id="a margin of one times"),
    ],
)
def test_a_metric_without_room_has_no_place_on_the_axis(metric: MetricView) -> None:
    assert share_of_margin(metric, 0.5) is None


@pytest.mark.parametrize(
    ("metric", "mark"),
    [
        pytest.param(Metric.DISRUPTION, Mark.CIRCLE, id="within is a filled circle"),
        pytest.param(Metric.COMPLETION, Mark.DIAMOND, id="unproven is a hollow diamond"),
        pytest.param(Metric.TOKENS, Mark.SQUARE, id="beyond is a filled square"),
        pytest.param(Metric.LATENCY_P95, None, id="no data is words alone"),
        pytest.param(Metric.CANCELLATION, None, id="information is words alone"),
    ],
)
def test_the_shape_carries_the_verdict(metric: Metric, mark: Mark | None) -> None:
    assert row_of(BY_METRIC[metric]).mark is mark


def test_an_invalid_metric_draws_no_point_that_could_be_believed() -> None:
    assert row_of(replace(COMPLETION, verdict=Verdict.INVALID)).mark is None


def test_an_interval_that_leaves_the_plot_is_clipped_and_says_so() -> None:
    span = row_of(TOKENS).interval
    plot = forest_plot(SAMPLE)

    assert span is not None
    assert (span.is_clipped_left, span.is_clipped_right) == (False, True)
    assert span.right == plot.right


def test_an_interval_wholly_outside_leaves_a_stub_at_the_edge() -> None:
    far = replace(TOKENS, estimate=2.0, interval=IntervalView(1.8, 2.2, 0.9, "CR2 t"), bound=2.4)
    row = row_of(far)
    plot = forest_plot(SAMPLE)

    assert row.point is None
    assert row.interval is not None
    assert row.interval.left < row.interval.right == plot.right
    assert row.interval.is_clipped_right


def test_the_bound_is_drawn_from_the_estimate_towards_harm() -> None:
    row = row_of(COMPLETION)

    assert row.towards_harm is not None
    assert row.towards_harm.left == row.point
    assert row.towards_harm.right > forest_plot(SAMPLE).margin


def test_verdicts_are_counted_without_what_is_only_information() -> None:
    assert verdict_counts(SAMPLE) == (
        (Verdict.WITHIN, 2),
        (Verdict.UNPROVEN, 1),
        (Verdict.NO_DATA, 1),
        (Verdict.BEYOND, 1),
    )


def test_rows_do_not_share_a_height() -> None:
    heights = [row.y for row in forest_plot(SAMPLE).rows]

    assert heights == sorted(set(heights))


_EFFECTS = st.floats(min_value=-0.2, max_value=0.2, allow_nan=False)


@given(estimate=_EFFECTS, low=_EFFECTS, high=_EFFECTS, bound=_EFFECTS)
def test_nothing_is_drawn_outside_the_plot(
    estimate: float, low: float, high: float, bound: float
) -> None:
    low, high = sorted((low, high))
    metric = replace(
        COMPLETION, estimate=estimate, interval=IntervalView(low, high, 0.9, "CR2 t"), bound=bound
    )
    plot = forest_plot(replace(SAMPLE, metrics=(metric,)))
    (row,) = plot.rows

    for span in (row.interval, row.towards_harm):
        if span is not None:
            assert plot.left <= span.left <= span.right <= plot.right
    if row.point is not None:
        assert plot.left <= row.point <= plot.right


@given(_EFFECTS, _EFFECTS)
def test_worse_is_never_further_left(one: float, other: float) -> None:
    worse, better = sorted((one, other))
    shares = (share_of_margin(COMPLETION, better), share_of_margin(COMPLETION, worse))

    assert COMPLETION.kind is MetricKind.DIFFERENCE
    assert shares[0] is not None
    assert shares[1] is not None
    assert shares[0] <= shares[1]


def test_the_domain_shows_the_margin_and_what_lies_past_it() -> None:
    low, high = DOMAIN

    assert low < 0
    assert high > 1
