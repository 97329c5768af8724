"""Notebook: `analysis.evaluate(frame, policy)` on owner-days and on whole evidence."""

import dataclasses
import datetime as dt
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guardwave import analysis
from guardwave.analysis.gate.verdict import evaluate as evaluate_gate
from guardwave.analysis.report import Check, Comparison
from guardwave.control_plane.core import policy as policies
from guardwave.reducer.rollout.state import EvidenceSource
from guardwave.reducer.vocabulary import Cohort, Gate, Invariant, Metric, Verdict
from tests.support.frames.samples import (
    ENVIRONMENT,
    GUARD,
    NO_MINIMUM,
    POLICY,
    over_days,
    simulated_totals,
    wave,
)

FIRST = dt.date(2026, 11, 20)


def named(number: int, first: dt.date = FIRST) -> list[str]:
    """Return so many days as an evaluation names them."""
    return [(first + dt.timedelta(days=place)).isoformat() for place in range(number)]


@pytest.fixture(scope="module")
def week():
    return over_days(simulated_totals(treated=100, control=900), 7)


@pytest.fixture(scope="module")
def small():
    return over_days(simulated_totals(treated=2, control=4), 7)


def checks_of(frame: pd.DataFrame, **columns: Any) -> dict[Check, analysis.report.CheckResult]:
    """Return the checks of a frame with more columns, by their names; all days are complete."""
    evaluation = analysis.evaluate(frame.assign(**columns), NO_MINIMUM, days=named(7))
    return {check.check: check for check in evaluation.checks}


def test_a_frame_of_owner_days_is_judged_by_metric_and_the_gate_names_what_it_lacks(week):
    evaluation = analysis.evaluate(week, POLICY, days=named(7))

    assert {result.verdict for result in evaluation.metrics} <= {Verdict.WITHIN, Verdict.UNPROVEN}
    assert evaluation.verdict is Verdict.NO_DATA
    assert evaluation.sentence == (
        "No data: coverage is not known: the owner-days have no column ended and covered; "
        "contract, invariants, version purity, balance and stop consistency are without data too."
    )
    unknown = {check.check for check in evaluation.checks if check.verdict is Verdict.NO_DATA}
    assert unknown == {
        Check.COVERAGE,
        Check.CONTRACT,
        Check.INVARIANTS,
        Check.VERSION_PURITY,
        Check.BALANCE,
        Check.STOP_CONSISTENCY,
    }
    assert evaluation.lost is None


def test_without_named_days_nothing_counts_as_complete_and_the_metrics_stay_the_same(week):
    evaluation = analysis.evaluate(week, POLICY)

    assert evaluation.metrics == analysis.evaluate(week, POLICY, days=named(7)).metrics
    assert evaluation.days.complete is None
    days = analysis.to_wire(evaluation)["days"]
    assert isinstance(days, dict)
    assert days["complete"] is None
    (dwell,) = [check for check in evaluation.checks if check.check is Check.DWELL]
    assert dwell.verdict is Verdict.NO_DATA
    assert dwell.sentence == (
        "Which days are complete is not known: the owner-days are of 7 days, and all of them, "
        "2026-11-20 to 2026-11-26, are compared as if they were; name the complete ones with days=."
    )
    assert evaluation.sentence == f"No data: w{dwell.sentence[1:]}"


def test_the_days_named_as_complete_are_compared_and_the_others_are_reported(week):
    longer = over_days(simulated_totals(treated=100, control=900), 8)
    longer.loc[longer["day"] == FIRST, "completed"] = 0

    evaluation = analysis.evaluate(longer, POLICY, days=named(7, FIRST + dt.timedelta(days=1)))

    assert evaluation.days.used == tuple(FIRST + dt.timedelta(days=place) for place in range(1, 8))
    assert [skipped.day for skipped in evaluation.days.not_counted] == [FIRST]
    assert evaluation.metrics == analysis.evaluate(week, POLICY).metrics
    dwell = evaluation.checks[0]
    assert (dwell.verdict, dwell.sentence) == (
        Verdict.WITHIN,
        "7 of 7 complete days; 1 day does not count (2026-11-20: not named as complete).",
    )


def test_too_few_complete_days_are_shown_and_not_judged(week):
    evaluation = analysis.evaluate(week, POLICY, days=named(6))
    assert {result.reason for result in evaluation.metrics} == {"dwell"}
    assert evaluation.checks[0].sentence.startswith("6 of 7 complete days; 1 day does not count")


@pytest.mark.parametrize(
    ("days", "error", "words"),
    [
        pytest.param([], ValueError, "days names no day", id="none"),
        pytest.param(named(8), ValueError, "2026-11-27 as complete.*no owner-day", id="not there"),
        pytest.param(["27.11.2026"], ValueError, "entry 0: '27.11.2026' is no day", id="not ISO"),
        pytest.param([FIRST, 7], ValueError, "entry 1: 7 is no day", id="a number of days"),
        pytest.param("2026-11-20", TypeError, "give a list of days", id="one text"),
        pytest.param(7, TypeError, "give a list of days", id="how many"),
    ],
)
def test_impossible_complete_days_are_refused(small, days, error, words):
    with pytest.raises(error, match=words):
        analysis.evaluate(small, POLICY, days=days)


