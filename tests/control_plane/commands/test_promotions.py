"""Promotions: one step up on a valid evaluation, to a frozen roster, or refused with the reason."""

import threading
from dataclasses import replace
from datetime import timedelta

import pytest

from guardwave.control_plane.commands.cohorts import CohortChange, set_cohort_mode
from guardwave.control_plane.commands.promotions import carry_out, request_promotion
from guardwave.control_plane.commands.rollback import roll_back
from guardwave.control_plane.commands.waves import start_wave
from guardwave.control_plane.core.errors import (
    GateRequired,
    InvalidField,
    NotFound,
    PreconditionFailed,
    RuleViolated,
    StateConflict,
    StepSkipped,
)
from guardwave.control_plane.core.etags import rollout_etag
from guardwave.control_plane.core.state import EvaluationStatus, PromotionStatus
from guardwave.control_plane.rollouts.promotion_rules import PromotionRequest
from guardwave.reducer.vocabulary import Mode, Verdict
from tests.support.hosts import Prompt, assignment_for, pseudonym_in
from tests.support.lives import Life
from tests.support.worlds import ENVIRONMENT, GUARD, OPERATOR, WHY


@pytest.fixture
def life(store):
    """Three days of shadow: enough to know the owners, for evaluations that a test writes."""
    found = Life.begin(store)
    found.live(3)
    return found


@pytest.fixture
def warned(life):
    assert life.promote(Mode.WARN).status is PromotionStatus.DONE
    return life


def roster(life: Life) -> tuple[str, ...]:
    found = life.context.environments.roster(ENVIRONMENT, GUARD, life.wave)
    assert found is not None
    return found.pseudonyms


def test_warn_freezes_a_roster_of_everybody_who_is_eligible(warned):
    wave = warned.wave
    assert (wave.phase, wave.roster_size, wave.treated) == (Mode.WARN, 24, 19)
    assert set(roster(warned)) == {pseudonym_in(warned.context, name) for name in warned.owners}
    assert wave.looks == (7,)


def test_the_roster_stays_as_it_was_frozen(warned):
    before = roster(warned)
    _, owner_id = assignment_for(warned.context, "newcomer")
    warned.host.send_prompts(Prompt("p-new", [owner_id], warned.calendar.now - timedelta(hours=1)))
    assert roster(warned) == before
    assert assignment_for(warned.context, "newcomer")[0].cohort == "outside"


@pytest.mark.parametrize("owners", [19, 20, 24, 39, 40, 61])
def test_the_share_that_is_treated_never_exceeds_the_ceiling(store, owners):
    life = Life.begin(store, owners=owners)
    life.live(3)
    life.promote(Mode.WARN)
    assert life.promote(Mode.ENFORCE).status is PromotionStatus.DONE
    wave = life.wave
    assert wave.roster_size == owners
    assert wave.treated == owners * 500 // 10_000
    assert wave.treated * 10_000 <= 500 * owners


def test_an_enforce_wave_takes_owners_that_are_stable(warned):
    visitor = warned.owners[0]
    silent = pseudonym_in(warned.context, visitor)
    warned.live(7, change=lambda prompt: None if prompt.prompt_id.startswith(visitor) else prompt)
    warned.promote(Mode.ENFORCE)
    assert silent not in roster(warned)
    assert warned.wave.roster_size == 23


def test_owners_without_days_that_count_are_not_stable(store):
    life = Life.begin(store)
    life.live(3)
    life.promote(Mode.WARN)
    # The newest days are sealed without any heartbeat: they are not complete.
    for _ in range(14):
        day = life.today
        life.calendar.now += timedelta(hours=22)
        life.host.send_prompts(*life.prompts(day))
        life.calendar.now += timedelta(hours=2)
        life.work()
    assert life.promote(Mode.ENFORCE).status is PromotionStatus.DONE
    assert life.wave.roster_size == 0


def test_a_promotion_names_its_evaluation_in_the_audit(warned):
    entry = warned.context.environments.audit_entries(ENVIRONMENT)[-1]
    entries = warned.context.environments.audit_entries(ENVIRONMENT)
    newest = max(entries, key=lambda entry: entry["sequence"])
    assert entry is not None
    assert (newest["action"], newest["gate_evaluation"]) == ("promoted", 1)
    assert newest["generation_after"] == newest["generation_before"] + 1


@pytest.mark.parametrize(
    ("verdict", "status"),
    [
        pytest.param(verdict, EvaluationStatus.DONE, id=verdict)
        for verdict in Verdict
        if verdict is not Verdict.WITHIN
    ],
)
def test_only_within_raises_a_mode(life, verdict, status):
    evaluation = life.within(verdict=verdict.value, status=status)
    word = verdict.replace("_", " ")
    with pytest.raises(StateConflict, match=f"is {word}, and only within raises a mode"):
        life.ask_promotion(evaluation, Mode.WARN)


