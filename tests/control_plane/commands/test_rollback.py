"""Rollbacks: to shadow from any phase, repeatable, and held there until acknowledged."""

from dataclasses import replace

import pytest

from guardwave.control_plane.commands.cohorts import CohortChange, set_cohort_mode
from guardwave.control_plane.commands.environments import create_rollout
from guardwave.control_plane.commands.rollback import FoundViolation, acknowledge, latch, roll_back
from guardwave.control_plane.core.errors import (
    InvalidField,
    NotFound,
    PreconditionFailed,
    StateConflict,
)
from guardwave.control_plane.core.etags import environment_etag
from guardwave.control_plane.core.state import SYSTEM, Action, Lowering
from guardwave.reducer.vocabulary import Invariant, Mode
from tests.support.worlds import (
    ENVIRONMENT,
    GUARD,
    NOW,
    OPERATOR,
    VERSION,
    WHY,
    context_over,
    environment_of,
    world_in,
)

OTHER_GUARD = "duplicate_call_id"


def violation(identity: str = "record 1") -> FoundViolation:
    return FoundViolation(identity, Invariant.CONTRACT_VIOLATION, GUARD, Mode.WARN, 2)


def to_shadow(world, **how):
    how.setdefault("reason", WHY)
    return roll_back(world.context, ENVIRONMENT, actor=OPERATOR, **how)


def rollout(world, guard: str = GUARD):
    found = world.context.environments.rollout(ENVIRONMENT, guard)
    assert found is not None
    return found


def actions(world) -> list[object]:
    return [entry["action"] for entry in world.context.environments.audit_entries(ENVIRONMENT)]


@pytest.fixture(params=[Mode.WARN, Mode.ENFORCE])
def raised(store, request):
    return world_in(context_over(store), request.param)


def test_a_rollback_ends_in_shadow_and_says_what_it_lowered(raised):
    before = rollout(raised)
    done = to_shadow(raised)
    after = rollout(raised)
    assert (done.changed, done.is_verified, done.at, done.actor) == (True, True, NOW, OPERATOR)
    assert done.lowerings == (Lowering(GUARD, before.phase, Mode.SHADOW, after.generation),)
    assert (after.phase, after.salt_epoch) == (Mode.SHADOW, before.salt_epoch + 1)
    assert environment_of(raised.context).latch is None


def test_a_second_rollback_answers_the_first_and_changes_nothing(raised):
    first = to_shadow(raised)
    count = len(actions(raised))
    second = to_shadow(raised)
    assert (second.id, second.changed) == (first.id, False)
    assert len(actions(raised)) == count


@pytest.mark.parametrize("phase", [Mode.SHADOW, Mode.OFF])
def test_a_rollback_never_raises_a_mode(store, phase):
    world = world_in(context_over(store), Mode.SHADOW)
    if phase is Mode.OFF:
        switch_off(world)
    assert not to_shadow(world).changed
    assert rollout(world).phase is phase


def test_a_rollback_of_one_guard_leaves_the_others(raised):
    create_rollout(
        raised.context, ENVIRONMENT, OTHER_GUARD, version_pin=(VERSION,), actor=OPERATOR, reason=WHY
    )
    before = rollout(raised)
    assert not to_shadow(raised, guard=OTHER_GUARD).changed
    assert rollout(raised) == before
    assert to_shadow(raised, guard=GUARD).changed


def test_a_rollback_of_an_unknown_guard_is_not_found(raised):
    with pytest.raises(NotFound, match="no rollout in environment"):
        to_shadow(raised, guard=OTHER_GUARD)
    with pytest.raises(NotFound, match="no environment"):
        roll_back(raised.context, "nowhere", actor=OPERATOR, reason=WHY)


def test_a_rollback_needs_a_reason(raised):
    before = rollout(raised)
    with pytest.raises(InvalidField, match="at least 10"):
        to_shadow(raised, reason="because")
    assert rollout(raised) == before


def test_a_violation_lowers_every_guard_of_the_environment(raised):
    create_rollout(
        raised.context, ENVIRONMENT, OTHER_GUARD, version_pin=(VERSION,), actor=OPERATOR, reason=WHY
    )
    record = latch(raised.context, ENVIRONMENT, [violation()])
    assert record is not None
    assert (record.actor, record.violation, record.is_verified) == (SYSTEM, 1, True)
    assert {rollout(raised, guard).phase for guard in (GUARD, OTHER_GUARD)} == {Mode.SHADOW}


def newest_entry(world):
    (found,) = world.context.environments.audit_entries(ENVIRONMENT, count=1)
    return found


def wave(world, number: int):
    found = world.context.environments.wave(ENVIRONMENT, GUARD, number)
    assert found is not None
    return found


