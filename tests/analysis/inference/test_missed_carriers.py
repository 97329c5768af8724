"""Missed carriers: the chance that a draw has no owner whom a harm would hit."""

import math
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from guardwave.analysis.frames.evidence import WaveEvidence
from guardwave.analysis.gate.verdict import evaluate
from guardwave.analysis.inference.power import (
    miss_probability,
    missed_carriers,
    missed_carriers_note,
)
from guardwave.analysis.report import Note, Topic
from guardwave.reducer.vocabulary import Cohort, Gate
from tests.support.frames.samples import POLICY, simulated_totals, wave


@st.composite
def draws(draw: st.DrawFn) -> tuple[int, int, int]:
    """Draw numbers of owners, carriers and treated owners."""
    owners = draw(st.integers(1, 400))
    return owners, draw(st.integers(0, owners)), draw(st.integers(0, owners))


@given(draws())
def test_the_chance_is_the_share_of_owner_sets_without_a_carrier(sizes):
    owners, carriers, drawn = sizes
    exact = Fraction(math.comb(owners - carriers, drawn), math.comb(owners, drawn))
    assert miss_probability(*sizes) == pytest.approx(float(exact), rel=1e-11)


@pytest.mark.parametrize(
    ("owners", "treated"),
    [
        pytest.param(1_000, 50, id="a thousand owners"),
        pytest.param(10_000, 500, id="ten thousand"),
        pytest.param(1_000_000, 100, id="a million, few of them treated"),
    ],
)
def test_scipy_computes_the_same_chance(owners, treated):
    found = missed_carriers(owners, treated)
    assert found is not None
    theirs = stats.hypergeom.pmf(0, owners, owners // 50, treated)
    assert found.chance == pytest.approx(float(theirs), rel=1e-8)


@given(st.integers(1, 5_000), st.data())
def test_the_owners_needed_are_the_fewest_that_seldom_miss_all(owners, data):
    treated = data.draw(st.integers(1, owners))
    found = missed_carriers(owners, treated)
    assert found is not None
    assert (found.carriers - 1) * 50 < owners <= found.carriers * 50
    assert miss_probability(owners, found.carriers, found.treated_needed) <= 0.10
    assert miss_probability(owners, found.carriers, found.treated_needed - 1) > 0.10
    assert found.is_small is (treated < found.treated_needed)


@pytest.mark.parametrize(
    ("owners", "treated", "sentence"),
    [
        pytest.param(
            1_000,
            50,
            "If 2 % of the owners (20 of 1,000) carried all harm, the chance that the draw of 50 "
            "has none of them is 35 %. The wave is too small to see harm in few owners: a chance "
            "of 10 % or less takes 108 treated owners.",
            id="too few are treated",
        ),
        pytest.param(
            2_000,
            120,
            "If 2 % of the owners (40 of 2,000) carried all harm, the chance that the draw of 120 "
            "has none of them is 8.2 %; a chance of 10 % or less takes 111 treated owners.",
            id="enough are treated",
        ),
        pytest.param(
            10_000,
            500,
            "If 2 % of the owners (200 of 10,000) carried all harm, the chance that the draw of "
            "500 has none of them is under 0.1 %; a chance of 10 % or less takes 114 treated "
            "owners.",
            id="a small chance is not rounded to none",
        ),
    ],
)
def test_the_sentence_names_the_chance_and_the_owners_needed(owners, treated, sentence):
    found = missed_carriers(owners, treated)
    assert found is not None
    assert found.sentence == sentence


def test_a_draw_of_nobody_has_nothing_to_miss():
    assert (missed_carriers(0, 0), missed_carriers_note(1_000, 0)) == (None, None)


@pytest.mark.parametrize("treated", [-1, 11])
def test_more_treated_than_owners_are_refused(treated):
    with pytest.raises(ValueError, match=f"treated is {treated} of 10 owners; give 0 to 10"):
        missed_carriers(10, treated)


def missed_in(evidence: WaveEvidence) -> Note | None:
    notes = evaluate(evidence, POLICY).notes
    return next((note for note in notes if note.topic is Topic.MISSED_CARRIERS), None)


def test_an_evaluation_notes_the_chance_for_its_roster_and_decides_nothing_by_it():
    owners = simulated_totals(treated=40, control=360)
    rostered = {Cohort.ENFORCED: 50, Cohort.CONTROL: 950}
    note = missed_in(wave(owners, rostered=rostered))
    assert note is not None
    assert not note.is_warning
    assert note.sentence == getattr(missed_carriers(1_000, 50), "sentence", None)
    assert (note.numbers["owners"], note.numbers["treated_needed"]) == (1_000, 108)
    more = wave(owners, rostered={Cohort.ENFORCED: 50, Cohort.CONTROL: 9_950})
    few = wave(owners, rostered=rostered)
    assert evaluate(more, POLICY).metrics == evaluate(few, POLICY).metrics


def test_without_a_roster_the_owners_with_data_stand_for_it():
    note = missed_in(wave(simulated_totals(treated=40, control=360), rostered={}))
    assert note is not None
    assert (note.numbers["owners"], note.numbers["treated"]) == (400, 40)


def test_a_gate_that_compares_no_cohorts_has_no_such_note():
    shadow = replace(
        wave(simulated_totals(treated=40, control=360)),
        gate=Gate.SHADOW,
        treated=Cohort.EVERYONE,
        reference=Cohort.EVERYONE,
        off_pin=None,
        rostered={},
        draw=None,
    )
    assert missed_in(replace(shadow, owners=shadow.owners.assign(cohort="everyone"))) is None