def test_an_evaluation_that_is_not_done_raises_nothing(life):
    evaluation = life.within(status=EvaluationStatus.FAILED)
    with pytest.raises(StateConflict, match="is failed; wait until it is done"):
        life.ask_promotion(evaluation, Mode.WARN)


def test_an_evaluation_that_nobody_made_raises_nothing(life):
    request = PromotionRequest(99, "digest", Mode.WARN)
    with pytest.raises(NotFound, match=r"no gate evaluation 99; ask .* POST"):
        request_promotion(
            life.context, ENVIRONMENT, GUARD, request=request, actor=OPERATOR, reason=WHY
        )


def test_another_digest_is_refused_by_its_value(life):
    evaluation = replace(life.within(), digest="f" * 64)
    with pytest.raises(RuleViolated, match=r"digest of gate evaluation 1 is .*not 'fff") as refused:
        life.ask_promotion(evaluation, Mode.WARN)
    assert "'pointer': '/digest'" in str(refused.value.extras["errors"])


def test_no_step_is_skipped(life):
    with pytest.raises(StepSkipped):
        life.ask_promotion(life.within(), Mode.ENFORCE)


def test_the_ceiling_holds_for_every_request(warned):
    with pytest.raises(RuleViolated, match="exceed the ceiling of 500"):
        warned.ask_promotion(warned.within(), Mode.ENFORCE, share_bps=501)


def test_a_warning_leaves_the_holdback_that_the_policy_keeps(life):
    with pytest.raises(RuleViolated, match=r"holdback of 1999, the policy keeps 2000") as refused:
        life.ask_promotion(life.within(), Mode.WARN, share_bps=8001)
    assert "'pointer': '/share_bps'" in str(refused.value.extras["errors"])


@pytest.fixture
def lowered_ceiling(warned):
    """The same life under a policy whose ceiling was lowered after the rollout was created."""
    policies = warned.context.policies
    base = replace(policies.base, ceiling_bps=300)
    context = replace(warned.context, policies=replace(policies, base=base))
    return replace(warned, context=context)


def test_a_ceiling_that_was_lowered_binds_rollouts_that_exist(lowered_ceiling):
    with pytest.raises(RuleViolated, match="exceed the ceiling of 300"):
        lowered_ceiling.ask_promotion(lowered_ceiling.within(), Mode.ENFORCE, share_bps=301)
    assert lowered_ceiling.promote(Mode.ENFORCE).status is PromotionStatus.DONE
    assert lowered_ceiling.wave.treated_bps == 300
    with pytest.raises(StepSkipped):
        lowered_ceiling.ask_promotion(lowered_ceiling.within(), Mode.ENFORCE)


def test_a_ceiling_that_was_lowered_binds_no_longer_than_it_is_in_force(warned, lowered_ceiling):
    lowered_ceiling.promote(Mode.ENFORCE)
    assert warned.promote(Mode.ENFORCE).status is PromotionStatus.DONE
    assert warned.wave.treated_bps == 500


def test_a_ceiling_that_was_lowered_binds_a_wave_that_starts_again(warned, lowered_ceiling):
    warned.promote(Mode.ENFORCE)
    after, wave = start_wave(
        lowered_ceiling.context,
        ENVIRONMENT,
        GUARD,
        version_pin=None,
        looks=None,
        actor=OPERATOR,
        reason=WHY,
        if_match=rollout_etag(warned.rollout),
    )
    assert (after.ceiling_bps, wave.treated_bps) == (300, 300)


@pytest.mark.parametrize("share_bps", [0, -1, 10_001])
def test_a_share_is_at_least_one_basis_point(warned, share_bps):
    with pytest.raises(InvalidField, match=f"share_bps is {share_bps}"):
        warned.ask_promotion(warned.within(), Mode.ENFORCE, share_bps=share_bps)


def test_a_larger_share_is_a_promotion_of_its_own(warned):
    warned.promote(Mode.ENFORCE, share_bps=450)
    treated = set(roster(warned)[: warned.wave.treated])
    assert warned.promote(Mode.ENFORCE, share_bps=500).status is PromotionStatus.DONE
    assert treated <= set(roster(warned)[: warned.wave.treated])
    with pytest.raises(StepSkipped):
        warned.ask_promotion(warned.within(), Mode.ENFORCE, share_bps=500)


