"""Rollbacks of waiting promotions: they outrank what the worker still has to do, in shadow too."""

import pytest

from guardwave.control_plane.commands.environments import create_rollout
from guardwave.control_plane.commands.promotions import carry_out
from guardwave.control_plane.commands.rollback import FoundViolation, latch, roll_back
from guardwave.control_plane.core.state import Action, PromotionStatus
from guardwave.reducer.vocabulary import Invariant, Mode
from tests.support.lives import Life
from tests.support.worlds import ENVIRONMENT, GUARD, OPERATOR, VERSION, WHY

OTHER_GUARD = "duplicate_call_id"


@pytest.fixture
def life(store):
    """Three days of shadow, and a second guard of which nothing is known."""
    found = Life.begin(store)
    found.live(3)
    create_rollout(
        found.context, ENVIRONMENT, OTHER_GUARD, version_pin=(VERSION,), actor=OPERATOR, reason=WHY
    )
    return found


def to_shadow(life: Life, guard: str | None = None):
    return roll_back(life.context, ENVIRONMENT, actor=OPERATOR, reason=WHY, guard=guard)


def entries(life: Life) -> tuple[dict[str, object], ...]:
    return life.context.environments.audit_entries(ENVIRONMENT)


@pytest.mark.parametrize("guard", [None, GUARD])
def test_a_rollback_in_shadow_refuses_the_pending_promotion(life, guard):
    asked = life.ask_promotion(life.within(), Mode.WARN)
    done = to_shadow(life, guard)
    assert (done.id, done.changed, done.lowerings, done.is_verified) == (1, True, (), True)
    held = life.promotion(asked.id)
    assert (held.status, held.refusal) == (PromotionStatus.REFUSED, f"rolled back: {WHY}")
    assert held.decided_at == life.calendar.now
    life.work()
    assert life.promotion(asked.id) == held
    assert life.rollout.phase is Mode.SHADOW


def test_the_audit_entry_names_every_refused_promotion(life):
    numbers = [life.ask_promotion(life.within(), Mode.WARN).id for _ in range(2)]
    to_shadow(life)
    entry = entries(life)[0]
    assert (entry["action"], entry["reason"]) == (Action.ROLLED_BACK, WHY)
    assert entry["target"] == f"{ENVIRONMENT}: {GUARD}, " + ", ".join(
        f"refused promotion {number} of {GUARD}" for number in numbers
    )


def test_a_pending_promotion_is_refused_together_with_a_demotion(life):
    life.promote(Mode.WARN)
    asked = life.ask_promotion(life.within(), Mode.ENFORCE)
    done = to_shadow(life)
    assert [lowering.guard for lowering in done.lowerings] == [GUARD]
    assert life.promotion(asked.id).status is PromotionStatus.REFUSED
    assert entries(life)[0]["target"] == (
        f"{ENVIRONMENT}: {GUARD}, refused promotion {asked.id} of {GUARD}"
    )


def test_more_promotions_than_a_page_shows_are_all_refused(life):
    evaluation = life.within()
    numbers = [life.ask_promotion(evaluation, Mode.WARN).id for _ in range(51)]
    to_shadow(life)
    assert {life.promotion(number).status for number in numbers} == {PromotionStatus.REFUSED}


def test_a_rollback_of_another_guard_leaves_a_promotion_pending(life):
    asked = life.ask_promotion(life.within(), Mode.WARN)
    assert not to_shadow(life, OTHER_GUARD).changed
    assert life.promotion(asked.id).status is PromotionStatus.PENDING


def test_a_decided_promotion_is_not_refused_after_the_fact(life):
    done = life.promote(Mode.WARN)
    to_shadow(life)
    assert life.promotion(done.id) == done
    before = len(entries(life))
    assert not to_shadow(life).changed
    assert len(entries(life)) == before


def test_a_promotion_asked_for_after_the_rollback_is_carried_out(life):
    life.ask_promotion(life.within(), Mode.WARN)
    to_shadow(life)
    assert life.promote(Mode.WARN).status is PromotionStatus.DONE


def test_an_automatic_rollback_leaves_nothing_that_waits_to_be_carried_out(life):
    asked = life.ask_promotion(life.within(), Mode.WARN)
    found = FoundViolation("record 1", Invariant.CONTRACT_VIOLATION, GUARD, Mode.WARN, 1)
    latch(life.context, ENVIRONMENT, [found])
    assert carry_out(life.context, ENVIRONMENT, GUARD, asked.id).status is PromotionStatus.REFUSED
    assert life.rollout.phase is Mode.SHADOW


def test_a_rollback_with_nothing_to_do_answers_the_newest_one_of_the_guard(life):
    life.promote(Mode.WARN)
    of_guard = to_shadow(life, GUARD)
    nothing = to_shadow(life, OTHER_GUARD)
    assert (nothing.id, nothing.changed, nothing.guards) == (0, False, (OTHER_GUARD,))
    assert nothing.is_verified
    life.promote(Mode.WARN)
    of_all = to_shadow(life)
    assert (of_all.guards, to_shadow(life, OTHER_GUARD).id) == (
        (OTHER_GUARD, GUARD),
        of_all.id,
    )
    life.promote(Mode.WARN)
    newest = to_shadow(life, GUARD)
    assert [to_shadow(life, GUARD).id, to_shadow(life, OTHER_GUARD).id] == [
        newest.id,
        of_all.id,
    ]
    assert of_guard.id == 1
