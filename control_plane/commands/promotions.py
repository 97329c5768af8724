"""One step up: asked for by a person, naming a gate evaluation; carried out by the worker."""

from dataclasses import dataclass, replace
from datetime import timedelta

from control_plane.commands.changes import (
    Change,
    Decision,
    Note,
    Unchanged,
    change,
    check_reason,
    close_wave,
    load_environment,
    load_rollout,
    put_rollout,
    put_wave,
)
from control_plane.commands.refusals import error_of
from control_plane.commands.rosters import frozen_wave
from control_plane.context import Context
from control_plane.errors import (
    EvaluationStale,
    InvalidField,
    Latched,
    NotFound,
    RuleViolated,
    StateConflict,
)
from control_plane.etags import check_precondition, rollout_etag
from control_plane.state import (
    Action,
    Actor,
    Environment,
    Evaluation,
    EvaluationStatus,
    Promotion,
    PromotionStatus,
)
from control_plane.stores.codec import encode
from control_plane.stores.environments import Put
from control_plane.stores.jobs import Job, JobKind
from control_plane.stores.keys import EnvironmentKeys
from reducer.rollout.draw import BPS
from reducer.rollout.ladder import Promoted, Refusal, apply
from reducer.rollout.phases import gate_for
from reducer.rollout.state import Rollout, Wave
from reducer.vocabulary import Mode, Verdict


@dataclass(frozen=True, slots=True)
class PromotionRequest:
    """Which step, on which evidence. `share_bps` None: what the policy says for that step."""

    gate_evaluation: int
    digest: str
    to: Mode
    share_bps: int | None = None


def request_promotion(
    context: Context,
    environment: str,
    guard: str,
    *,
    request: PromotionRequest,
    actor: Actor,
    reason: str,
    if_match: str | None = None,
    is_dry_run: bool = False,
) -> Promotion:
    """Keep a pending promotion for the worker, after the checks that can already be made.

    Raises:
        NotFound: unknown environment, rollout or evaluation.
        Latched, EvaluationStale, StateConflict, StepSkipped, RuleViolated: why it cannot be.
    """
    reason = check_reason(reason)
    held = load_environment(context, environment)
    rollout = load_rollout(context, environment, guard)
    check_precondition(if_match, rollout_etag(rollout), is_required=False)
    evaluation = context.gates.evaluation(environment, guard, request.gate_evaluation)
    if evaluation is None:
        raise NotFound(
            f"{guard} in {environment} has no gate evaluation {request.gate_evaluation}; ask for "
            "one with POST .../gate-evaluations"
        )
    check_evaluation(context, held, rollout, evaluation, request=request)
    draft = _draft_wave(context, rollout, request)
    after = apply(rollout, Promoted(draft))
    if isinstance(after, Refusal):
        raise error_of(after, rollout)
    number = 0 if is_dry_run else context.gates.next_promotion(environment, guard)
    promotion = Promotion(
        id=number,
        guard=guard,
        gate_evaluation=request.gate_evaluation,
        digest=request.digest,
        to=request.to,
        share_bps=draft.treated_bps,
        reason=reason,
        actor=actor,
        requested_at=context.clock.now(),
    )
    if not is_dry_run:
        context.gates.save_promotion(environment, promotion)
        context.jobs.put(environment, Job(JobKind.PROMOTE, guard, number))
    return promotion


def check_evaluation(
    context: Context,
    environment: Environment,
    rollout: Rollout,
    evaluation: Evaluation,
    *,
    request: PromotionRequest,
) -> None:
    """Check that the evaluation allows this step of this rollout, now.

    Raises:
        Latched, EvaluationStale, StateConflict, InvalidField: the first reason why it does not.
    """
    if environment.latch is not None:
        raise Latched(
            f"{environment.name} is latched by rollback {environment.latch.rollback}; acknowledge "
            "it first"
        )
    if evaluation.status is not EvaluationStatus.DONE or evaluation.evaluated_at is None:
        raise StateConflict(
            f"gate evaluation {evaluation.id} is {evaluation.status}; wait until it is done"
        )
    if evaluation.digest != request.digest:
        raise InvalidField(
            f"the digest of gate evaluation {evaluation.id} is {evaluation.digest}, not "
            f"{request.digest[:80]!r}; read the evaluation that you decide on",
            pointer="/digest",
        )
    if evaluation.verdict != Verdict.WITHIN:
        raise StateConflict(
            f"gate evaluation {evaluation.id} is {evaluation.verdict}, and only within raises a "
            f"mode. {evaluation.sentence}",
            extras={"verdict": evaluation.verdict or ""},
        )
    _check_freshness(context, rollout, evaluation)
    _check_requirements(context, environment, rollout, request)


def _check_freshness(context: Context, rollout: Rollout, evaluation: Evaluation) -> None:
    path = f"/api/v1/environments/{rollout.environment}/guards/{rollout.guard}/gate-evaluations"
    links = {"links": {"evaluate": path}}
    if evaluation.generation != rollout.generation or evaluation.wave != rollout.wave:
        raise EvaluationStale(
            f"gate evaluation {evaluation.id} was made at generation {evaluation.generation}, the "
            f"rollout is at {rollout.generation}; evaluate again",
            extras=links,
        )
    if evaluation.gate is not gate_for(rollout.phase):
        raise StateConflict(
            f"gate evaluation {evaluation.id} is of the {evaluation.gate} gate; the phase is "
            f"{rollout.phase}",
            extras=links,
        )
    hours = context.policies.of(rollout.environment).evaluation_max_age_hours
    assert evaluation.evaluated_at is not None  # it is done
    age = context.clock.now() - evaluation.evaluated_at
    if age > timedelta(hours=hours):
        raise EvaluationStale(
            f"gate evaluation {evaluation.id} is {age.total_seconds() / 3600:.0f} h old, the "
            f"policy allows {hours} h; evaluate again",
            extras=links,
        )


