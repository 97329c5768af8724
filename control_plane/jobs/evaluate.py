"""Gate evaluations: evidence gathered and judged, and the result stored for good."""

from dataclasses import replace
from typing import NamedTuple

from guardwave.control_plane.commands.evaluations import request_evaluation
from guardwave.control_plane.core.state import SYSTEM, Evaluation, EvaluationStatus
from guardwave.control_plane.jobs.bundles import SCHEMA, Bundle
from guardwave.control_plane.jobs.conclude import conclude
from guardwave.control_plane.jobs.gather import gather, is_older_than_evidence, look_of
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.rollouts.days import complete_days, wave_days
from guardwave.control_plane.rollouts.evaluation_validity import cohort_sums, day_revisions
from guardwave.reducer.rollout.state import Rollout, Wave, gate_for

_RECENT = 10


class FinishedEvaluation(NamedTuple):
    """An evaluation to store, with its packed evidence bundle if it has a verdict."""

    evaluation: Evaluation
    bundle: bytes | None = None


def evaluate_gate(
    context: Context, environment: str, guard: str, number: int, *, fence: int
) -> Evaluation | None:
    """Make a requested evaluation and store it; None when the request is gone or decided.

    The rollout's generation, the number of violations and the revisions of the days are read
    first and stored with the result, so that a change meanwhile makes it stale and never wrong.
    """
    pending = context.gates.evaluation(environment, guard, number)
    stored = context.environments.load(environment)
    rollout = context.environments.rollout(environment, guard)
    if (
        pending is None
        or stored is None
        or rollout is None
        or pending.status is not EvaluationStatus.PENDING
    ):
        return None
    wave = context.environments.wave(environment, guard, rollout.wave)
    if wave is None or gate_for(rollout.phase) is not pending.gate or rollout.wave != pending.wave:
        finished = _failure(context, pending, "the wave it was asked for is over; ask again")
    elif is_older_than_evidence(context, wave):
        why = "the wave is older than its evidence; start a new one"
        finished = _failure(context, pending, why)
    else:
        pending = replace(pending, violations=stored.violations)
        finished = _evaluate(context, rollout, wave, pending)
    is_stored = context.gates.finish_evaluation(
        environment, finished.evaluation, fence=fence, bundle=finished.bundle
    )
    return finished.evaluation if is_stored else None


def fail_evaluation(
    context: Context, environment: str, guard: str, number: int, *, fence: int, why: str
) -> None:
    """End a pending evaluation without a result; one that is gone or decided stays as it is."""
    pending = context.gates.evaluation(environment, guard, number)
    if pending is not None and pending.status is EvaluationStatus.PENDING:
        failure = _failure(context, pending, f"it could not be made: {why}")
        context.gates.finish_evaluation(environment, failure.evaluation, fence=fence)


def _evaluate(
    context: Context, rollout: Rollout, wave: Wave, pending: Evaluation
) -> FinishedEvaluation:
    days = wave_days(context, rollout.environment, wave, rollout.evidence_source)
    revisions = day_revisions(context, rollout.environment, [view.day for view in days])
    try:
        gathered, rows = gather(context, rollout, wave, gate=pending.gate)
        evaluation, result, digest = conclude(gathered)
    except ValueError as error:
        why = str(error) or type(error).__name__
        return _failure(context, pending, f"the evidence contradicts itself: {why}")
    done = replace(
        pending,
        status=EvaluationStatus.DONE,
        evaluated_at=context.clock.now(),
        generation=rollout.generation,
        wave=wave.number,
        verdict=evaluation.verdict.value,
        sentence=evaluation.sentence,
        digest=digest,
        result=result,
        days_used=evaluation.days.used,
        # -1 equals no revision: the day was sealed after the revisions were read.
        day_revisions=tuple(revisions.get(day, -1) for day in evaluation.days.used),
        cohort_sums=cohort_sums(rows),
    )
    try:
        return FinishedEvaluation(
            done, Bundle(SCHEMA, pending.id, digest, result, gathered).packed()
        )
    except ValueError as error:
        # A verdict without a bundle could not be replayed, so it is not given.
        return _failure(context, pending, str(error))


def _failure(context: Context, pending: Evaluation, sentence: str) -> FinishedEvaluation:
    failed = replace(
        pending,
        status=EvaluationStatus.FAILED,
        evaluated_at=context.clock.now(),
        sentence=sentence,
    )
    return FinishedEvaluation(failed)


def request_due_evaluations(context: Context, environment: str) -> tuple[Evaluation, ...]:
    """Request an evaluation of each wave whose declared look is reached and not evaluated yet."""
    stored = context.environments.load(environment)
    if stored is None:
        return ()
    requested: list[Evaluation] = []
    for rollout in context.environments.rollouts(stored):
        wave = context.environments.wave(environment, rollout.guard, rollout.wave)
        gate = gate_for(rollout.phase)
        if wave is None or gate is None or not _is_due(context, rollout, wave):
            continue
        requested.append(
            request_evaluation(context, environment, rollout.guard, gate=gate, actor=SYSTEM)
        )
    return tuple(requested)


def _is_due(context: Context, rollout: Rollout, wave: Wave) -> bool:
    if is_older_than_evidence(context, wave):
        return False
    complete = len(
        complete_days(wave_days(context, rollout.environment, wave, rollout.evidence_source))
    )
    look = look_of(wave, complete)
    if complete < look:
        return False
    recent = context.gates.evaluations(rollout.environment, rollout.guard, at_most=_RECENT)
    return not any(
        evaluation.wave == wave.number
        and (evaluation.status is EvaluationStatus.PENDING or len(evaluation.days_used) >= look)
        for evaluation in recent
    )