def test_days_beside_whole_evidence_are_refused(small):
    with pytest.raises(ValueError, match="evidence has its own days"):
        analysis.evaluate(analysis.evidence_of(small), POLICY, days=named(7))


def test_with_the_gates_own_names_the_metrics_are_the_gates_own(week):
    evidence = analysis.evidence_of(week, environment=ENVIRONMENT, guard=GUARD, wave=3)

    ours = analysis.evaluate(evidence, POLICY)

    summed = evidence.owners
    theirs = evaluate_gate(wave(summed), POLICY)
    assert ours.metrics == theirs.metrics
    assert ours.days.used == tuple(FIRST + dt.timedelta(days=place) for place in range(7))


def test_the_names_are_taken_from_the_frame_where_it_has_them(small):
    columns = {"environment": pd.Categorical([ENVIRONMENT] * len(small)), "wave": "3"}
    found = analysis.evidence_of(small.assign(guard=GUARD, **columns))
    assert (found.environment, found.guard, found.wave) == (ENVIRONMENT, GUARD, 3)


def test_a_name_that_contradicts_the_frame_is_refused(small):
    with pytest.raises(ValueError, match="'wave' has 3, and 4 was given"):
        analysis.evidence_of(small.assign(wave=3), wave=4)


def test_the_caller_can_add_evidence_that_no_frame_holds(week):
    whole = wave(analysis.evidence_of(week).owners)
    known = dataclasses.replace(
        analysis.evidence_of(week, environment=ENVIRONMENT, guard=GUARD, wave=3, days=named(7)),
        unknown={},
        **{
            name: getattr(whole, name)
            for name in ("coverage", "contract", "off_pin", "rostered", "draw", "guard_totals")
        },
    )

    evaluation = analysis.evaluate(known, POLICY)

    assert {check.verdict for check in evaluation.checks} == {Verdict.WITHIN}


def test_days_after_the_declared_ones_change_no_metric(week):
    longer = over_days(simulated_totals(treated=100, control=900), 9)

    evaluation = analysis.evaluate(longer, POLICY, days=named(9))

    assert evaluation.metrics == analysis.evaluate(week, POLICY).metrics
    assert (evaluation.days.complete, len(evaluation.days.used)) == (9, 7)


def test_the_coverage_of_the_frame_is_used(small):
    found = checks_of(small, ended=small["started"], covered=small["started"] - 1, lost=2)
    ended = int(small["started"].sum())
    assert found[Check.COVERAGE].numbers == {
        "needed_share": 0.99,
        "covered": ended - len(small),
        "ended": ended,
        "lost": 2 * len(small),
    }


def test_full_coverage_in_a_frame_does_not_prove_that_no_invariant_was_violated(small):
    found = checks_of(small, ended=small["started"], covered=small["started"], switched=0)
    assert found[Check.COVERAGE].verdict is Verdict.WITHIN
    assert (found[Check.INVARIANTS].verdict, found[Check.INVARIANTS].numbers) == (
        Verdict.NO_DATA,
        {},
    )


def test_prompts_in_two_cohorts_in_a_frame_are_a_violation(small):
    found = checks_of(small, switched=1)
    assert found[Check.INVARIANTS].verdict is Verdict.BEYOND
    assert found[Check.BALANCE].verdict is Verdict.INVALID
    assert found[Check.INVARIANTS].numbers[Invariant.TREATMENT_SWITCHED.value] == len(small)


def test_missing_switches_are_unknown_even_where_the_draw_is_known(week):
    whole = wave(analysis.evidence_of(week).owners)
    evidence = dataclasses.replace(
        analysis.evidence_of(week, environment=ENVIRONMENT, guard=GUARD, wave=3),
        rostered=whole.rostered,
        draw=whole.draw,
    )
    checks = {check.check: check for check in analysis.evaluate(evidence, POLICY).checks}
    assert checks[Check.BALANCE].verdict is Verdict.NO_DATA
    assert "two modes or cohorts is not known" in checks[Check.BALANCE].sentence


def test_versions_are_reported_and_the_pin_is_requested(small):
    sentence = checks_of(small, version="1.4.0")[Check.VERSION_PURITY].sentence
    assert "prompts came from 1.4.0, and the pinned versions were not reported" in sentence


def test_prompts_off_the_pin_in_a_column_are_judged(small):
    assert checks_of(small, off_pin=0)[Check.VERSION_PURITY].verdict is Verdict.WITHIN
    found = checks_of(small, off_pin=small["started"])[Check.VERSION_PURITY]
    assert found.verdict is Verdict.INVALID
    assert (
        found.numbers[f"{Cohort.ENFORCED}_off_pin"]
        == small.loc[small["cohort"] == "enforced", "started"].sum()
    )


