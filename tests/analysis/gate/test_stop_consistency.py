"""Stop consistency: stops and would-be stops, saved calls, unreliable and off-pin prompts."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from guardwave.analysis.frames.evidence import Share
from guardwave.analysis.frames.owner_totals import (
    checked_guard_totals,
    checked_totals,
    guard_totals,
    settled_totals,
)
from guardwave.analysis.gate.balance import drawn_owners
from guardwave.analysis.gate.checks import run_checks
from guardwave.analysis.gate.stop_consistency import (
    joined_totals,
    saved_calls,
    stop_consistency,
    supported_hosts,
)
from guardwave.analysis.gate.verdict import evaluate
from guardwave.analysis.gate.version_purity import version_purity
from guardwave.analysis.report import Check, Topic
from guardwave.reducer.vocabulary import Cohort, Gate, Verdict
from tests.support.frames.samples import POLICY, simulated_totals, wave


@pytest.fixture(scope="module")
def good_owners():
    return simulated_totals(treated=200, control=1800)


def stops_at(owners, *, enforced: float, control: float, seed: int = 1) -> pd.DataFrame:
    """Return guard totals with these shares of prompts stopped, or would-be stopped."""
    source = np.random.default_rng(seed)
    shares = np.where(owners["cohort"] == "enforced", enforced, control)
    stops = source.binomial(owners["started"], shares)
    calls = source.poisson(4.0 * stops)
    return pd.DataFrame(
        {
            "owner": owners["owner"],
            "stopped": stops,
            "would_stopped": stops,
            "calls_after_would_stop": calls,
        }
    )


def consistency_of(evidence, *, is_look_due=True, policy=POLICY):
    totals = checked_totals(evidence.owners)
    return stop_consistency(
        evidence, joined_totals(evidence, totals), policy, is_look_due=is_look_due
    )


@pytest.mark.parametrize(
    ("enforced", "control", "verdict"),
    [
        pytest.param(0.01, 0.01, Verdict.WITHIN, id="alike"),
        pytest.param(0.0, 0.0, Verdict.WITHIN, id="no stop among very many prompts"),
        pytest.param(0.05, 0.01, Verdict.BEYOND, id="too many stops"),
        pytest.param(0.01, 0.05, Verdict.BEYOND, id="too few stops"),
        pytest.param(0.017, 0.0125, Verdict.UNPROVEN, id="close to the band"),
    ],
)
def test_stops_agree_with_would_be_stops_within_the_band(good_owners, enforced, control, verdict):
    stops = stops_at(good_owners, enforced=enforced, control=control)

    found = consistency_of(wave(good_owners, guard_totals=stops))

    assert found.verdict is verdict
    assert found.numbers["band"] == 0.005
    difference = found.numbers["stopped_share"] - found.numbers["would_stop_share"]
    assert found.numbers["difference"] == pytest.approx(difference)


def test_the_sentence_names_both_shares_and_the_interval(good_owners):
    stops = stops_at(good_owners, enforced=0.01, control=0.01)

    found = consistency_of(wave(good_owners, guard_totals=stops))

    assert found.sentence.startswith("Enforced stopped 1.00 % of prompts, control would have ")
    assert "stopped 1.00 %; 90 % interval of the difference -0." in found.sentence
    assert found.sentence.endswith("pp; they may differ by 0.50 pp.")


@pytest.mark.parametrize(
    "reported",
    [
        pytest.param(None, id="no guard totals"),
        pytest.param(["stopped"], id="no would-be stops"),
        pytest.param(["would_stopped"], id="no stops"),
    ],
)
def test_stops_that_were_not_reported_are_no_data_and_never_zero(good_owners, reported):
    stops = stops_at(good_owners, enforced=0.01, control=0.01)
    evidence = wave(good_owners, guard_totals=stops[["owner", *reported]] if reported else None)

    found = consistency_of(evidence)

    assert found.verdict is Verdict.NO_DATA
    assert found.sentence == "Stops and would-be stops were not reported by owner."


def test_owners_whose_stops_are_not_known_are_left_out_and_are_no_zeros(good_owners):
    stops = stops_at(good_owners, enforced=0.05, control=0.05)
    only_control = stops[good_owners["cohort"] == "control"]

    found = consistency_of(wave(good_owners, guard_totals=only_control))

    assert found.verdict is Verdict.NO_DATA


def test_few_owners_are_too_little_data_for_agreement():
    few = simulated_totals(treated=12, control=400)

    found = consistency_of(wave(few, guard_totals=stops_at(few, enforced=0.01, control=0.01)))

    assert found.verdict is Verdict.UNPROVEN
    assert "12 owners with data in enforced (30 needed)" in found.sentence


def test_agreement_is_judged_only_at_a_declared_look(good_owners):
    stops = stops_at(good_owners, enforced=0.2, control=0.01)

    found = consistency_of(wave(good_owners, guard_totals=stops), is_look_due=False)

    assert found.verdict is Verdict.UNPROVEN
    assert found.sentence.endswith("judged only when the declared days are complete.")


def test_only_the_enforce_gate_asks_for_stop_consistency(good_owners):
    warned = good_owners.replace({"cohort": {"enforced": "warned", "control": "holdback"}})
    evidence = wave(warned, gate=Gate.WARN, treated=Cohort.WARNED, reference=Cohort.HOLDBACK)
    settled = settled_totals(warned, drawn_owners(evidence), (Cohort.WARNED, Cohort.HOLDBACK))

    checks = run_checks(evidence, settled, joined_totals(evidence, settled.totals), POLICY)

    assert Check.BALANCE in {result.check for result in checks}
    assert Check.STOP_CONSISTENCY not in {result.check for result in checks}


def test_inconsistent_stops_decide_the_gate_when_the_metrics_are_in_order(good_owners):
    stops = stops_at(good_owners, enforced=0.05, control=0.01)

    evaluation = evaluate(wave(good_owners, guard_totals=stops), POLICY)

    assert evaluation.verdict is Verdict.BEYOND
    assert evaluation.sentence.startswith("Beyond: enforced stopped")
    assert "shown to differ by more than the 0.50 pp allowed" in evaluation.sentence


def test_saved_calls_are_the_references_mean_times_the_stops(good_owners):
    stops = stops_at(good_owners, enforced=0.01, control=0.01)
    evidence = wave(good_owners, guard_totals=stops)

    note = saved_calls(evidence, joined_totals(evidence, checked_totals(good_owners)), 0.05)

    control = stops[good_owners["cohort"] == "control"]
    mean = control["calls_after_would_stop"].sum() / control["would_stopped"].sum()
    made = int(stops.loc[good_owners["cohort"] == "enforced", "stopped"].sum())
    assert note is not None
    assert note.topic is Topic.SAVED_CALLS
    assert note.numbers["saved"] == pytest.approx(mean * made)
    low, saved, high = (float(note.numbers[key]) for key in ("saved_low", "saved", "saved_high"))
    assert low < saved < high
    assert "before" not in note.sentence


def test_saved_calls_of_owners_without_a_spread_have_no_interval(good_owners):
    stops = stops_at(good_owners, enforced=0.01, control=0.01)
    alike = stops.assign(calls_after_would_stop=5 * stops["would_stopped"])
    evidence = wave(good_owners, guard_totals=alike)

    note = saved_calls(evidence, joined_totals(evidence, checked_totals(good_owners)), 0.05)

    assert note is not None
    assert note.numbers["calls_after_would_stop"] == 5.0
    assert not {"saved_low", "saved_high"} & set(note.numbers)
    assert "stops (no interval, since no owner differs from another): control" in note.sentence


def test_saved_calls_are_compared_with_the_phase_before(good_owners):
    stops = stops_at(good_owners, enforced=0.01, control=0.01)
    before = stops.assign(calls_after_would_stop=7 * stops["would_stopped"])
    evidence = wave(good_owners, guard_totals=stops, guard_totals_before=before)

    note = saved_calls(evidence, joined_totals(evidence, checked_totals(good_owners)), 0.05)

    assert note is not None
    assert note.numbers["calls_after_would_stop_before"] == 7.0
    assert note.sentence.endswith("and 7.00 (no interval) before.")


def test_saved_calls_are_unknown_where_nobody_would_have_stopped(good_owners):
    stops = stops_at(good_owners, enforced=0.01, control=0.0)
    evidence = wave(good_owners, guard_totals=stops)

    assert saved_calls(evidence, joined_totals(evidence, checked_totals(good_owners)), 0.05) is None


def test_prompts_with_unreliable_input_are_counted_by_cohort(good_owners):
    unreliable = pd.DataFrame({"owner": good_owners["owner"], "unreliable": 1})
    evidence = wave(good_owners, guard_totals=unreliable)

    note = supported_hosts(evidence, joined_totals(evidence, checked_totals(good_owners)))

    assert note is not None
    assert (note.numbers["enforced_unreliable"], note.numbers["control_unreliable"]) == (200, 1800)
    assert note.sentence.startswith("Input was unreliable for 200 of ")
    assert note.sentence.endswith("in control; they stay in the comparison.")
    assert supported_hosts(evidence, None) is None


def test_a_gate_that_compares_no_cohorts_keeps_no_prompt_in_a_comparison(good_owners):
    everyone = good_owners.assign(cohort="everyone")
    unreliable = pd.DataFrame({"owner": everyone["owner"], "unreliable": 1})
    evidence = wave(
        everyone,
        gate=Gate.SHADOW,
        treated=Cohort.EVERYONE,
        reference=Cohort.EVERYONE,
        guard_totals=unreliable,
    )

    note = supported_hosts(evidence, joined_totals(evidence, checked_totals(everyone)))

    assert note is not None
    assert note.sentence.endswith("prompts in everyone.")


def test_without_a_prompt_there_is_no_note_about_unreliable_input(good_owners):
    none = good_owners.head(0)
    evidence = wave(none, guard_totals=pd.DataFrame({"owner": none["owner"], "unreliable": []}))

    assert supported_hosts(evidence, joined_totals(evidence, checked_totals(none))) is None


def off_pin_by(owners, *, enforced: float, control: float) -> pd.DataFrame:
    shares = np.where(owners["cohort"] == "enforced", enforced, control)
    counts = np.random.default_rng(2).binomial(owners["started"], shares)
    return pd.DataFrame({"owner": owners["owner"], "off_pin": counts})


def shares_of(owners, off_pin):
    joined = owners.merge(off_pin, on="owner")
    return {
        Cohort(cohort): Share(int(rows["off_pin"].sum()), int(rows["started"].sum()))
        for cohort, rows in joined.groupby("cohort")
    }


@pytest.mark.parametrize(
    ("enforced", "control", "verdict"),
    [
        pytest.param(0.004, 0.004, Verdict.WITHIN, id="alike"),
        pytest.param(0.008, 0.001, Verdict.INVALID, id="apart, both below one percent"),
    ],
)
def test_cohorts_that_differ_in_versions_are_invalid_below_the_limit_too(
    good_owners, enforced, control, verdict
):
    off_pin = off_pin_by(good_owners, enforced=enforced, control=control)
    evidence = wave(good_owners, guard_totals=off_pin, off_pin=shares_of(good_owners, off_pin))

    found = version_purity(evidence, checked_totals(good_owners), POLICY)

    assert found.verdict is verdict
    assert (float(found.numbers["p_between"]) < 0.001) is (verdict is Verdict.INVALID)


def test_guard_totals_are_sums_over_days_and_lack_the_columns_that_days_lack():
    days = pd.DataFrame(
        {"owner": ["b", "a", "b"], "day": [1, 1, 2], "stopped": [1, 2, 3], "other": [9, 9, 9]}
    )

    totals = guard_totals(days)

    assert totals.to_dict("list") == {"owner": ["a", "b"], "stopped": [2, 4]}


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        pytest.param({"stopped": [1]}, "lacks the column 'owner'", id="no owner"),
        pytest.param(
            {"owner": ["a", "b"], "stopped": [1, -1]}, "'stopped', row 1: -1 is no", id="negative"
        ),
        pytest.param(
            {"owner": ["a"], "off_pin": [float("nan")]}, "'off_pin', row 0: nan is no", id="NaN"
        ),
        pytest.param({"owner": ["a"], "off_pin": [1.5]}, "row 0: 1.5 is no count", id="a half"),
        pytest.param(
            {"owner": ["a", "a"], "stopped": [1, 1]}, "row 1: 'a' is there twice", id="twice"
        ),
    ],
)
def test_guard_totals_that_are_wrong_are_refused_by_column_row_and_value(frame, words):
    with pytest.raises(ValueError, match=words):
        checked_guard_totals(pd.DataFrame(frame))


def test_a_policy_may_narrow_the_band_which_proves_less_but_not_widen_it(good_owners):
    stops = stops_at(good_owners, enforced=0.01, control=0.01)
    narrow = dataclasses.replace(POLICY, stop_band=0.0005)

    assert consistency_of(wave(good_owners, guard_totals=stops), policy=narrow).verdict is (
        Verdict.UNPROVEN
    )
