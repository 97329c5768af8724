"""`import analysis; analysis.evaluate(frame, policy)`: the door for notebooks."""

import dataclasses
import datetime as dt
import subprocess
import sys

import pandas as pd
import pytest

import analysis
from analysis.gates import evaluate as evaluate_gate
from analysis.report import Check, Comparison
from reducer.vocabulary import Gate, Metric, Verdict
from tests.analysis.samples import ENVIRONMENT, GUARD, POLICY, simulated_totals, wave

FIRST = dt.date(2026, 11, 20)


def over_days(totals: pd.DataFrame, days: int) -> pd.DataFrame:
    """Give every owner's counts once on each of so many days."""
    return pd.concat(
        [totals.assign(day=FIRST + dt.timedelta(days=place)) for place in range(days)],
        ignore_index=True,
    )


@pytest.fixture(scope="module")
def week():
    return over_days(simulated_totals(treated=100, control=900), 7)


def test_a_frame_of_owner_days_is_judged_by_metric_and_the_gate_says_what_it_lacks(week):
    evaluation = analysis.evaluate(week, POLICY)

    assert {result.verdict for result in evaluation.metrics} <= {Verdict.WITHIN, Verdict.UNPROVEN}
    assert evaluation.verdict is Verdict.NO_DATA
    assert evaluation.sentence == "No data: coverage is not known: no ended prompt was reported."
    unknown = {check.check for check in evaluation.checks if check.verdict is Verdict.NO_DATA}
    assert unknown == {
        Check.COVERAGE,
        Check.CONTRACT,
        Check.INVARIANTS,
        Check.VERSION_PURITY,
        Check.BALANCE,
        Check.STOP_CONSISTENCY,
    }


def test_with_the_gates_own_names_the_metrics_are_the_gates_own(week):
    evidence = analysis.evidence_of(week, environment=ENVIRONMENT, guard=GUARD, wave=3)

    ours = analysis.evaluate(evidence, POLICY)

    summed = evidence.owners
    theirs = evaluate_gate(wave(summed), POLICY)
    assert ours.metrics == theirs.metrics
    assert ours.days.used == tuple(FIRST + dt.timedelta(days=place) for place in range(7))


def test_what_is_known_beside_the_frame_can_be_added(week):
    whole = wave(analysis.evidence_of(week).owners)
    known = dataclasses.replace(
        analysis.evidence_of(week, environment=ENVIRONMENT, guard=GUARD, wave=3),
        **{
            name: getattr(whole, name)
            for name in ("coverage", "contract", "off_pin", "rostered", "draw", "guard_totals")
        },
    )

    evaluation = analysis.evaluate(known, POLICY)

    assert {check.verdict for check in evaluation.checks} == {Verdict.WITHIN}


def test_days_after_the_declared_ones_change_no_metric(week):
    longer = over_days(simulated_totals(treated=100, control=900), 9)

    evaluation = analysis.evaluate(longer, POLICY)

    assert evaluation.metrics == analysis.evaluate(week, POLICY).metrics
    assert (evaluation.days.complete, len(evaluation.days.used)) == (9, 7)


def test_days_may_be_text_or_timestamps(week):
    dated = analysis.evaluate(week, POLICY)
    for written in (week["day"].astype(str), pd.to_datetime(week["day"])):
        assert analysis.evaluate(week.assign(day=written), POLICY).days == dated.days


def test_the_shadow_gate_needs_no_second_cohort(week):
    evidence = analysis.evidence_of(week.assign(cohort="everyone"), gate=Gate.SHADOW)
    assert analysis.evaluate(evidence, POLICY).comparison is Comparison.NONE


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param({"day": "soon"}, "column 'day', row 0: 'soon' is no day", id="no day"),
        pytest.param({"started": -1}, "column 'started', row 0: -1", id="negative"),
        pytest.param({"cohort": "arm-b"}, "column 'cohort', row 0: 'arm-b'", id="unknown cohort"),
    ],
)
def test_a_wrong_frame_is_refused_by_column_row_and_value(week, change, words):
    with pytest.raises(ValueError, match=words):
        analysis.evaluate(week.assign(**change), POLICY)


def test_a_frame_without_days_is_refused(week):
    with pytest.raises(ValueError, match="lacks the column 'day'"):
        analysis.evaluate(week.drop(columns="day"), POLICY)


def test_every_documented_name_is_there_and_no_other():
    for name in analysis._PLACES:
        assert getattr(analysis, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'evaluat'"):
        analysis.evaluat  # noqa: B018  # the point


def test_importing_the_package_loads_no_pandas():
    script = "import sys, analysis; sys.exit('pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_a_metric_without_durations_is_no_data_in_a_frame_too(week):
    policy = dataclasses.replace(POLICY, margins={Gate.ENFORCE: {Metric.LATENCY_P95: 1.10}})
    (latency,) = analysis.evaluate(week, policy).metrics
    assert latency.verdict is Verdict.NO_DATA
