"""One step up: asked for by a person, naming a gate evaluation; carried out by the worker."""

from dataclasses import dataclass, replace

from control_plane.commands.changes import (
    Change,
    Decision,
    Note,
    Unchanged,
    applied,
    bound_by_policy,
    change,
    check_reason,
    close_wave,
    load_environment,
    put_rollout,
    put_wave,
    stored_rollout,
)
from control_plane.commands.comparisons import check_reason_says_so
from control_plane.commands.freshness import check_freshness
from control_plane.commands.refusals import error_of, rule_violated
from control_plane.commands.requirements import Step, check_requirements
from control_plane.commands.rosters import frozen_wave
from control_plane.commands.standing import check_judged, check_standing, check_undisputed
from control_plane.context import Context
from control_plane.errors import (
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
from control_plane.stores.gates import put_promotion
from control_plane.stores.jobs import Job, JobKind
from reducer.rollout.draw import BPS
from reducer.rollout.ladder import Promoted, Refusal
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
    rollout = stored_rollout(context, environment, guard)
    check_precondition(if_match, rollout_etag(rollout), is_required=False)
    evaluation = context.gates.evaluation(environment, guard, request.gate_evaluation)
    if evaluation is None:
        raise NotFound(
            f"{guard} in {environment} has no gate evaluation {request.gate_evaluation}; ask for "
            "one with POST .../gate-evaluations"
        )
    check_evaluation(context, held, rollout, evaluation, request=request)
    check_reason_says_so(evaluation, reason)
    after = promised(context, rollout, request)
    check_standing(context, rollout, evaluation)
    number = 0 if is_dry_run else context.gates.next_promotion(environment, guard)
    promotion = Promotion(
        id=number,
        guard=guard,
        gate_evaluation=request.gate_evaluation,
        digest=request.digest,
        to=request.to,
        share_bps=after.treated_bps,
        reason=reason,
        actor=actor,
        requested_at=context.clock.now(),
    )
    if not is_dry_run:
        context.gates.save_promotion(environment, promotion)
        context.jobs.put(environment, Job(JobKind.PROMOTE, guard, number))
    return promotion


def promised(context: Context, rollout: Rollout, request: PromotionRequest) -> Rollout:
    """Return the rollout as the step would leave it, whatever its evaluation says.

    Raises:
        StepSkipped, RuleViolated, InvalidField: the ladder or the policy has no such step.
    """
    after = applied(context, rollout, Promoted(_draft_wave(context, rollout, request)))
    if isinstance(after, Refusal):
        raise error_of(after, rollout)
    return after


def check_evaluation(
    context: Context,
    environment: Environment,
    rollout: Rollout,
    evaluation: Evaluation,
    *,
    request: PromotionRequest,
) -> None:
    """Check that the evaluation allows this step of this rollout, now.

    Whether its days are what they were is another check, `check_standing`, which may read much.

    Raises:
        Latched, EvaluationStale, StateConflict, RuleViolated: the first reason why it does not.
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
        raise rule_violated(
            f"the digest of gate evaluation {evaluation.id} is {evaluation.digest}, not "
            f"{request.digest[:80]!r}; read the evaluation that you decide on",
            pointer="/digest",
        )
    if evaluation.verdict != Verdict.WITHIN:
        verdict = (evaluation.verdict or "").replace("_", " ")
        raise StateConflict(
            f"gate evaluation {evaluation.id} is {verdict}, and only within raises a mode. "
            f"{evaluation.sentence}",
            extras={"verdict": evaluation.verdict or ""},
        )
    check_freshness(context, environment, rollout, evaluation)
    check_undisputed(context, rollout, evaluation)
    share_bps = _share(context, rollout, request) if request.to is Mode.ENFORCE else 0
    step = Step(rollout.guard, request.to, share_bps, rollout.version_pin)
    check_requirements(context, environment, step)


def _share(context: Context, rollout: Rollout, request: PromotionRequest) -> int:
    """Return the share that is asked for, or the policy's for that step."""
    policy = context.policies.of(rollout.environment)
    largest = bound_by_policy(context, rollout).ceiling_bps
    if request.to is Mode.WARN:
        largest = BPS - policy.holdback_bps
    share = largest if request.share_bps is None else request.share_bps
    if not 1 <= share <= BPS:
        raise InvalidField(
            f"share_bps is {share}; a share is 1 to {BPS} basis points", pointer="/share_bps"
        )
    if request.to is Mode.WARN and share > largest:
        raise rule_violated(
            f"warning {share} basis points leaves a holdback of {BPS - share}, the policy keeps "
            f"{policy.holdback_bps}; ask for {largest} at most",
            pointer="/share_bps",
        )
    return share


def _draft_wave(context: Context, rollout: Rollout, request: PromotionRequest) -> Wave:
    return Wave(
        number=rollout.last_wave + 1,
        phase=request.to,
        version_pin=rollout.version_pin,
        looks=(context.policies.of(rollout.environment).dwell_days,),
        opened_at=context.clock.now(),
        treated_bps=_share(context, rollout, request),
    )


def carry_out(
    context: Context,
    environment: str,
    guard: str,
    number: int,
    *,
    judged: tuple[int | None, ...] | None = None,
) -> Promotion:
    """Freeze the roster and take the step, or refuse with the reason. Called by the worker.

    `judged` are the revisions at which the worker judged the evaluation's days again; without
    them the days must be as they were.

    The roster is frozen outside the commit; the commit itself compares generation and latch and
    reads the promotion again, so a rollback that came in between wins: it moved the generation or
    refused the promotion.

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
        rollout = stored_rollout(context, environment, guard)
        evaluation = context.gates.evaluation(environment, guard, asked.gate_evaluation)
        if evaluation is None:
            raise StateConflict(f"gate evaluation {asked.gate_evaluation} is gone")
        check_evaluation(context, before, rollout, evaluation, request=request)
        check_standing(context, rollout, evaluation)
        check_judged(context, rollout, evaluation, judged=judged)
        wave, roster = frozen_wave(context, rollout, _draft_wave(context, rollout, request))
        after = applied(context, rollout, Promoted(wave))
        if isinstance(after, Refusal):
            raise error_of(after, rollout)
        done = replace(
            asked, status=PromotionStatus.DONE, wave=wave.number, decided_at=context.clock.now()
        )
        writes = (
            put_rollout(after),
            *close_wave(context, rollout),
            *put_wave(environment, guard, wave, roster),
            put_promotion(environment, done),
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
