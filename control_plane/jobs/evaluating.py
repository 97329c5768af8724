"""Evaluating gates: evidence gathered, analysed, and the result stored for ever."""

from dataclasses import replace
from hashlib import sha256

import orjson

from analysis.gates import evaluate
from analysis.report import to_wire
from control_plane import __version__
from control_plane.commands.evaluations import request_evaluation
from control_plane.commands.freshness import cohort_sums, day_revisions
from control_plane.context import Context
from control_plane.jobs.gathering import (
    evidence_digest,
    gather,
    is_older_than_evidence,
    look_of,
    policy_at,
)
from control_plane.queries.days import complete_days, wave_days
from control_plane.state import SYSTEM, Evaluation, EvaluationStatus
from reducer.rollout.phases import gate_for
from reducer.rollout.state import Rollout, Wave

_LOOKED_AT = 10


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
        done = _failed(context, asked, "the wave it was asked for is over; ask again")
    elif is_older_than_evidence(context, wave):
        done = _failed(context, asked, "the wave is older than its evidence; start a new one")
    else:
        asked = replace(asked, violations=held.violations)
        done = _evaluated(context, rollout, wave, asked)
    return done if context.gates.finish_evaluation(environment, done, fence=fence) else None


def fail_evaluation(
    context: Context, environment: str, guard: str, number: int, *, fence: int, why: str
) -> None:
    """End a pending evaluation without a result; one that is gone or decided stays as it is."""
    asked = context.gates.evaluation(environment, guard, number)
    if asked is not None and asked.status is EvaluationStatus.PENDING:
        failed = _failed(context, asked, f"it could not be made: {why}")
        context.gates.finish_evaluation(environment, failed, fence=fence)


def _evaluated(context: Context, rollout: Rollout, wave: Wave, asked: Evaluation) -> Evaluation:
    policy = policy_at(context.policies.of(rollout.environment), wave)
    days = [each.day for each in wave_days(context, rollout.environment, wave)]
    revisions = day_revisions(context, rollout.environment, days)
    try:
        evidence, rows = gather(context, rollout, wave, gate=asked.gate)
        evaluation = evaluate(evidence, policy)
    except ValueError as error:
        why = str(error) or type(error).__name__
        return _failed(context, asked, f"the evidence contradicts itself: {why}")
    wire = {
        **to_wire(evaluation),
        "policy_hash": context.policies.hash,
        "code_version": __version__,
        "evidence_digest": evidence_digest(
            evidence, rows, roster_digest=wave.roster_digest, policy_hash=context.policies.hash
        ),
    }
    result = orjson.dumps(wire, option=orjson.OPT_SORT_KEYS).decode()
    return replace(
        asked,
        status=EvaluationStatus.DONE,
        evaluated_at=context.clock.now(),
        generation=rollout.generation,
        wave=wave.number,
        verdict=evaluation.verdict.value,
        sentence=evaluation.sentence,
        digest=sha256(result.encode()).hexdigest(),
        result=result,
        days_used=evaluation.days.used,
        # A day that was sealed in between has no revision that anything equals.
        day_revisions=tuple(revisions.get(day, -1) for day in evaluation.days.used),
        cohort_sums=cohort_sums(rows),
    )


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
    complete = len(complete_days(wave_days(context, rollout.environment, wave)))
    look = look_of(wave, complete)
    if complete < look:
        return False
    recent = context.gates.evaluations(rollout.environment, rollout.guard, at_most=_LOOKED_AT)
    return not any(
        each.wave == wave.number
        and (each.status is EvaluationStatus.PENDING or len(each.days_used) >= look)
        for each in recent
    )
