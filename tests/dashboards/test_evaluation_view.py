"""Parsing a stored evaluation: by type, or an error that names the field."""

import json

import pytest

from guardwave.analysis.gate.verdict import evaluate
from guardwave.analysis.report import to_wire
from guardwave.control_plane.queries.evaluation_model import JsonValue, evaluation_view
from guardwave.dashboards.plots import forest_plot
from guardwave.reducer.vocabulary import Cohort, Metric, Verdict
from tests.dashboards.samples import metric, wire
from tests.support.frames.samples import DATASETS, POLICY, reference_totals, wave


def test_an_evaluation_survives_its_way_through_json() -> None:
    view = evaluation_view(json.loads(json.dumps(wire())))

    assert view.verdict is Verdict.BEYOND
    assert view.owners[Cohort.ENFORCED] == 62
    assert [line.metric for line in view.metrics][:2] == [Metric.COMPLETION, Metric.DISRUPTION]
    assert view.days.used[0].isoformat() == "2026-11-20"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        pytest.param({"schema": 2}, "schema", id="a later schema"),
        pytest.param({"verdict": "fine"}, "verdict", id="an unknown verdict"),
        pytest.param({"metrics": [metric("joy")]}, "metrics.0.metric", id="an unknown metric"),
        pytest.param({"owners": {"bucket-b": 3}}, "owners", id="an unknown cohort"),
        pytest.param({"days": {}}, "days.declared", id="missing days"),
    ],
)
def test_an_evaluation_that_does_not_fit_is_refused_by_field(
    changes: dict[str, JsonValue], field: str
) -> None:
    with pytest.raises(ValueError, match=field):
        evaluation_view(wire(**changes))


def test_a_missing_number_stays_missing() -> None:
    view = evaluation_view(wire())
    latency = next(line for line in view.metrics if line.metric is Metric.LATENCY_P95)

    assert latency.estimate is None
    assert latency.interval is None


@pytest.mark.parametrize("dataset", DATASETS)
def test_what_analysis_stores_is_what_the_pages_read(dataset: str) -> None:
    stored = to_wire(evaluate(wave(reference_totals(dataset)), POLICY))
    view = evaluation_view(json.loads(json.dumps(stored)))

    assert view.sentence == stored["sentence"]
    assert len(forest_plot(view).rows) == len(view.metrics)