def test_a_stale_precondition_is_reported_before_anything_else(life):
    evaluation = life.within()
    assert evaluation.digest is not None
    with pytest.raises(PreconditionFailed):
        request_promotion(
            life.context,
            ENVIRONMENT,
            GUARD,
            request=PromotionRequest(evaluation.id, evaluation.digest, Mode.WARN),
            actor=OPERATOR,
            reason=WHY,
            if_match=rollout_etag(replace(life.rollout, generation=99)),
        )


def test_a_dry_run_asks_for_nothing(life):
    evaluation = life.within()
    assert evaluation.digest is not None
    answer = request_promotion(
        life.context,
        ENVIRONMENT,
        GUARD,
        request=PromotionRequest(evaluation.id, evaluation.digest, Mode.WARN),
        actor=OPERATOR,
        reason=WHY,
        is_dry_run=True,
    )
    life.work()
    assert (answer.id, answer.share_bps) == (0, 8000)
    assert life.context.gates.promotions(ENVIRONMENT, GUARD) == ()
    assert life.rollout.phase is Mode.SHADOW


def test_the_evidence_of_one_environment_counts_in_no_other(store):
    internal = Life.begin(store)
    internal.live(7)
    assert internal.evaluate().verdict == Verdict.WITHIN
    public = Life.begin(store, environment="public", calendar=internal.calendar)
    public.live(1)
    assert public.evaluate().verdict == Verdict.NO_DATA


def test_setting_a_cohort_higher_is_the_promotion_of_that_step(life):
    evaluation = life.within()
    asked = CohortChange(mode=Mode.WARN, gate_evaluation=evaluation.id, digest=evaluation.digest)
    answer = set_cohort_mode(
        life.context, ENVIRONMENT, GUARD, "warned", change=asked, actor=OPERATOR, reason=WHY
    )
    assert answer.promotion is not None
    assert answer.promotion.status is PromotionStatus.PENDING
    life.work()
    assert life.rollout.phase is Mode.WARN


def test_an_evaluation_that_is_named_does_not_hinder_a_demotion(warned):
    evaluation = warned.within()
    asked = CohortChange(mode=Mode.OFF, gate_evaluation=evaluation.id, digest=evaluation.digest)
    answer = set_cohort_mode(
        warned.context, ENVIRONMENT, GUARD, "warned", change=asked, actor=OPERATOR, reason=WHY
    )
    assert (answer.changed, answer.promotion) == (True, None)
    assert warned.rollout.phase is Mode.OFF


def test_setting_a_cohort_higher_without_an_evaluation_asks_for_one(life):
    with pytest.raises(GateRequired, match="name a gate evaluation") as refused:
        set_cohort_mode(
            life.context,
            ENVIRONMENT,
            GUARD,
            "warned",
            change=CohortChange(mode=Mode.WARN),
            actor=OPERATOR,
            reason=WHY,
        )
    assert "gate-evaluations" in str(refused.value.extras["links"])
    assert life.rollout.phase is Mode.SHADOW


@pytest.mark.parametrize("to", [Mode.WARN, Mode.ENFORCE])
def test_a_rollback_that_races_a_promotion_always_ends_in_shadow(life, to):
    outcomes = set()
    for _ in range(12):
        if to is Mode.ENFORCE:
            assert life.promote(Mode.WARN).status is PromotionStatus.DONE
        asked = life.ask_promotion(life.within(), to)
        barrier = threading.Barrier(2)

        def promote(number=asked.id, barrier=barrier) -> None:
            barrier.wait()
            carry_out(life.context, ENVIRONMENT, GUARD, number)

        def roll(barrier=barrier) -> None:
            barrier.wait()
            done = roll_back(life.context, ENVIRONMENT, actor=OPERATOR, reason=WHY)
            assert done.is_verified

        threads = [threading.Thread(target=work) for work in (promote, roll)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        life.work()
        assert life.rollout.phase is Mode.SHADOW
        outcomes.add(life.promotion(asked.id).status)
    assert outcomes <= {PromotionStatus.DONE, PromotionStatus.REFUSED}


def test_two_workers_that_carry_out_one_promotion_take_one_step(life):
    asked = life.ask_promotion(life.within(), Mode.WARN)
    barrier = threading.Barrier(2)
    done = []

    def promote() -> None:
        barrier.wait()
        done.append(carry_out(life.context, ENVIRONMENT, GUARD, asked.id))

    threads = [threading.Thread(target=promote) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [promotion.status for promotion in done] == [PromotionStatus.DONE] * 2
    assert life.promotion(asked.id).status is PromotionStatus.DONE
    assert (life.rollout.phase, life.rollout.generation) == (Mode.WARN, 2)
