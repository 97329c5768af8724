"""Evaluation validity: contradicted by newer evidence, an evaluation promotes nothing."""

from dataclasses import replace
from datetime import timedelta

import pytest

from guardwave.control_plane.commands.waves import start_wave
from guardwave.control_plane.core.clock import to_ns
from guardwave.control_plane.core.errors import EvaluationStale, HarmAlarm
from guardwave.control_plane.core.etags import rollout_etag
from guardwave.control_plane.core.state import (
    EvaluationStatus,
    HarmLook,
    MetricLook,
    PromotionStatus,
)
from guardwave.control_plane.queries.gates import gate_page
from guardwave.reducer.rollout.days import day_start
from guardwave.reducer.vocabulary import Metric, Mode, Verdict
from tests.support.lives import Life
from tests.support.otlp import bodies
from tests.support.worlds import ENVIRONMENT, GUARD, OPERATOR, VERSION, WHY


@pytest.fixture
def life(store):
    """Three days of shadow: enough to know the owners, for evaluations that a test writes."""
    found = Life.begin(store)
    found.live(3)
    return found


@pytest.mark.parametrize(
    "verdict", [verdict for verdict in Verdict if verdict is not Verdict.WITHIN]
)
def test_an_evaluation_is_stale_once_a_newer_one_of_its_wave_says_otherwise(life, verdict):
    first = life.within()
    newer = life.within(verdict=verdict.value, sentence="Tokens moved")
    refusal = (
        f"evaluation {newer.id} .* newer than {first.id} and is {verdict}: Tokens moved. Evalu"
    )
    with pytest.raises(EvaluationStale, match=refusal) as refused:
        life.ask_promotion(first, Mode.WARN)
    assert str(refused.value.extras["links"]).endswith("gate-evaluations'}")


def test_a_newer_evaluation_that_could_not_be_made_says_otherwise_too(life):
    first = life.within()
    life.within(status=EvaluationStatus.FAILED, verdict=None, sentence="it contradicts itself")
    with pytest.raises(EvaluationStale, match=r"is failed: it contradicts itself\. Evaluate"):
        life.ask_promotion(first, Mode.WARN)


def test_the_newest_evaluation_promotes_whatever_older_ones_said(life):
    life.within(verdict=Verdict.BEYOND.value)
    assert life.promote(Mode.WARN).status is PromotionStatus.DONE


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({}, id="one that is within"),
        pytest.param({"verdict": "beyond", "wave": 7}, id="one of another wave"),
        pytest.param(
            {"verdict": None, "status": EvaluationStatus.PENDING}, id="one that is not finished"
        ),
    ],
)
def test_other_newer_evaluations_do_not_contradict_it(life, changed):
    first = life.within()
    life.within(**changed)
    assert life.ask_promotion(first, Mode.WARN).status is PromotionStatus.PENDING


def test_a_promotion_is_refused_when_a_newer_evaluation_said_otherwise_meanwhile(life):
    asked = life.ask_promotion(life.within(), Mode.WARN)
    life.within(verdict=Verdict.UNPROVEN.value, sentence="Six of seven days.")
    life.work()
    found = life.promotion(asked.id)
    assert found.status is PromotionStatus.REFUSED
    assert "is unproven: Six of seven days. Evaluate again" in (found.refusal or "")
    assert life.rollout.phase is Mode.SHADOW


def look(life: Life, *, wave: int, number: int = 8, is_raised: bool = True) -> None:
    """Record a look for harm, as the worker does."""
    sentence = "Tokens: at least 1.2 times the reference."
    raised = MetricLook(Metric.TOKENS, is_raised, 2.0, 1.2, 1.1, sentence)
    found = HarmLook(
        GUARD, wave, number, number, life.today, at=life.calendar.now, metrics=(raised,)
    )
    life.context.incidents.record_harm_look(ENVIRONMENT, found)


@pytest.fixture
def warned(life):
    assert life.promote(Mode.WARN).status is PromotionStatus.DONE
    return life


