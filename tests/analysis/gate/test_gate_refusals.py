import dataclasses

import pytest

from guardwave.analysis.frames.evidence import Share
from guardwave.analysis.frames.owner_totals import COUNTS
from guardwave.analysis.gate.verdict import evaluate
from guardwave.reducer.vocabulary import Cohort, Gate, Metric
from tests.support.frames.samples import POLICY, days, simulated_totals, wave


@pytest.fixture(scope="module")
def good_owners():
    return simulated_totals(treated=200, control=1800)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({"declared_days": 0}, "declared_days is 0", id="no day declared"),
        pytest.param({"lost": -1}, "none may be negative", id="negative lost"),
        pytest.param({"days": days(2)[::-1]}, "in order", id="days out of order"),
        pytest.param({"reference": Cohort.ENFORCED}, "cannot compare enforced", id="one cohort"),
        pytest.param({"off_pin": {}}, "off_pin names no cohort", id="purity left out"),
        pytest.param(
            {"off_pin": {Cohort.ENFORCED: Share(0, 1)}},
            "off_pin names enforced; give the shares of enforced and control",
            id="purity of one cohort",
        ),
        pytest.param({"gate": Gate.SHADOW}, "shadow gate cannot compare", id="two in shadow"),
    ],
)
def test_evidence_that_contradicts_itself_is_refused(good_owners, changes, message):
    with pytest.raises(ValueError, match=message):
        wave(good_owners, **changes)


def test_a_part_larger_than_its_whole_is_refused():
    with pytest.raises(ValueError, match="not 3 of 2"):
        Share(3, 2)


@pytest.mark.parametrize(
    ("metric", "margin"),
    [
        pytest.param(Metric.COMPLETION, -0.01, id="negative difference"),
        pytest.param(Metric.COMPLETION, 1.0, id="difference of everything"),
        pytest.param(Metric.TOKENS, 0.1, id="ratio below one"),
        pytest.param(Metric.TOKENS, float("nan"), id="no number"),
        pytest.param(Metric.TOKENS, float("inf"), id="infinite"),
    ],
)
def test_an_impossible_margin_is_refused_by_name_and_value(good_owners, metric, margin):
    policy = dataclasses.replace(POLICY, margins={Gate.ENFORCE: {metric: margin}})

    with pytest.raises(ValueError, match=f"margin of {metric} is {margin}"):
        evaluate(wave(good_owners), policy)


def test_a_gate_whose_policy_names_no_metric_is_refused(good_owners):
    policy = dataclasses.replace(POLICY, margins={})

    with pytest.raises(ValueError, match="names no metric for the enforce gate"):
        evaluate(wave(good_owners), policy)


def test_owner_totals_are_checked_before_anything_is_computed(good_owners):
    broken = good_owners.astype(dict.fromkeys(COUNTS, float))
    broken.loc[5, "turns"] = float("nan")

    with pytest.raises(ValueError, match="column 'turns', row 5: nan is no count"):
        evaluate(wave(broken), POLICY)
