"""Stale evaluations: none promotes once its rollout or its evidence has changed."""

from dataclasses import replace
from datetime import timedelta
from importlib import resources

import pytest

from guardwave.control_plane.commands.rollback import FoundViolation, latch, roll_back
from guardwave.control_plane.core.errors import EvaluationStale, Latched
from guardwave.control_plane.core.policy import parse
from guardwave.control_plane.core.state import CohortSums, Evaluation, PromotionStatus
from guardwave.control_plane.queries.gates import gate_page
from guardwave.reducer.vocabulary import Cohort, Invariant, Mode
from tests.support.hosts import logs
from tests.support.latches import release
from tests.support.lives import Life
from tests.support.worlds import ENVIRONMENT, GUARD, OPERATOR, WHY

VIOLATION = FoundViolation("record 1", Invariant.CONTRACT_VIOLATION, GUARD, Mode.WARN, 1)


@pytest.fixture
def life(store):
    """Three days of shadow: enough to know the owners, for evaluations that a test writes."""
    found = Life.begin(store)
    found.live(3)
    return found


def move_generation(life: Life) -> None:
    """Take a step and back: the phase is the same, the generation is not."""
    life.promote(Mode.WARN)
    roll_back(life.context, ENVIRONMENT, actor=OPERATOR, reason=WHY)


def test_an_evaluation_of_another_generation_is_stale(life):
    evaluation = life.within()
    move_generation(life)
    with pytest.raises(EvaluationStale, match="was made at generation 1, the rollout is at 3"):
        life.ask_promotion(evaluation, Mode.WARN)


def test_an_evaluation_older_than_a_day_is_stale(life):
    evaluation = life.within()
    life.calendar.now += timedelta(hours=24)
    life.ask_promotion(evaluation, Mode.WARN)
    life.calendar.now += timedelta(seconds=1)
    with pytest.raises(EvaluationStale, match=r"24 h old.*24 h; evaluate again") as refused:
        life.ask_promotion(evaluation, Mode.WARN)
    assert str(refused.value.extras["links"]).endswith("gate-evaluations'}")


@pytest.fixture
def stricter_life(life):
    """The same life under a policy that asks for more."""
    shipped = (
        resources.files("guardwave.control_plane.core").joinpath("policy.toml").read_text("utf-8")
    )
    policies = parse(shipped.replace("disruption = 0.005", "disruption = 0.004"))
    return replace(life, context=replace(life.context, policies=policies))


def test_an_evaluation_made_under_another_policy_is_stale(life, stricter_life):
    evaluation = life.within()
    refusal = f"under the policy {life.context.policies.hash[:12]}, .*; evaluate again"
    with pytest.raises(EvaluationStale, match=refusal) as refused:
        stricter_life.ask_promotion(evaluation, Mode.WARN)
    assert str(refused.value.extras["links"]).endswith("gate-evaluations'}")
    stricter_life.ask_promotion(stricter_life.within(), Mode.WARN)


def test_a_promotion_is_refused_when_the_policy_was_tightened_meanwhile(life, stricter_life):
    asked = life.ask_promotion(life.within(), Mode.WARN)
    assert "made under the policy" in refusal_of(stricter_life, asked.id)
    assert life.rollout.phase is Mode.SHADOW


def test_an_evaluation_that_names_no_policy_is_stale(life):
    with pytest.raises(EvaluationStale, match="under the policy unknown, in force is"):
        life.ask_promotion(life.within(result="{}"), Mode.WARN)


def refusal_of(life: Life, promotion: int) -> str:
    life.work()
    found = life.promotion(promotion)
    assert found.status is PromotionStatus.REFUSED
    assert found.decided_at is not None
    assert found.refusal is not None
    return found.refusal


def test_a_promotion_is_refused_when_the_environment_was_latched_meanwhile(life):
    asked = life.ask_promotion(life.within(), Mode.WARN)
    latch(life.context, ENVIRONMENT, [VIOLATION])
    assert "internal is latched by rollback 1; acknowledge it first" in refusal_of(life, asked.id)
    assert life.rollout.phase is Mode.SHADOW


def test_a_violation_makes_every_evaluation_before_it_stale_in_shadow_too(life):
    asked = life.ask_promotion(life.within(), Mode.WARN)
    latch(life.context, ENVIRONMENT, [VIOLATION])
    release(life.context)
    assert "was made at generation 1, the rollout is at 3" in refusal_of(life, asked.id)
    assert life.rollout.phase is Mode.SHADOW