@pytest.mark.parametrize(
    ("mode", "verdict"),
    [
        pytest.param("enforce", Verdict.WITHIN, id="at the cohort's mode"),
        pytest.param("shadow", Verdict.NO_DATA, id="below it"),
    ],
)
def test_a_frame_with_modes_is_checked_for_exposure(small, mode, verdict):
    assert checks_of(small, mode=mode)[Check.EXPOSURE].verdict is verdict
    assert Check.EXPOSURE not in checks_of(small)


def test_a_row_without_a_start_is_no_second_cohort_of_its_owner(small):
    moved = small.head(1).assign(
        cohort="control", **dict.fromkeys(analysis.frames.COUNTS, 0), switched=1
    )
    both = pd.concat([small.assign(switched=0), moved], ignore_index=True)
    evidence = analysis.evidence_of(both)
    assert len(evidence.owners) == small["owner"].nunique()
    assert evidence.violations == {Invariant.TREATMENT_SWITCHED: 1}


def test_loop_events_that_one_owner_day_lacks_are_unknown_for_all(small):
    heard = small.assign(loops=1.0)
    reported = analysis.evidence_of(heard).guard_totals
    heard.loc[3, "loops"] = None
    partial = analysis.evidence_of(heard).guard_totals
    assert reported is not None
    assert partial is not None
    assert "loops" in reported.columns
    assert "loops" not in partial.columns


def test_counters_report_no_coverage_and_no_lost_prompts(small):
    counted = small.assign(source="counters", ended=small["started"], covered=0, lost=1)
    evidence = analysis.evidence_of(counted)
    assert (evidence.source, evidence.coverage) == (EvidenceSource.COUNTERS, None)
    assert evidence.lost is None


@pytest.mark.parametrize(
    ("renamed", "gate", "comparison"),
    [
        pytest.param({}, Gate.ENFORCE, Comparison.CONCURRENT, id="enforced and control"),
        pytest.param(
            {"enforced": "warned", "control": "holdback"},
            Gate.WARN,
            Comparison.CONCURRENT,
            id="warned and holdback",
        ),
        pytest.param(
            {"enforced": "everyone", "control": "everyone"},
            Gate.SHADOW,
            Comparison.NONE,
            id="everyone",
        ),
        pytest.param(
            {"enforced": "outside", "control": "outside"},
            Gate.ENFORCE,
            Comparison.CONCURRENT,
            id="nobody on a roster",
        ),
    ],
)
def test_the_cohorts_determine_the_gate(small, renamed, gate, comparison):
    frame = small.assign(cohort=small["cohort"].replace(renamed))
    evaluation = analysis.evaluate(frame, POLICY)
    assert (evaluation.gate, evaluation.comparison) == (gate, comparison)


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 2**32 - 1))
def test_neither_the_order_of_rows_nor_that_of_columns_changes_a_byte(small, seed):
    source = np.random.default_rng(seed)
    columns = list(source.permutation(small.columns))
    shuffled = small.iloc[source.permutation(len(small))][columns]
    whole, ours = (
        analysis.to_wire(analysis.evaluate(frame, POLICY, days=named(7)))
        for frame in (small, shuffled)
    )
    assert whole == ours


@pytest.mark.parametrize(
    ("evidence", "policy", "words"),
    [
        pytest.param([1], POLICY, "come in a pandas DataFrame, not in a list", id="a list"),
        pytest.param("lake", POLICY, "come in a pandas DataFrame, not in a str", id="a path"),
        pytest.param(pd.Series([1]), POLICY, "DataFrame, not in a Series", id="a column"),
        pytest.param(None, None, "policy is a NoneType; give a GatePolicy", id="no policy"),
        pytest.param(None, {"alpha": 1}, "policy is a dict; .*SHIPPED_POLICY", id="policy as dict"),
    ],
)
def test_an_argument_of_another_type_is_named(small, evidence, policy, words):
    with pytest.raises(TypeError, match=words):
        analysis.evaluate(small if evidence is None else evidence, policy)


def test_a_frame_without_owner_days_has_no_data(small):
    evaluation = analysis.evaluate(small.head(0), POLICY)
    assert evaluation.verdict is Verdict.NO_DATA
    assert evaluation.sentence == (
        "No data: which days are complete is not known: there are no owner-days."
    )


def test_every_documented_name_is_there_and_no_other():
    for name in analysis._PLACES:
        assert getattr(getattr(analysis, name), "__name__", name) == name
    assert dir(analysis) == sorted(analysis._PLACES)
    with pytest.raises(AttributeError, match="no attribute 'evaluat'"):
        analysis.evaluat  # noqa: B018  # the point


def test_the_policy_for_notebooks_is_the_shipped_one():
    assert policies.load(None).base == analysis.SHIPPED_POLICY
    assert isinstance(analysis.SHIPPED_POLICY, analysis.GatePolicy)


def test_importing_the_package_loads_no_pandas():
    script = "import sys, analysis; sys.exit('pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_a_metric_without_durations_is_no_data_in_a_frame_too(small):
    policy = dataclasses.replace(POLICY, margins={Gate.ENFORCE: {Metric.LATENCY_P95: 1.10}})
    (latency,) = analysis.evaluate(small, policy).metrics
    assert (latency.verdict, latency.reason) == (Verdict.NO_DATA, "no_durations")
