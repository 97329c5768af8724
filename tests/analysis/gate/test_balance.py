"""Balance: replay of the draw, sample ratio, missing owners, and switching."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from guardwave.analysis.frames.owner_totals import settled_totals
from guardwave.analysis.gate.balance import (
    DetectableShares,
    balance,
    detectable_shares,
    drawn_owners,
    p_value,
    rejected_counts,
)
from guardwave.analysis.gate.verdict import evaluate
from guardwave.analysis.report import Check
from guardwave.reducer.vocabulary import Cohort, Gate, Invariant, Verdict
from tests.support.frames.samples import POLICY, simulated_totals, wave


@pytest.fixture(scope="module")
def good_owners():
    return simulated_totals(treated=100, control=1900)


def balance_of(evidence):
    settled = settled_totals(
        evidence.owners, drawn_owners(evidence), (evidence.treated, evidence.reference)
    )
    return balance(evidence, settled)


def without_data(owners, cohort, count):
    """Leave out the first owners of a cohort, who stay on the roster."""
    return owners.drop(owners.index[owners["cohort"] == cohort][:count])


def test_cohorts_as_drawn_are_within_and_the_sentence_names_detectable_shares(good_owners):
    found = balance_of(wave(good_owners))

    assert found.verdict is Verdict.WITHIN
    assert found.sentence == (
        "All 2,000 owners seen are in the cohort that the draw gives them. 100 of 2,000 owners "
        "with data are enforced (5.0 % expected, p = 1); a true share below 3.1 % or above 7.2 % "
        "would be seen."
    )
    assert (found.numbers["replayed"], found.numbers["mismatched"]) == (2000, 0)


def test_one_owner_in_the_wrong_cohort_makes_the_evaluation_invalid(good_owners):
    evidence = wave(good_owners)
    last = good_owners.index[-1]
    swapped = good_owners.copy()
    swapped.loc[[0, last], "cohort"] = ["control", "enforced"]

    evaluation = evaluate(dataclasses.replace(evidence, owners=swapped), POLICY)

    assert evaluation.verdict is Verdict.INVALID
    assert evaluation.sentence == (
        "Not valid: 2 of 2,000 owners are not in the cohort that the draw gives them."
    )


def test_an_owner_that_is_not_on_the_roster_is_in_no_cohort(good_owners):
    evidence = wave(good_owners)
    stranger = good_owners.tail(1).assign(owner="stranger")
    owners = stranger.merge(good_owners, how="outer")

    found = balance_of(dataclasses.replace(evidence, owners=owners))

    assert found.verdict is Verdict.INVALID
    assert found.numbers["mismatched"] == 1


def test_owners_outside_the_comparison_are_not_replayed(good_owners):
    outside = good_owners.head(50).assign(cohort="outside")
    outside["owner"] += "-x"
    evidence = wave(good_owners.merge(outside, how="outer"))

    assert balance_of(evidence).numbers["replayed"] == 2000


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        pytest.param({"draw": None}, "inputs were not given", id="no draw"),
        pytest.param(
            {"algorithm": "other-draw-9"}, "drawn by other-draw-9", id="an unknown algorithm"
        ),
    ],
)
def test_an_assignment_that_cannot_be_replayed_is_no_data(good_owners, changes, words):
    evidence = wave(good_owners)
    if "algorithm" in changes:
        assert evidence.draw is not None
        changes = {"draw": dataclasses.replace(evidence.draw, **changes)}

    found = balance_of(dataclasses.replace(evidence, **changes))

    assert found.verdict is Verdict.NO_DATA
    assert words in found.sentence


def test_another_salt_gives_other_cohorts(good_owners):
    evidence = wave(good_owners)
    assert evidence.draw is not None
    other = dataclasses.replace(evidence.draw, salt="11" * 16 + ".0")

    assert balance_of(dataclasses.replace(evidence, draw=other)).verdict is Verdict.INVALID


def test_a_roster_of_another_size_than_the_draw_is_invalid(good_owners):
    found = balance_of(wave(good_owners, rostered={Cohort.ENFORCED: 101, Cohort.CONTROL: 1899}))

    assert found.verdict is Verdict.INVALID
    assert "the roster counts 101 and 1,899" in found.sentence


def test_more_owners_with_data_than_on_the_roster_is_invalid(good_owners):
    found = balance_of(
        wave(good_owners, draw=None, rostered={Cohort.ENFORCED: 99, Cohort.CONTROL: 1901})
    )

    assert found.verdict is Verdict.INVALID
    assert found.sentence == "enforced has 100 owners with data and 99 on its roster."


def test_a_roster_that_nobody_reported_is_no_data(good_owners):
    found = balance_of(wave(good_owners, draw=None, rostered={}))

    assert found.verdict is Verdict.NO_DATA
    assert "The roster's size was not reported." in found.sentence


def test_a_roster_without_any_data_is_no_data(good_owners):
    idle = dataclasses.replace(wave(good_owners), owners=good_owners.head(0))

    found = balance_of(idle)

    assert found.verdict is Verdict.NO_DATA
    assert found.sentence == "No owner on the roster has data."


@pytest.mark.parametrize(
    ("missing", "verdict"),
    [
        pytest.param(1, Verdict.WITHIN, id="one"),
        pytest.param(40, Verdict.INVALID, id="most of them"),
    ],
)
def test_owners_missing_from_one_cohort_make_the_comparison_invalid(good_owners, missing, verdict):
    evidence = wave(good_owners)
    owners = without_data(good_owners, "enforced", missing)

    found = balance_of(dataclasses.replace(evidence, owners=owners))

    assert found.verdict is verdict
    table = np.array([[missing, 100 - missing], [0, 1900]])
    assert found.numbers["p_missing"] == pytest.approx(stats.fisher_exact(table).pvalue)
    assert found.numbers["enforced_missing"] == missing
    if verdict is Verdict.INVALID:
        assert "40 of 100 owners of enforced and 0 of 1,900 of control have no data" in (
            found.sentence
        )


def test_owners_missing_from_both_cohorts_in_proportion_are_within(good_owners):
    evidence = wave(good_owners)
    owners = without_data(without_data(good_owners, "enforced", 20), "control", 380)

    assert balance_of(dataclasses.replace(evidence, owners=owners)).verdict is Verdict.WITHIN


def test_a_prompt_in_two_cohorts_makes_the_evaluation_invalid(good_owners):
    evaluation = evaluate(wave(good_owners, violations={Invariant.TREATMENT_SWITCHED: 3}), POLICY)

    assert evaluation.verdict is Verdict.INVALID
    assert "3 prompts were in two modes or cohorts" in evaluation.sentence


def test_a_warn_roster_without_holdback_has_no_sample_ratio(good_owners):
    warned = good_owners.assign(cohort="warned")
    evidence = wave(warned, gate=Gate.WARN, treated=Cohort.WARNED, reference=Cohort.HOLDBACK)

    found = balance_of(evidence)

    assert found.verdict is Verdict.WITHIN
    assert "p_with_data" not in found.numbers
    assert found.numbers["replayed"] == 2000


def test_the_shadow_gate_asks_for_no_balance(good_owners):
    everyone = {"treated": Cohort.EVERYONE, "reference": Cohort.EVERYONE, "rostered": {}}
    evidence = wave(good_owners.assign(cohort="everyone"), gate=Gate.SHADOW, **everyone)

    checks = {result.check for result in evaluate(evidence, POLICY).checks}

    assert not checks & {Check.BALANCE, Check.STOP_CONSISTENCY}


@pytest.mark.parametrize(
    ("owners", "limits", "shares"),
    [
        pytest.param(1_000, (28, 75), (0.024, 0.082), id="a thousand owners"),
        pytest.param(10_000, (429, 574), (0.041, 0.059), id="ten thousand owners"),
    ],
)
def test_the_detectable_shares_are_those_of_the_tables(owners, limits, shares):
    assert rejected_counts(owners, 0.05) == limits
    sight = detectable_shares(owners, 0.05)
    assert sight.low == pytest.approx(shares[0], abs=5e-4)
    assert sight.high == pytest.approx(shares[1], abs=5e-4)
    assert p_value(limits[0], owners, 0.05) < 0.001 <= p_value(limits[0] + 1, owners, 0.05)
    assert p_value(limits[1], owners, 0.05) < 0.001 <= p_value(limits[1] - 1, owners, 0.05)


def test_a_small_roster_detects_no_share_on_one_side():
    sight = detectable_shares(40, 0.05)
    assert sight.low is None
    assert sight.high is not None
    assert sight.high > 0.2
    assert detectable_shares(2, 0.5) == DetectableShares(None, None)


def test_an_owner_in_two_cohorts_makes_the_evaluation_invalid_and_counts_where_it_was_drawn():
    owners = simulated_totals(treated=100, control=900)
    evidence = wave(owners)
    switched = pd.concat([owners.iloc[[0]].assign(cohort="control", started=99), owners])

    evaluation = evaluate(dataclasses.replace(evidence, owners=switched), POLICY)

    (found,) = [check for check in evaluation.checks if check.check is Check.BALANCE]
    assert evaluation.verdict is Verdict.INVALID
    assert found.numbers["switched_owners"] == 1
    assert "1 owners were in several cohorts, so cohorts are mixed." in found.sentence
    assert found.numbers["mismatched"] == 0
    assert evaluation.metrics == evaluate(evidence, POLICY).metrics


def test_an_owner_that_is_twice_in_one_cohort_is_refused():
    owners = simulated_totals(treated=10, control=90)
    twice = pd.concat([owners, owners.iloc[[3]]], ignore_index=True)

    with pytest.raises(ValueError, match="is there twice; an owner has one row"):
        evaluate(dataclasses.replace(wave(owners), owners=twice), POLICY)