def test_an_evaluation_made_under_a_latch_is_stale_when_it_is_released(life):
    latch(life.context, ENVIRONMENT, [VIOLATION])
    between = life.within()
    latch(life.context, ENVIRONMENT, [replace(VIOLATION, identity="record 2")])
    release(life.context)
    with pytest.raises(EvaluationStale, match="made at generation 2, the rollout is at 3"):
        life.ask_promotion(between, Mode.WARN)
    life.ask_promotion(life.within(), Mode.WARN)


def test_nothing_is_asked_for_while_latched(life):
    latch(life.context, ENVIRONMENT, [VIOLATION])
    with pytest.raises(Latched):
        life.ask_promotion(life.within(), Mode.WARN)


def test_a_promotion_is_refused_when_the_generation_moved_meanwhile(life):
    evaluation = life.within()
    first, second = (life.ask_promotion(evaluation, Mode.WARN) for _ in range(2))
    assert "evaluate again" in refusal_of(life, second.id)
    assert life.promotion(first.id).status is PromotionStatus.DONE


@pytest.fixture
def judged_week(store) -> tuple[Life, Evaluation]:
    """A week in shadow, 840 prompts, and the evaluation of its gate."""
    found = Life.begin(store, owners=30)
    found.live(7, per_owner=4)
    return found, found.evaluate()


def send_late_prompts(life: Life, *names: str, **changed: object) -> None:
    """Send further prompts of yesterday, which is sealed."""
    (first, *_) = life.prompts(life.today - timedelta(days=1))
    prompts = (replace(first, prompt_id=name) for name in names)
    late = [replace(prompt, **changed) for prompt in prompts]  # type: ignore[arg-type]  # any field
    life.host.send_prompts(*late)


LATE = tuple(f"late-{at}" for at in range(4))


def test_an_evaluation_keeps_the_sums_of_its_days(judged_week):
    _, evaluation = judged_week
    (sums,) = evaluation.cohort_sums
    assert (sums.cohort, sums.started, sums.ended, sums.covered) == (
        Cohort.EVERYONE,
        840,
        840,
        840,
    )
    assert sums.completed < 840
    assert evaluation.day_revisions == (1,) * 7


def test_an_evaluation_whose_days_were_revised_is_stale_when_asked_for(judged_week):
    life, evaluation = judged_week
    send_late_prompts(life, *LATE, "late-4")
    with pytest.raises(EvaluationStale, match="840 prompts then and has 845 now") as refused:
        life.ask_promotion(evaluation, Mode.WARN)
    assert str(refused.value.extras["links"]).endswith("gate-evaluations'}")
    offer = gate_page(life.context, ENVIRONMENT, GUARD, evaluation.id).offer
    assert offer is not None
    assert not offer.is_allowed
    assert "has 845 now; evaluate again" in (offer.why_not or "")


def test_the_gate_page_offers_no_step_on_a_verdict_of_another_policy(judged_week):
    life, evaluation = judged_week
    policies = replace(life.context.policies, hash="f" * 64)
    tightened = replace(life.context, policies=policies)
    offers = [
        gate_page(context, ENVIRONMENT, GUARD, evaluation.id).offer
        for context in (life.context, tightened)
    ]
    assert [offer is not None and offer.is_allowed for offer in offers] == [True, False]
    assert "in force is ffffffffffff; evaluate again" in str(offers[1])


def test_a_promotion_is_refused_when_the_days_were_revised_meanwhile(judged_week):
    life, evaluation = judged_week
    send_late_prompts(life, *LATE)
    tolerated = life.ask_promotion(evaluation, Mode.WARN)
    send_late_prompts(life, "late-4")
    refusal = refusal_of(life, tolerated.id)
    assert "everyone had 840 prompts then and has 845 now; evaluate again" in refusal


def test_revisions_within_the_tolerance_are_tolerated(judged_week):
    life, evaluation = judged_week
    send_late_prompts(life, *LATE)
    asked = life.ask_promotion(evaluation, Mode.WARN)
    life.work()
    assert life.promotion(asked.id).status is PromotionStatus.DONE