def test_a_violation_in_shadow_latches_and_begins_the_dwell_again(store):
    world = world_in(context_over(store), Mode.SHADOW)
    before = rollout(world)
    record = latch(world.context, ENVIRONMENT, [violation()])
    assert record is not None
    assert (record.changed, record.lowerings) == (True, ())
    assert environment_of(world.context).latch is not None
    after = rollout(world)
    assert (after.phase, after.generation) == (Mode.SHADOW, before.generation + 1)
    assert after.salt_epoch == before.salt_epoch + 1
    assert (wave(world, before.wave).closed_at, wave(world, after.wave).closed_at) == (NOW, None)
    entry = newest_entry(world)
    assert (entry["action"], entry["target"]) == (Action.LATCHED, f"{ENVIRONMENT}: {GUARD}")
    assert (entry["generation_before"], entry["generation_after"]) == (1, 2)


def switch_off(world) -> None:
    set_cohort_mode(
        world.context,
        ENVIRONMENT,
        GUARD,
        "everyone",
        change=CohortChange(mode=Mode.OFF),
        actor=OPERATOR,
        reason=WHY,
    )


def test_a_violation_leaves_off_what_is_off_and_moves_its_generation(store):
    world = world_in(context_over(store), Mode.SHADOW)
    switch_off(world)
    before = rollout(world)
    latch(world.context, ENVIRONMENT, [violation()])
    assert rollout(world) == replace(before, generation=before.generation + 1)


def test_a_rollback_of_several_guards_names_each_with_its_generations(raised):
    create_rollout(
        raised.context, ENVIRONMENT, OTHER_GUARD, version_pin=(VERSION,), actor=OPERATOR, reason=WHY
    )
    record = latch(raised.context, ENVIRONMENT, [violation()])
    assert record is not None
    assert [lowering.guard for lowering in record.lowerings] == [GUARD]
    entry = newest_entry(raised)
    assert entry["target"] == (
        f"{ENVIRONMENT}: {OTHER_GUARD} generation 1 -> 2, {GUARD} generation 2 -> 3"
    )
    assert (entry["generation_before"], entry["generation_after"]) == (None, None)


def test_a_further_violation_under_a_latch_is_recorded_and_no_more(raised):
    first = latch(raised.context, ENVIRONMENT, [violation()])
    before = rollout(raised)
    assert latch(raised.context, ENVIRONMENT, [violation("record 2")]) == first
    held = environment_of(raised.context)
    assert rollout(raised) == before
    assert held.latch is not None
    assert (held.latch.newest_violation, held.rollbacks) == (2, 1)
    assert newest_entry(raised)["action"] == Action.VIOLATION_RECORDED


def test_known_violations_change_nothing(raised):
    latch(raised.context, ENVIRONMENT, [violation()])
    before = environment_of(raised.context)
    assert latch(raised.context, ENVIRONMENT, [violation()]) is None
    assert environment_of(raised.context) == before


def release(world, *, rollback: int, last_violation: int, if_match: str | None = None):
    return acknowledge(
        world.context,
        ENVIRONMENT,
        rollback,
        last_violation=last_violation,
        actor=OPERATOR,
        reason=WHY,
        if_match=if_match or environment_etag(environment_of(world.context)),
    )


def test_a_person_releases_the_latch_with_the_newest_violation(raised):
    latch(raised.context, ENVIRONMENT, [violation()])
    assert release(raised, rollback=1, last_violation=1).latch is None
    assert rollout(raised).phase is Mode.SHADOW
    entry = newest_entry(raised)
    assert (entry["action"], entry["target"]) == (
        Action.ACKNOWLEDGED,
        f"rollback 1, violation 1: {GUARD}",
    )


def test_a_newer_violation_refuses_the_acknowledgement(raised):
    latch(raised.context, ENVIRONMENT, [violation()])
    seen = environment_etag(environment_of(raised.context))
    latch(raised.context, ENVIRONMENT, [violation("record 2")])
    with pytest.raises(PreconditionFailed):
        release(raised, rollback=1, last_violation=1, if_match=seen)
    with pytest.raises(StateConflict, match="the newest violation is 2, not 1; look at it"):
        release(raised, rollback=1, last_violation=1)
    assert environment_of(raised.context).latch is not None


def test_only_the_rollback_that_latched_is_acknowledged(raised):
    to_shadow(raised)
    with pytest.raises(StateConflict, match="latched by nothing, not by rollback 1"):
        release(raised, rollback=1, last_violation=0)
    latch(raised.context, ENVIRONMENT, [violation()])
    with pytest.raises(StateConflict, match="latched by rollback 2, not by rollback 1"):
        release(raised, rollback=1, last_violation=1)
    with pytest.raises(NotFound, match="no rollback 9"):
        release(raised, rollback=9, last_violation=1)
