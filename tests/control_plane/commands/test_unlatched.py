"""Violations that are recorded without a latch: numbered, told, stale-making, and bounded."""

from datetime import timedelta

import pytest

from control_plane.commands.rollback import OPEN_VIOLATIONS, FoundViolation, latch
from control_plane.commands.unlatched import record_unlatched
from control_plane.errors import EvaluationStale
from control_plane.state import Action
from reducer.vocabulary import Invariant, Mode, Verdict
from tests.control_plane.lives import Life
from tests.control_plane.worlds import ENVIRONMENT, GUARD, environment_of


@pytest.fixture
def life(store):
    found = Life.begin(store)
    found.live(7)
    return found


def violations(numbers: range) -> list[FoundViolation]:
    return [
        FoundViolation(f"prompt {at}", Invariant.STOP_WITHOUT_WARN, GUARD, Mode.SHADOW, 1)
        for at in numbers
    ]


def audited(life: Life) -> list[object]:
    entries = life.context.environments.audit_entries(ENVIRONMENT)
    return [entry["action"] for entry in entries]


def test_it_is_recorded_once_and_leaves_phases_and_latch_alone(life):
    before = life.rollout
    (told,) = record_unlatched(life.context, ENVIRONMENT, violations(range(1)))
    assert (told.id, told.latches) == (1, False)
    assert record_unlatched(life.context, ENVIRONMENT, violations(range(1))) == ()
    assert (environment_of(life.context).latch, life.rollout) == (None, before)
    assert audited(life).count(Action.VIOLATION_RECORDED) == 1


def test_the_gate_of_its_wave_is_beyond_and_an_earlier_evaluation_stale(life):
    evaluation = life.within()
    record_unlatched(life.context, ENVIRONMENT, violations(range(1)))
    with pytest.raises(EvaluationStale, match="violation 1 was recorded after"):
        life.ask_promotion(evaluation, Mode.WARN)
    assert life.evaluate().verdict == Verdict.BEYOND


def test_under_a_latch_it_is_one_of_those_to_look_at(life):
    latch(life.context, ENVIRONMENT, violations(range(1)))
    (told,) = record_unlatched(life.context, ENVIRONMENT, violations(range(1, 2)))
    held = environment_of(life.context).latch
    assert held is not None
    assert (held.first_violation, held.newest_violation) == (1, told.id)


def test_a_storm_of_them_is_bounded_until_a_wave_opens(life):
    told = record_unlatched(life.context, ENVIRONMENT, violations(range(OPEN_VIOLATIONS + 5)))
    assert len(told) == OPEN_VIOLATIONS
    before = environment_of(life.context)
    assert record_unlatched(life.context, ENVIRONMENT, violations(range(2000, 2001))) == ()
    assert environment_of(life.context) == before
    life.calendar.now += timedelta(minutes=1)
    assert life.promote(Mode.WARN).wave == 2
    assert len(record_unlatched(life.context, ENVIRONMENT, violations(range(2000, 2001)))) == 1
