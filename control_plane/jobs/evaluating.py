"""Evaluating gates: evidence gathered, analysed, and the result stored for ever."""

from dataclasses import replace
from typing import NamedTuple

from control_plane.commands.evaluations import request_evaluation
from control_plane.commands.freshness import cohort_sums, day_revisions
from control_plane.context import Context
from control_plane.jobs.bundles import SCHEMA, Bundle
from control_plane.jobs.concluding import conclude
from control_plane.jobs.gathering import gather, is_older_than_evidence, look_of
from control_plane.queries.days import complete_days, wave_days
from control_plane.state import SYSTEM, Evaluation, EvaluationStatus
from reducer.rollout.phases import gate_for
from reducer.rollout.state import Rollout, Wave

_LOOKED_AT = 10


class Made(NamedTuple):
    """An evaluation as it is stored, and its packed evidence bundle where it came to a verdict."""

    evaluation: Evaluation
    bundle: bytes | None = None


def evaluate_gate(
    context: Context, environment: str, guard: str, number: int, *, fence: int
) -> Evaluation | None:
    """Evaluate what was asked for and store it; None when the request is gone or was done.

    The rollout's generation, the number of violations and the revisions of the days are read
    first and stored with the result: what changes meanwhile makes it stale, never wrong.
    """
    asked = context.gates.evaluation(environment, guard, number)
    held = context.environments.load(environment)
    rollout = context.environments.rollout(environment, guard)
    if (
        asked is None
        or held is None
        or rollout is None
        or asked.status is not EvaluationStatus.PENDING
    ):
        return None
    wave = context.environments.wave(environment, guard, rollout.wave)
    if wave is None or gate_for(rollout.phase) is not asked.gate or rollout.wave != asked.wave:
        made = Made(_failed(context, asked, "the wave it was asked for is over; ask again"))
    elif is_older_than_evidence(context, wave):
        made = Made(_failed(context, asked, "the wave is older than its evidence; start a new one"))
    else:
        asked = replace(asked, violations=held.violations)
        made = _evaluated(context, rollout, wave, asked)
    is_stored = context.gates.finish_evaluation(
        environment, made.evaluation, fence=fence, bundle=made.bundle
    )
    return made.evaluation if is_stored else None


def fail_evaluation(
    context: Context, environment: str, guard: str, number: int, *, fence: int, why: str
) -> None:
    """End a pending evaluation without a result; one that is gone or decided stays as it is."""
    asked = context.gates.evaluation(environment, guard, number)
    if asked is not None and asked.status is EvaluationStatus.PENDING:
        failed = _failed(context, asked, f"it could not be made: {why}")
        context.gates.finish_evaluation(environment, failed, fence=fence)


def _evaluated(context: Context, rollout: Rollout, wave: Wave, asked: Evaluation) -> Made:
    days = [
        each.day for each in wave_days(context, rollout.environment, wave, rollout.evidence_source)
    ]
    revisions = day_revisions(context, rollout.environment, days)
    try:
        gathered, rows = gather(context, rollout, wave, gate=asked.gate)
        evaluation, result, digest = conclude(gathered)
    except ValueError as error:
        why = str(error) or type(error).__name__
        return Made(_failed(context, asked, f"the evidence contradicts itself: {why}"))
    done = replace(
        asked,
        status=EvaluationStatus.DONE,
        evaluated_at=context.clock.now(),
        generation=rollout.generation,
        wave=wave.number,
        verdict=evaluation.verdict.value,
        sentence=evaluation.sentence,
        digest=digest,
        result=result,
        days_used=evaluation.days.used,
        # A day that was sealed in between has no revision that anything equals.
        day_revisions=tuple(revisions.get(day, -1) for day in evaluation.days.used),
        cohort_sums=cohort_sums(rows),
    )
    try:
        return Made(done, Bundle(SCHEMA, asked.id, digest, result, gathered).packed())
    except ValueError as error:
        # A verdict that nobody can make again from its bundle is none.
        return Made(_failed(context, asked, str(error)))


def _failed(context: Context, asked: Evaluation, sentence: str) -> Evaluation:
    return replace(
        asked,
        status=EvaluationStatus.FAILED,
        evaluated_at=context.clock.now(),
        sentence=sentence,
    )


def request_due_evaluations(context: Context, environment: str) -> tuple[Evaluation, ...]:
    """Ask for the evaluation of each wave whose declared look has come and has none yet."""
    held = context.environments.load(environment)
    if held is None:
        return ()
    asked: list[Evaluation] = []
    for rollout in context.environments.rollouts(held):
        wave = context.environments.wave(environment, rollout.guard, rollout.wave)
        gate = gate_for(rollout.phase)
        if wave is None or gate is None or not _is_due(context, rollout, wave):
            continue
        asked.append(
            request_evaluation(context, environment, rollout.guard, gate=gate, actor=SYSTEM)
        )
    return tuple(asked)


def _is_due(context: Context, rollout: Rollout, wave: Wave) -> bool:
    if is_older_than_evidence(context, wave):
        return False
    complete = len(
        complete_days(wave_days(context, rollout.environment, wave, rollout.evidence_source))
    )
    look = look_of(wave, complete)
    if complete < look:
        return False
    recent = context.gates.evaluations(rollout.environment, rollout.guard, at_most=_LOOKED_AT)
    return not any(
        each.wave == wave.number
        and (each.status is EvaluationStatus.PENDING or len(each.days_used) >= look)
        for each in recent
    )