def test_a_wave_in_which_a_look_found_harm_is_not_promoted(warned):
    evaluation = warned.within()
    asked = warned.ask_promotion(evaluation, Mode.ENFORCE)
    look(warned, wave=2)
    refusal = r"after 8 complete days of wave 2, through 20.*, raised an alarm: Tokens: .* new one"
    with pytest.raises(HarmAlarm, match=refusal) as refused:
        warned.ask_promotion(evaluation, Mode.ENFORCE)
    assert str(refused.value.extras["links"]).endswith("gate-evaluations'}")
    warned.work()
    found = warned.promotion(asked.id)
    assert found.status is PromotionStatus.REFUSED
    assert "raised an alarm: Tokens" in (found.refusal or "")


def test_the_gate_page_offers_no_step_after_an_alarm_in_its_wave(store):
    life = Life.begin(store, owners=30)
    life.live(7, per_owner=4)
    evaluation = life.evaluate()
    look(life, wave=1)
    offer = gate_page(life.context, ENVIRONMENT, GUARD, evaluation.id).offer
    assert offer is not None
    assert not offer.is_allowed
    assert "raised an alarm: Tokens" in (offer.why_not or "")


def test_a_later_look_without_an_alarm_takes_none_back(warned):
    look(warned, wave=2)
    look(warned, wave=2, number=9, is_raised=False)
    with pytest.raises(HarmAlarm, match="after 8 complete days"):
        warned.ask_promotion(warned.within(), Mode.ENFORCE)


def test_an_alarm_ends_with_its_wave(warned):
    look(warned, wave=1)
    look(warned, wave=2)
    start_wave(
        warned.context,
        ENVIRONMENT,
        GUARD,
        actor=OPERATOR,
        reason=WHY,
        version_pin=None,
        looks=None,
        if_match=rollout_etag(warned.rollout),
    )
    assert warned.promote(Mode.ENFORCE).status is PromotionStatus.DONE


def test_a_used_day_that_does_not_count_any_more_makes_the_evaluation_stale(store):
    life = Life.begin(store, owners=30)
    life.live(7, per_owner=4)
    evaluation = life.evaluate()
    assert evaluation.verdict == Verdict.WITHIN
    asked = life.ask_promotion(evaluation, Mode.WARN)
    count_lost_prompts(life)
    refusal = f"{evaluation.days_used[-1]}, which gate evaluation 1 used, does not count any more: "
    with pytest.raises(
        EvaluationStale, match=f"{refusal}counters show .* no event reports"
    ) as refused:
        life.ask_promotion(evaluation, Mode.WARN)
    assert str(refused.value.extras["links"]).endswith("gate-evaluations'}")
    life.work()
    found = life.promotion(asked.id)
    assert found.status is PromotionStatus.REFUSED
    assert refusal in (found.refusal or "")


def count_lost_prompts(life: Life) -> None:
    """Let a counter show more prompts of yesterday than events reported."""
    day = life.today - timedelta(days=1)
    request = bodies.counter_request(
        {
            "agent.guard.name": GUARD,
            "agent.guard.mode": "shadow",
            "agent.guard.prompt.stage": "start",
        },
        metric="agent.guard.prompts",
        as_int=400,
        start_time_unix_nano=to_ns(day_start(day) + timedelta(hours=3)),
        time_unix_nano=to_ns(day_start(day) + timedelta(hours=20)),
    )
    for attribute in request.resource_metrics[0].resource.attributes:
        if attribute.key == "service.version":
            attribute.value.string_value = VERSION
    assert life.host.send(request).status == 200


def test_an_earlier_day_that_became_complete_makes_the_evaluation_stale(store):
    life = Life.begin(store, owners=30)
    life.live(6, per_owner=4)
    empty = life.today
    life.live(1, change=lambda _: None)
    life.live(1, per_owner=4)
    evaluation = life.evaluate()
    assert evaluation.verdict == Verdict.WITHIN
    assert empty not in evaluation.days_used
    (prompt, *_) = life.prompts(empty)
    at = day_start(empty) + timedelta(hours=20)
    assert life.host.send_prompts(replace(prompt, prompt_id="late", at=at)).body == b""
    with pytest.raises(EvaluationStale, match=f"{empty} became complete after gate evaluation 1"):
        life.ask_promotion(evaluation, Mode.WARN)
