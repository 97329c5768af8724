"""Parsing a stored evaluation: by type, or an error that names the field."""

import json

import pytest

from analysis.gates import evaluate
from analysis.report import to_wire
from control_plane.queries.pages_evaluation import JsonValue, evaluation_view
from dashboards.plots import forest_plot
from reducer.vocabulary import Cohort, Metric, Verdict
from tests.analysis.samples import DATASETS, POLICY, reference_totals, wave
from tests.dashboards.samples import metric, wire


def test_an_evaluation_survives_its_way_through_json() -> None:
    view = evaluation_view(json.loads(json.dumps(wire())))

    assert view.verdict is Verdict.BEYOND
    assert view.owners[Cohort.ENFORCED] == 62
    assert [each.metric for each in view.metrics][:2] == [Metric.COMPLETION, Metric.DISRUPTION]
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
    latency = next(each for each in view.metrics if each.metric is Metric.LATENCY_P95)

    assert latency.estimate is None
    assert latency.interval is None


@pytest.mark.parametrize("dataset", DATASETS)
def test_what_analysis_stores_is_what_the_pages_read(dataset: str) -> None:
    told = to_wire(evaluate(wave(reference_totals(dataset)), POLICY))
    view = evaluation_view(json.loads(json.dumps(told)))

    assert view.sentence == told["sentence"]
    assert len(forest_plot(view).rows) == len(view.metrics)
