"""Report: the keys and types of a stored evaluation, and no number that JSON lacks."""

import json

import pytest

from guardwave.analysis.frames.owner_totals import COUNTS
from guardwave.analysis.gate.verdict import evaluate
from guardwave.analysis.report import to_wire
from guardwave.reducer.vocabulary import Cohort, Gate, Metric
from tests.support.frames.samples import (
    DATASETS,
    POLICY,
    days,
    reference_totals,
    simulated_totals,
    wave,
)

METRIC_KEYS = [
    "metric",
    "kind",
    "higher_is_better",
    "informational",
    "treated",
    "reference",
    "treated_owners",
    "reference_owners",
    "treated_trials",
    "reference_trials",
    "estimate",
    "margin",
    "interval",
    "standard_error",
    "df",
    "bound",
    "p_harm_at_margin",
    "permutations",
    "tested_margin",
    "standard_errors",
    "fieller",
    "cut",
    "cuped",
    "without_cuped",
    "effective_owners_treated",
    "largest_owner_share_treated",
    "verdict",
    "reason",
    "sentence",
]


@pytest.fixture(scope="module")
def stored():
    evidence = wave(
        simulated_totals(treated=60, control=600), days=days(8, incomplete=1), declared_days=7
    )
    return json.loads(json.dumps(to_wire(evaluate(evidence, POLICY)), allow_nan=False))


def metric_of(wire, metric: Metric):
    (found,) = [row for row in wire["metrics"] if row["metric"] == metric.value]
    return found


def test_the_head_names_the_gate_and_its_days(stored):
    head = {
        key: stored[key] for key in stored if key not in {"sentence", "metrics", "checks", "notes"}
    }

    assert head == {
        "schema": 1,
        "environment": "internal",
        "guard": "repeated_tool_failure",
        "gate": "enforce",
        "wave": 3,
        "treated_cohort": "enforced",
        "reference_cohort": "control",
        "verdict": stored["verdict"],
        "alpha": 0.05,
        "policy_version": "test",
        "days": {
            "declared": 7,
            "complete": 8,
            "used": [f"2026-11-{day}" for day in range(21, 28)],
            "not_counted": [{"day": "2026-11-20", "reason": "intake was out for 12 min"}],
        },
        "owners": {"enforced": 60, "control": 600},
        "rostered": {"enforced": 60, "control": 600},
        "lost": 4,
        "comparison": "concurrent",
    }


def test_metrics_come_in_one_order_with_the_informational_last(stored):
    assert [(row["metric"], row["informational"]) for row in stored["metrics"]] == [
        ("completion", False),
        ("disruption", False),
        ("tokens", False),
        ("turns", False),
        ("cancellation", True),
    ]
    assert all(list(row) == METRIC_KEYS for row in stored["metrics"])


def test_a_difference_is_stored_in_its_own_direction(stored):
    row = metric_of(stored, Metric.COMPLETION)

    assert (row["kind"], row["higher_is_better"], row["margin"]) == ("difference", True, -0.01)
    assert row["estimate"] == pytest.approx(row["treated"] - row["reference"])
    assert row["interval"]["low"] < row["estimate"] < row["interval"]["high"]
    assert (row["interval"]["level"], row["interval"]["method"]) == (0.90, "CR2 t")
    assert row["bound"] <= row["interval"]["low"]


def test_a_ratio_is_stored_as_a_ratio(stored):
    row = metric_of(stored, Metric.TOKENS)

    assert (row["kind"], row["higher_is_better"], row["margin"]) == ("ratio", False, 1.10)
    assert row["estimate"] == pytest.approx(row["treated"] / row["reference"])
    assert row["interval"]["low"] < row["estimate"] < row["interval"]["high"]
    assert row["bound"] >= row["interval"]["high"]


def test_an_informational_metric_has_neither_margin_nor_verdict(stored):
    row = metric_of(stored, Metric.CANCELLATION)

    assert (row["margin"], row["bound"], row["p_harm_at_margin"]) == (None, None, None)
    assert (row["verdict"], row["reason"], row["permutations"]) == (None, None, 0)


def test_every_check_is_stored_with_its_sentence_and_numbers(stored):
    assert [check["check"] for check in stored["checks"]] == [
        "dwell",
        "coverage",
        "contract",
        "invariants",
        "version_purity",
        "balance",
        "stop_consistency",
    ]
    for check in stored["checks"]:
        assert check["sentence"].endswith(".")
        assert all(isinstance(number, int | float | str) for number in check["numbers"].values())


def nothing_started():
    owners = simulated_totals(treated=3, control=3)
    return owners.assign(**dict.fromkeys(COUNTS, 0))


@pytest.mark.parametrize(
    "owners",
    [
        *(pytest.param(reference_totals(dataset), id=dataset) for dataset in DATASETS),
        pytest.param(simulated_totals(treated=1, control=1), id="one owner each"),
        pytest.param(simulated_totals(treated=2, control=2), id="two owners each"),
        pytest.param(simulated_totals(treated=1, control=1).head(0), id="nobody"),
        pytest.param(nothing_started(), id="owners without a prompt"),
        pytest.param(
            simulated_totals(treated=40, control=40).assign(completed=0, cancelled=0),
            id="nothing completed",
        ),
    ],
)
def test_any_evidence_is_stored_without_a_number_that_json_lacks(owners):
    wire = to_wire(evaluate(wave(owners), POLICY))

    assert json.loads(json.dumps(wire, allow_nan=False))["verdict"] != "within"


def test_the_shadow_gate_is_stored_without_metrics():
    everyone = simulated_totals(treated=5, control=5).assign(cohort="everyone")
    evidence = wave(
        everyone,
        gate=Gate.SHADOW,
        treated=Cohort.EVERYONE,
        reference=Cohort.EVERYONE,
        rostered={},
    )

    wire = to_wire(evaluate(evidence, POLICY))

    assert (wire["metrics"], wire["owners"], wire["rostered"]) == ([], {"everyone": 10}, {})
