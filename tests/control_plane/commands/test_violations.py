"""Violations without a latch: numbered, reported, bounded, and making evaluations stale."""

from datetime import timedelta

import pytest

from guardwave.control_plane.commands.rollback import MAX_OPEN_VIOLATIONS, FoundViolation, latch
from guardwave.control_plane.commands.violations import record_non_latching
from guardwave.control_plane.core.errors import EvaluationStale
from guardwave.control_plane.core.state import Action
from guardwave.reducer.vocabulary import Invariant, Mode, Verdict
from tests.support.lives import Life
from tests.support.worlds import ENVIRONMENT, GUARD, environment_of


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


def audit_actions(life: Life) -> list[object]:
    entries = life.context.environments.audit_entries(ENVIRONMENT)
    return [entry["action"] for entry in entries]


def test_a_violation_is_recorded_once_and_changes_neither_phase_nor_latch(life):
    before = life.rollout
    (recorded,) = record_non_latching(life.context, ENVIRONMENT, violations(range(1)))
    assert (recorded.id, recorded.latches) == (1, False)
    assert record_non_latching(life.context, ENVIRONMENT, violations(range(1))) == ()
    assert (environment_of(life.context).latch, life.rollout) == (None, before)
    assert audit_actions(life).count(Action.VIOLATION_RECORDED) == 1


def test_the_gate_of_its_wave_is_beyond_and_an_earlier_evaluation_stale(life):
    evaluation = life.within()
    record_non_latching(life.context, ENVIRONMENT, violations(range(1)))
    with pytest.raises(EvaluationStale, match="violation 1 was recorded after"):
        life.ask_promotion(evaluation, Mode.WARN)
    assert life.evaluate().verdict == Verdict.BEYOND


def test_under_a_latch_it_is_an_open_violation(life):
    latch(life.context, ENVIRONMENT, violations(range(1)))
    (recorded,) = record_non_latching(life.context, ENVIRONMENT, violations(range(1, 2)))
    held = environment_of(life.context).latch
    assert held is not None
    assert (held.first_violation, held.newest_violation) == (1, recorded.id)


def test_a_storm_of_violations_is_bounded_until_a_wave_opens(life):
    recorded = record_non_latching(
        life.context, ENVIRONMENT, violations(range(MAX_OPEN_VIOLATIONS + 5))
    )
    assert len(recorded) == MAX_OPEN_VIOLATIONS
    before = environment_of(life.context)
    assert record_non_latching(life.context, ENVIRONMENT, violations(range(2000, 2001))) == ()
    assert environment_of(life.context) == before
    life.calendar.now += timedelta(minutes=1)
    assert life.promote(Mode.WARN).wave == 2
    assert len(record_non_latching(life.context, ENVIRONMENT, violations(range(2000, 2001)))) == 1
