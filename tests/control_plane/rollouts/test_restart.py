"""Restarts: after a rollback in shadow or a released latch, no earlier day counts."""

import pytest

from guardwave.control_plane.commands.cohorts import CohortChange, set_cohort_mode
from guardwave.control_plane.commands.environments import create_rollout
from guardwave.control_plane.commands.evaluations import request_evaluation
from guardwave.control_plane.commands.rollback import (
    MAX_OPEN_VIOLATIONS,
    FoundViolation,
    latch,
    roll_back,
)
from guardwave.control_plane.core.errors import EvaluationStale
from guardwave.control_plane.core.etags import rollout_etag
from guardwave.control_plane.core.state import Action, EvaluationStatus
from guardwave.reducer.rollout.draw import salt_text
from guardwave.reducer.vocabulary import Gate, Invariant, Mode, Verdict
from tests.support.latches import release
from tests.support.lives import Life
from tests.support.worlds import ENVIRONMENT, GUARD, OPERATOR, VERSION, WHY, environment_of

OTHER_GUARD = "duplicate_call_id"


@pytest.fixture
def life(store):
    return Life.begin(store)


def to_shadow(life: Life):
    return roll_back(life.context, ENVIRONMENT, actor=OPERATOR, reason=WHY)


def set_everyone(life: Life, mode: Mode, *, cohort: str = "everyone") -> None:
    set_cohort_mode(
        life.context,
        ENVIRONMENT,
        GUARD,
        cohort,
        change=CohortChange(mode=mode),
        actor=OPERATOR,
        reason=WHY,
        if_match=rollout_etag(life.rollout),
    )


def violate(life: Life, numbers: range = range(1)) -> None:
    found = [
        FoundViolation(f"record {at}", Invariant.CONTRACT_VIOLATION, GUARD, Mode.SHADOW, 1)
        for at in numbers
    ]
    latch(life.context, ENVIRONMENT, found)


def entries(life: Life) -> tuple[dict[str, object], ...]:
    return life.context.environments.audit_entries(ENVIRONMENT)


def closed_at(life: Life, number: int):
    wave = life.context.environments.wave(ENVIRONMENT, GUARD, number)
    assert wave is not None
    return wave.closed_at


def test_a_rollback_in_shadow_closes_the_wave_and_opens_another(life):
    life.live(3)
    before = life.rollout
    done = to_shadow(life)
    after = life.rollout
    assert (done.id, done.changed, done.lowerings, done.is_verified) == (1, True, (), True)
    assert (after.phase, after.wave, after.generation) == (Mode.SHADOW, 2, before.generation + 1)
    assert after.salt_epoch == before.salt_epoch + 1
    assert (closed_at(life, 1), closed_at(life, 2)) == (life.calendar.now, None)
    assert entries(life)[0]["target"] == f"{ENVIRONMENT}: {GUARD}"


def test_the_days_before_a_rollback_in_shadow_prove_nothing(life):
    life.live(7)
    evaluation = life.evaluate()
    assert evaluation.verdict == Verdict.WITHIN
    to_shadow(life)
    with pytest.raises(EvaluationStale):
        life.ask_promotion(evaluation, Mode.WARN)
    life.live(7)  # the day of the rollback is no whole one
    assert life.evaluate().verdict == Verdict.UNPROVEN
    life.live(1)
    assert life.evaluate().verdict == Verdict.WITHIN


def test_a_rollback_in_shadow_that_is_repeated_changes_nothing(life):
    life.live(3)
    first = to_shadow(life)
    held = (life.rollout, len(entries(life)))
    again = to_shadow(life)
    assert (again.id, again.changed) == (first.id, False)
    assert (life.rollout, len(entries(life))) == held


def test_a_rollback_on_a_later_day_restarts_again(life):
    life.live(1)
    to_shadow(life)
    life.live(2)
    assert to_shadow(life).id == 2
    assert life.rollout.wave == 3


def test_a_salt_that_drew_a_roster_ends_with_a_rollback(life):
    assert life.promote(Mode.WARN).refusal is None
    drawn = life.wave.salt
    set_everyone(life, Mode.OFF, cohort="warned")
    set_everyone(life, Mode.SHADOW)
    assert salt_text(life.rollout.salt, life.rollout.salt_epoch) == drawn
    assert to_shadow(life).changed
    assert salt_text(life.rollout.salt, life.rollout.salt_epoch) != drawn
    assert not to_shadow(life).changed


def test_shadow_without_a_wave_gets_one_by_a_rollback(life):
    assert life.promote(Mode.WARN).refusal is None
    set_everyone(life, Mode.SHADOW, cohort="warned")
    assert life.rollout.wave == 0
    assert to_shadow(life).changed
    assert (life.rollout.phase, life.rollout.wave) == (Mode.SHADOW, 3)


def test_under_a_latch_neither_rollbacks_nor_violations_open_a_wave(life):
    life.live(1)
    violate(life)
    held = life.rollout
    life.live(2)
    violate(life, range(10, 15))
    done = to_shadow(life)
    assert (done.id, done.changed, life.rollout) == (1, False, held)


@pytest.mark.parametrize(
    "violations",
    [pytest.param(1, id="one violation"), pytest.param(MAX_OPEN_VIOLATIONS + 1, id="a full latch")],
)
def test_no_day_under_a_latch_counts(life, violations):
    life.live(1)
    violate(life, range(violations))
    life.live(8)
    violate(life, range(5000, 5050))
    under_latch = life.evaluate()
    release(life.context)
    assert life.rollout.phase is Mode.SHADOW
    assert life.wave.opened_at == life.calendar.now
    with pytest.raises(EvaluationStale, match="generation"):
        life.ask_promotion(life.within(generation=under_latch.generation), Mode.WARN)
    life.live(7)  # the day of the release is no whole one
    assert life.evaluate().verdict == Verdict.UNPROVEN
    life.live(1)
    assert life.evaluate().verdict == Verdict.WITHIN


def test_the_release_and_the_new_waves_are_one_commit(life):
    life.live(1)
    create_rollout(
        life.context, ENVIRONMENT, OTHER_GUARD, version_pin=(VERSION,), actor=OPERATOR, reason=WHY
    )
    violate(life)
    before = environment_of(life.context).sequence
    release(life.context)
    assert environment_of(life.context).sequence == before + 1
    entry = entries(life)[0]
    assert entry["action"] == Action.ACKNOWLEDGED
    assert entry["target"] == (
        f"rollback 1, violation 1: {OTHER_GUARD} generation 2 -> 3, {GUARD} generation 2 -> 3"
    )


def test_a_release_leaves_off_what_is_off(life):
    set_everyone(life, Mode.OFF)
    violate(life)
    held = life.rollout
    release(life.context)
    assert (life.rollout, held.phase) == (held, Mode.OFF)


def test_an_evaluation_asked_for_under_a_latch_ends_with_it(life):
    life.live(7)
    violate(life)
    asked = request_evaluation(life.context, ENVIRONMENT, GUARD, gate=Gate.SHADOW, actor=OPERATOR)
    release(life.context)
    life.work()
    done = life.evaluation(asked.id)
    assert (done.status, done.sentence) == (
        EvaluationStatus.FAILED,
        "the wave it was asked for is over; ask again",
    )