def _check_requirements(
    context: Context, environment: Environment, rollout: Rollout, request: PromotionRequest
) -> None:
    policy = context.policies.of(environment.name)
    for required in sorted({*environment.requires, *policy.requires}):
        other = context.environments.rollout(required, rollout.guard)
        if other is None or other.reached.rank < request.to.rank:
            raise StateConflict(
                f"{environment.name} requires that {required} took the step to {request.to} "
                f"first; {rollout.guard} there has reached "
                f"{'nothing' if other is None else other.reached}"
            )


def _draft_wave(context: Context, rollout: Rollout, request: PromotionRequest) -> Wave:
    policy = context.policies.of(rollout.environment)
    if request.to is Mode.WARN:
        share = BPS - policy.holdback_bps if request.share_bps is None else request.share_bps
    else:
        share = policy.ceiling_bps if request.share_bps is None else request.share_bps
    if not 1 <= share <= BPS:
        raise InvalidField(
            f"share_bps is {share}; a share is 1 to {BPS} basis points", pointer="/share_bps"
        )
    return Wave(
        number=rollout.last_wave + 1,
        phase=request.to,
        version_pin=rollout.version_pin,
        looks=(policy.dwell_days,),
        opened_at=context.clock.now(),
        treated_bps=share,
    )


def carry_out(context: Context, environment: str, guard: str, number: int) -> Promotion:
    """Freeze the roster and take the step, or refuse with the reason. Called by the worker.

    The roster is frozen outside the commit; the commit itself compares generation and latch, so a
    rollback that came in between wins.

    Raises:
        NotFound: there is no such promotion.
    """
    asked = context.gates.promotion(environment, guard, number)
    if asked is None:
        raise NotFound(f"{guard} in {environment} has no promotion {number}")
    if asked.status is not PromotionStatus.PENDING:
        return asked
    request = PromotionRequest(asked.gate_evaluation, asked.digest, asked.to, asked.share_bps)

    def decide(before: Environment) -> Decision[Promotion]:
        held = context.gates.promotion(environment, guard, number)
        if held is not None and held.status is not PromotionStatus.PENDING:
            return Unchanged(held)
        rollout = load_rollout(context, environment, guard)
        evaluation = context.gates.evaluation(environment, guard, asked.gate_evaluation)
        if evaluation is None:
            raise StateConflict(f"gate evaluation {asked.gate_evaluation} is gone")
        check_evaluation(context, before, rollout, evaluation, request=request)
        _check_revision(context, rollout, evaluation)
        wave, roster = frozen_wave(context, rollout, _draft_wave(context, rollout, request))
        after = apply(rollout, Promoted(wave))
        if isinstance(after, Refusal):
            raise error_of(after, rollout)
        done = replace(
            asked, status=PromotionStatus.DONE, wave=wave.number, decided_at=context.clock.now()
        )
        key = EnvironmentKeys(environment).promotion(guard, number)
        writes = (
            put_rollout(after),
            *close_wave(context, rollout),
            *put_wave(environment, guard, wave, roster),
            Put(key, encode(done)),
        )
        note = Note(
            asked.actor,
            Action.PROMOTED,
            f"{guard}: {rollout.phase} -> {asked.to}, {wave.treated_bps} basis points",
            asked.reason,
            generation_before=rollout.generation,
            generation_after=after.generation,
            gate_evaluation=asked.gate_evaluation,
        )
        return Change(before, writes, note, done)

    try:
        return change(context, environment, decide)
    except (StateConflict, InvalidField, RuleViolated) as refusal:
        held = context.gates.promotion(environment, guard, number)
        if held is not None and held.status is not PromotionStatus.PENDING:
            return held
        return _refused(context, environment, asked, str(refusal))


def refuse_promotion(
    context: Context, environment: str, guard: str, number: int, *, why: str
) -> None:
    """End a pending promotion that could not be carried out; a decided one stays as it is."""
    asked = context.gates.promotion(environment, guard, number)
    if asked is not None and asked.status is PromotionStatus.PENDING:
        _refused(context, environment, asked, f"it could not be carried out: {why}")


def _refused(context: Context, environment: str, asked: Promotion, refusal: str) -> Promotion:
    refused = replace(
        asked,
        status=PromotionStatus.REFUSED,
        refusal=refusal,
        decided_at=context.clock.now(),
    )
    context.gates.save_promotion(environment, refused)
    return refused


def _check_revision(context: Context, rollout: Rollout, evaluation: Evaluation) -> None:
    """Refuse when late records changed a cohort's prompts by more than the policy tolerates."""
    tolerance = context.policies.of(rollout.environment).revision_tolerance
    days = evaluation.days_used
    rows = context.evidence.owner_days(rollout.environment, rollout.guard, rollout.wave, days)
    for cohort, then in evaluation.started_by_cohort:
        now = sum(row.started for row in rows if row.cohort == cohort)
        if abs(now - then) > tolerance * then:
            raise EvaluationStale(
                f"the days of gate evaluation {evaluation.id} were revised: {cohort} had {then} "
                f"prompts then and has {now} now; evaluate again"
            )
