"""Tolerated late records: judged again before a step rests on them."""

from dataclasses import replace
from datetime import timedelta

import pytest

from guardwave.control_plane.commands.promotions import carry_out
from guardwave.control_plane.core.state import Promotion, PromotionStatus
from guardwave.reducer.vocabulary import Mode, Verdict
from tests.support.hosts import logs
from tests.support.lives import Life
from tests.support.worlds import ENVIRONMENT, GUARD, VERSION

OTHER = "9.9.9"


@pytest.fixture
def life(store):
    """A week in shadow: 840 prompts, six of them, 0.7 %, from a version that is not pinned."""
    found = Life.begin(store, owners=30)
    found.live(7, per_owner=4, change=lambda prompt: None if is_other(prompt.prompt_id) else prompt)
    send_late_prompts(found, 6, version=OTHER, name="other")
    return found


def is_other(prompt_id: str) -> bool:
    """Whether a prompt's place is left for one of another version."""
    return prompt_id in {f"{ENVIRONMENT}-owner-{at}/2026-11-08/0" for at in range(6)}


def send_late_prompts(life: Life, many: int, *, name: str = "late", version: str = VERSION) -> None:
    """Send further prompts of yesterday, which is sealed."""
    prompts = list(life.prompts(life.today - timedelta(days=1)))[:many]
    named = [replace(prompt, prompt_id=f"{name}/{at}") for at, prompt in enumerate(prompts)]
    events = [event for prompt in named for event in prompt.events()]
    assert life.host.send(logs(events, version=version)).body == b""


def ask(life: Life) -> Promotion:
    evaluation = life.evaluate()
    assert evaluation.verdict == Verdict.WITHIN, evaluation.sentence
    return life.ask_promotion(evaluation, Mode.WARN)


def test_late_records_that_move_no_verdict_keep_no_step_waiting(life):
    asked = ask(life)
    send_late_prompts(life, 4)
    life.work()
    assert life.promotion(asked.id).status is PromotionStatus.DONE


def test_late_records_that_are_tolerated_and_move_the_verdict_refuse_the_step(life):
    asked = ask(life)
    send_late_prompts(life, 4, version=OTHER)
    life.work()
    found = life.promotion(asked.id)
    assert found.status is PromotionStatus.REFUSED
    refusal = found.refusal or ""
    assert (
        "late records changed the days of gate evaluation 1, and judged again they are " in refusal
    )
    assert "invalid: " in refusal
    assert refusal.endswith("Evaluate again")
    assert life.rollout.phase is Mode.SHADOW


def test_a_look_for_harm_that_is_due_is_made_before_the_step(store):
    life = Life.begin(store)
    life.live(3)
    life.promote(Mode.WARN)
    life.live(2)
    asked = life.ask_promotion(life.within(), Mode.ENFORCE)
    life.work()
    assert life.promotion(asked.id).status is PromotionStatus.DONE
    (look,) = life.context.incidents.harm_looks(ENVIRONMENT, GUARD)
    assert (look.wave, look.days) == (2, 1)


def test_nobody_takes_a_step_on_late_records_that_were_not_judged(life):
    asked = ask(life)
    send_late_prompts(life, 4)
    found = carry_out(life.context, ENVIRONMENT, GUARD, asked.id)
    assert found.status is PromotionStatus.REFUSED
    assert "while they were judged again" in (found.refusal or "")


def test_records_that_came_after_the_days_were_judged_refuse_the_step(life):
    asked = ask(life)
    send_late_prompts(life, 2)
    evaluation = life.evaluation(asked.gate_evaluation)
    judged = tuple(revision + 1 for revision in evaluation.day_revisions)
    found = carry_out(life.context, ENVIRONMENT, GUARD, asked.id, judged_revisions=judged)
    assert found.status is PromotionStatus.REFUSED