def resave(life, evaluation, **changed):
    """Store the same evaluation again, as if its days had held something else."""
    (sums,) = evaluation.cohort_sums
    return life.within(
        days_used=evaluation.days_used,
        day_revisions=(9,) * 7,
        cohort_sums=(replace(sums, **changed),),
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [
        pytest.param("cancelled", "cancelled prompts", id="cancelled"),
        pytest.param("completed", "completed prompts", id="completed"),
        pytest.param("disrupted", "disrupted prompts", id="disrupted"),
        pytest.param("ended", "ended prompts", id="ended"),
        pytest.param("lost", "lost prompts", id="lost"),
        pytest.param("covered", "covered prompts", id="covered"),
    ],
)
def test_every_sum_behind_metrics_and_coverage_can_make_an_evaluation_stale(
    judged_week, name, words
):
    life, evaluation = judged_week
    held = getattr(evaluation.cohort_sums[0], name)
    life.ask_promotion(resave(life, evaluation, **{name: held + 4}), Mode.WARN)
    refusal = f"everyone had {held + 5} {words} then and has {held} now"
    with pytest.raises(EvaluationStale, match=refusal):
        life.ask_promotion(resave(life, evaluation, **{name: held + 5}), Mode.WARN)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        pytest.param("tokens", "tokens", id="tokens"),
        pytest.param("turns", "model turns", id="turns"),
    ],
)
def test_amounts_that_moved_beyond_the_tolerance_make_an_evaluation_stale(judged_week, name, words):
    life, evaluation = judged_week
    held = getattr(evaluation.cohort_sums[0], name)
    assert held >= 840
    life.ask_promotion(resave(life, evaluation, **{name: round(held * 0.996)}), Mode.WARN)
    refusal = f"everyone had {round(held * 0.994)} {words} then and has {held} now"
    with pytest.raises(EvaluationStale, match=refusal):
        life.ask_promotion(resave(life, evaluation, **{name: round(held * 0.994)}), Mode.WARN)


def test_late_durations_make_an_evaluation_stale(judged_week):
    life, evaluation = judged_week
    with pytest.raises(EvaluationStale, match="had 0 prompts with a duration then and has 840 now"):
        life.ask_promotion(resave(life, evaluation, timed=0), Mode.WARN)


def test_few_late_prompts_with_many_tokens_make_an_evaluation_stale(judged_week):
    life, evaluation = judged_week
    send_late_prompts(life, "late-0", tokens=40_000)
    refusal = "everyone had 840000 tokens then and has 880000 now"
    with pytest.raises(EvaluationStale, match=refusal):
        life.ask_promotion(evaluation, Mode.WARN)


@pytest.mark.parametrize(
    ("seconds", "is_refused"),
    [
        pytest.param(30.0, False, id="as long as the others"),
        pytest.param(3_000.0, True, id="a hundred times as long"),
        pytest.param(0.3, True, id="a hundred times as short"),
    ],
)
def test_late_durations_that_move_the_typical_one_make_an_evaluation_stale(
    judged_week, seconds, is_refused
):
    life, evaluation = judged_week
    (first, *_) = life.prompts(life.today - timedelta(days=1))
    late = [replace(first, prompt_id=name) for name in LATE]
    ends = [prompt.end(**{"agent.guard.prompt.duration": seconds}) for prompt in late]
    assert life.host.send(logs([*(prompt.start() for prompt in late), *ends])).body == b""
    if is_refused:
        with pytest.raises(EvaluationStale, match="typical duration of a prompt of everyone moved"):
            life.ask_promotion(evaluation, Mode.WARN)
    else:
        assert life.ask_promotion(evaluation, Mode.WARN).status is PromotionStatus.PENDING


def test_a_switch_of_treatment_that_came_late_is_never_tolerated(judged_week):
    life, evaluation = judged_week
    refusal = "everyone had 1 prompts that switched treatment then and has 0 now"
    with pytest.raises(EvaluationStale, match=refusal):
        life.ask_promotion(resave(life, evaluation, switched=1), Mode.WARN)


@pytest.mark.parametrize(
    ("sums", "words"),
    [
        pytest.param((), "everyone had 0 prompts then and has 840 now", id="a cohort that came"),
        pytest.param(
            (CohortSums(Cohort.CONTROL, started=9),),
            "control had 9 prompts then and has 0 now",
            id="a cohort that went",
        ),
    ],
)
def test_a_cohort_that_came_or_went_makes_an_evaluation_stale(judged_week, sums, words):
    life, evaluation = judged_week
    revised = life.within(days_used=evaluation.days_used, day_revisions=(9,) * 7, cohort_sums=sums)
    with pytest.raises(EvaluationStale, match=words):
        life.ask_promotion(revised, Mode.WARN)


def test_days_of_the_same_revisions_are_not_read_again(judged_week):
    life, evaluation = judged_week
    other = life.within(
        days_used=evaluation.days_used, day_revisions=evaluation.day_revisions, cohort_sums=()
    )
    assert life.ask_promotion(other, Mode.WARN).status is PromotionStatus.PENDING
