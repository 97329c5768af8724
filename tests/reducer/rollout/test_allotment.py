"""Allotment: phase, place, eligibility and route give mode, cohort and wave."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardwave.reducer.rollout.allotment import Allotment, Place, allot
from guardwave.reducer.rollout.draw import ALGORITHM
from guardwave.reducer.rollout.eligibility import OwnerFacts, Ownership, Question
from guardwave.reducer.rollout.ladder import ModeLowered, Restarted, RolloutPromoted, apply
from guardwave.reducer.rollout.state import Rollout
from guardwave.reducer.vocabulary import Cohort, Mode, Reason, Route
from tests.strategies import (
    SALT,
    TODAY,
    histories,
    owner_facts,
    places,
    producers,
    questions,
    states,
    wave,
)

TRUSTED = frozenset({"collector"})
ELIGIBLE = OwnerFacts(ownership=Ownership.KNOWN, is_trusted=True)
ASKED = Question("1.0.0", Route.INTERACTIVE_FOREGROUND, TODAY)
PLACES = {
    "first": Place(rank=1, size=40, treated=2),
    "last treated": Place(rank=2, size=40, treated=2),
    "reference": Place(rank=3, size=40, treated=2),
    "absent": None,
}


def rollout_in(phase: Mode) -> Rollout:
    """Return a rollout in the phase with its wave open: 1 for shadow, 2 for warn, 3 for enforce."""
    rollout = Rollout("internal", "repeated_tool_failure", ("1.0.0",), SALT)
    if phase is Mode.OFF:
        return after(rollout, ModeLowered(Cohort.EVERYONE, Mode.OFF))
    if phase.rank >= Mode.WARN.rank:
        rollout = after(rollout, RolloutPromoted(wave(Mode.WARN, 2, treated_bps=8000)))
    if phase is Mode.ENFORCE:
        rollout = after(rollout, RolloutPromoted(wave(Mode.ENFORCE, 3, treated_bps=500)))
    return rollout


def after(rollout, event) -> Rollout:
    answer = apply(rollout, event)
    assert isinstance(answer, Rollout)
    return answer


def give(rollout, place=None, facts=ELIGIBLE, question=ASKED, *, is_latched=False) -> Allotment:
    return allot(
        rollout,
        facts,
        question,
        place=place,
        trusted_producers=TRUSTED,
        is_latched=is_latched,
    )


# phase, place -> what an eligible owner, an ineligible one (nothing known of it), and an eligible
# one on a cron route get. The three give mode, cohort, wave.
TABLE = """
off     first        | off everyone 0    | off ineligible 0    | off ineligible 0
off     absent       | off everyone 0    | off ineligible 0    | off ineligible 0
shadow  first        | shadow everyone 1 | shadow ineligible 0 | off ineligible 0
shadow  absent       | shadow everyone 1 | shadow ineligible 0 | off ineligible 0
warn    first        | warn warned 2     | shadow warned 2     | off warned 2
warn    last treated | warn warned 2     | shadow warned 2     | off warned 2
warn    reference    | shadow holdback 2 | shadow holdback 2   | off holdback 2
warn    absent       | shadow outside 0  | shadow ineligible 0 | off ineligible 0
enforce first        | enforce enforced 3| shadow enforced 3   | off enforced 3
enforce last treated | enforce enforced 3| shadow enforced 3   | off enforced 3
enforce reference    | warn control 3    | shadow control 3    | off control 3
enforce absent       | warn outside 0    | shadow ineligible 0 | off ineligible 0
"""


def rows():
    for line in TABLE.strip().splitlines():
        head, *answers = (part.strip() for part in line.split("|"))
        phase, _, place = head.partition(" ")
        kinds = ("eligible", "ineligible", "on a cron route")
        for kind, answer in zip(kinds, answers, strict=True):
            name = f"{phase}, {place.strip()}, {kind}"
            yield pytest.param(phase, place.strip(), kind, answer.split(), id=name)


@pytest.mark.parametrize(("phase", "place", "kind", "expected"), list(rows()))
def test_the_allotment_of_an_owner(phase, place, kind, expected):
    facts = None if kind == "ineligible" else ELIGIBLE
    route = Route.CRON if kind == "on a cron route" else Route.INTERACTIVE_FOREGROUND
    given_ = give(rollout_in(Mode(phase)), PLACES[place], facts, replace(ASKED, route=route))
    assert [given_.mode, given_.cohort, str(given_.wave)] == expected


@pytest.mark.parametrize(
    ("phase", "place", "facts", "reasons"),
    [
        pytest.param("enforce", "first", ELIGIBLE, (), id="drawn"),
        pytest.param("enforce", "absent", ELIGIBLE, (Reason.NOT_IN_ROSTER,), id="joined later"),
        pytest.param("warn", "absent", None, (Reason.UNKNOWN_OWNER,), id="unknown, not on it"),
        pytest.param("warn", "first", None, (Reason.UNKNOWN_OWNER,), id="unknown by now"),
        pytest.param("off", "absent", None, (Reason.UNKNOWN_OWNER,), id="off explains itself too"),
    ],
)
def test_an_allotment_has_its_reasons(phase, place, facts, reasons):
    assert give(rollout_in(Mode(phase)), PLACES[place], facts).reasons == reasons


def test_being_outside_of_the_roster_explains_but_does_not_lower_to_shadow():
    allotment = give(rollout_in(Mode.ENFORCE))
    assert (allotment.mode, allotment.reasons) == (Mode.WARN, (Reason.NOT_IN_ROSTER,))


def test_a_rostered_owner_that_changes_its_version_keeps_wave_and_cohort_in_shadow():
    question = replace(ASKED, version="2.0.0")
    allotment = give(rollout_in(Mode.ENFORCE), PLACES["first"], question=question)
    assert allotment == Allotment(Mode.SHADOW, Cohort.ENFORCED, 3, (Reason.VERSION_NOT_PINNED,))


@pytest.mark.parametrize("phase", Mode)
@pytest.mark.parametrize("place", PLACES)
def test_a_latched_environment_gives_shadow_at_most_and_names_the_latch_first(phase, place):
    allotment = give(rollout_in(phase), PLACES[place], None, is_latched=True)
    assert allotment.mode is Mode.SHADOW.at_most(phase)
    assert allotment.reasons == (Reason.ROLLOUT_LATCHED, Reason.UNKNOWN_OWNER)


def test_a_latch_does_not_take_an_owner_out_of_its_cohort():
    allotment = give(rollout_in(Mode.ENFORCE), PLACES["first"], is_latched=True)
    assert (allotment.cohort, allotment.wave) == (Cohort.ENFORCED, 3)


@pytest.mark.parametrize("phase", Mode)
@pytest.mark.parametrize("place", ["first", "reference"])
def test_a_draw_by_an_unknown_algorithm_gives_shadow_with_a_diagnostic(phase, place):
    known = PLACES[place]
    assert known is not None
    strange = replace(known, algorithm="guardwave-draw-2")
    allotment = give(rollout_in(phase), strange)
    assert allotment.mode is Mode.SHADOW.at_most(phase)
    if phase is not Mode.OFF:
        assert allotment.diagnostic is not None
        assert "guardwave-draw-2" in allotment.diagnostic


@pytest.mark.parametrize("place", ["first", "last treated", "reference"])
def test_after_enforced_was_lowered_its_owners_get_warn_at_wave_0(place):
    lowered = after(rollout_in(Mode.ENFORCE), ModeLowered(Cohort.ENFORCED, Mode.WARN))
    assert give(lowered, PLACES[place]) == Allotment(Mode.WARN, Cohort.WARNED, 0)


def test_after_enforced_was_lowered_an_owner_outside_of_the_roster_gets_shadow():
    lowered = after(rollout_in(Mode.ENFORCE), ModeLowered(Cohort.ENFORCED, Mode.WARN))
    allotment = give(lowered)
    assert (allotment.mode, allotment.cohort, allotment.wave) == (
        Mode.SHADOW,
        Cohort.OUTSIDE,
        0,
    )


def test_after_a_rollback_everybody_is_in_the_new_shadow_wave():
    rolled_back = after(rollout_in(Mode.ENFORCE), Restarted())
    assert give(rolled_back, PLACES["first"]) == Allotment(Mode.SHADOW, Cohort.EVERYONE, 4)


def test_enforce_without_an_open_wave_treats_nobody():
    broken = replace(rollout_in(Mode.ENFORCE), wave=0)
    assert give(broken, PLACES["first"]) == Allotment(Mode.WARN, Cohort.CONTROL, 0)


@pytest.mark.parametrize("rank", [0, -1, 3], ids=["zero", "negative", "behind the treated"])
def test_a_rank_that_is_not_among_the_treated_is_not_treated(rank):
    assert not Place(rank=rank, size=40, treated=2).is_treated


anything = {
    "facts": st.none() | owner_facts,
    "question": questions,
    "place": st.none() | places,
    "trusted": st.frozensets(producers),
    "is_latched": st.booleans(),
}


@given(rollout=states, **anything)
def test_it_never_raises_and_an_owner_with_a_reason_never_gets_more_than_shadow(
    rollout, facts, question, place, trusted, is_latched
):
    allotment = allot(
        rollout, facts, question, place=place, trusted_producers=trusted, is_latched=is_latched
    )
    assert allotment.mode.rank <= rollout.phase.rank
    if set(allotment.reasons) - {Reason.NOT_IN_ROSTER}:
        assert allotment.mode.rank <= Mode.SHADOW.rank
    if is_latched or facts is None or (place is not None and place.algorithm != ALGORITHM):
        assert allotment.mode.rank <= Mode.SHADOW.rank
    if allotment.mode is Mode.ENFORCE:
        assert place is not None
        assert 1 <= place.rank <= place.treated
        assert allotment.wave == rollout.wave > 0


@given(steps=histories(), **anything)
def test_a_wave_stands_in_an_allotment_exactly_when_the_owner_has_a_cohort_in_it(
    steps, facts, question, place, trusted, is_latched
):
    rollout = steps[-1].after
    allotment = allot(
        rollout, facts, question, place=place, trusted_producers=trusted, is_latched=is_latched
    )
    belongs = allotment.cohort not in {Cohort.INELIGIBLE, Cohort.OUTSIDE}
    assert allotment.wave == (rollout.wave if belongs else 0)
