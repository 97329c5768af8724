"""Evaluation validity: the checks that a finished gate evaluation still holds when it is used.

It must be current (generation, wave, policy, age), contradicted by no newer evaluation or harm
alarm, and rest on days that still count and have not changed but for tolerated late records.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from math import fsum

import orjson

from guardwave.control_plane.core.errors import EvaluationStale, HarmAlarm, StateConflict
from guardwave.control_plane.core.state import (
    CohortSums,
    Environment,
    Evaluation,
    EvaluationStatus,
    HarmLook,
)
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.rollouts.days import complete_days, wave_days
from guardwave.control_plane.stores.evidence.owner_days import OwnerDay
from guardwave.reducer.rollout.state import Rollout, gate_for
from guardwave.reducer.vocabulary import Cohort, Verdict


def check_not_stale(
    context: Context, environment: Environment, rollout: Rollout, evaluation: Evaluation
) -> None:
    """Check that a finished evaluation is of this wave and gate, and still current.

    Raises:
        EvaluationStale: the generation moved, a violation came, the policy is another one, or it
            is older than the policy allows.
        StateConflict: it is of another phase's gate.
    """
    links = evaluate_links(rollout)
    if evaluation.generation != rollout.generation or evaluation.wave != rollout.wave:
        raise EvaluationStale(
            f"gate evaluation {evaluation.id} was made at generation {evaluation.generation}, the "
            f"rollout is at {rollout.generation}; evaluate again",
            extras=links,
        )
    if environment.violations > evaluation.violations:
        raise EvaluationStale(
            f"violation {environment.violations} was recorded after gate evaluation "
            f"{evaluation.id} was made; evaluate again",
            extras=links,
        )
    if evaluation.gate is not gate_for(rollout.phase):
        raise StateConflict(
            f"gate evaluation {evaluation.id} is of the {evaluation.gate} gate; the phase is "
            f"{rollout.phase}",
            extras=links,
        )
    # The policy may be stricter now: the verdict holds for the one that it was made under.
    made_under = _policy_hash(evaluation)
    if made_under != context.policies.hash:
        raise EvaluationStale(
            f"gate evaluation {evaluation.id} was made under the policy {made_under[:12]}, "
            f"in force is {context.policies.hash[:12]}; evaluate again",
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


def _policy_hash(evaluation: Evaluation) -> str:
    """Return the hash of the policy that the stored result names; its digest covers it."""
    return str(orjson.loads(evaluation.result or "{}").get("policy_hash", "unknown"))


def check_not_contradicted(context: Context, rollout: Rollout, evaluation: Evaluation) -> None:
    """Check that no newer evaluation of the wave contradicts it, and no look raised an alarm.

    An alarm holds as long as its wave is open: its bound is for all looks together, so that later
    looks cannot take it back.

    Raises:
        EvaluationStale: names the newest evaluation that is not within.
        HarmAlarm: names the look and the alarms that it raised.
    """
    links = evaluate_links(rollout)
    count = context.gates.evaluation_count(rollout.environment, rollout.guard)
    newer = context.gates.evaluations(
        rollout.environment, rollout.guard, at_most=max(0, count - evaluation.id)
    )
    for other in newer:
        is_same = other.wave == evaluation.wave and other.gate is evaluation.gate
        is_finished = other.status is not EvaluationStatus.PENDING
        if is_same and is_finished and other.verdict != Verdict.WITHIN:
            raise EvaluationStale(
                f"gate evaluation {other.id} of the same wave is newer than {evaluation.id} and is "
                f"{other.verdict or other.status}: {_as_sentence(other.sentence)} Evaluate "
                "again and name that one",
                extras=links,
            )
    for look in context.incidents.harm_looks(rollout.environment, rollout.guard):
        if look.wave == rollout.wave and look.raised:
            raise HarmAlarm(_alarm(look), extras=links)


def _alarm(look: HarmLook) -> str:
    sentences = " ".join(_as_sentence(metric.sentence) for metric in look.raised)
    return (
        f"the look for harm after {look.days} complete days of wave {look.wave}, through "
        f"{look.through.isoformat()}, raised an alarm: {sentences} It holds until the wave "
        "ends: start a new one and evaluate that"
    )


def _as_sentence(sentence: str | None) -> str:
    return f"{(sentence or 'it has no result').removesuffix('.')}."


def check_evidence_unchanged(context: Context, rollout: Rollout, evaluation: Evaluation) -> None:
    """Check that the days of an evaluation still count, with unchanged sums.

    Raises:
        EvaluationStale: names the day and why it does not count, or the sum that moved.
    """
    _check_days(context, rollout, evaluation)
    check_late_records(context, rollout, evaluation)


def _check_days(context: Context, rollout: Rollout, evaluation: Evaluation) -> None:
    """Check that the days used are still the first complete days of the wave."""
    wave = context.environments.wave(rollout.environment, rollout.guard, rollout.wave)
    used = evaluation.days_used
    if wave is None or not used:
        return
    days = wave_days(context, rollout.environment, wave, rollout.evidence_source)
    views = {view.day: view for view in days}
    for day in used:
        view = views.get(day)
        if view is None or not view.is_complete:
            why = "it is no day of the wave" if view is None else view.reason
            raise EvaluationStale(
                f"{day.isoformat()}, which gate evaluation {evaluation.id} used, does not count "
                f"any more: {why}; evaluate again",
                extras=evaluate_links(rollout),
            )
    first = complete_days(days)[: len(used)]
    if first != used:
        (earlier, *_) = sorted({*first} - {*used})
        raise EvaluationStale(
            f"{earlier.isoformat()} became complete after gate evaluation {evaluation.id}, which "
            "did not use it, was made; evaluate again",
            extras=evaluate_links(rollout),
        )


def check_unchanged_since_judged(
    context: Context,
    rollout: Rollout,
    evaluation: Evaluation,
    *,
    judged_revisions: tuple[int | None, ...] | None,
) -> None:
    """Check that the evaluation's days have the revisions at which they were judged last.

    `judged_revisions` are those of the worker's second judgement, None when it made none.

    Raises:
        EvaluationStale: records came in between.
    """
    now = revisions_now(context, rollout, evaluation)
    if now not in (evaluation.day_revisions, judged_revisions):
        raise EvaluationStale(
            f"late records changed the days of gate evaluation {evaluation.id} while they were "
            "judged again; promote again when no more records come",
            extras=evaluate_links(rollout),
        )


def revisions_now(
    context: Context, rollout: Rollout, evaluation: Evaluation
) -> tuple[int | None, ...]:
    """Return the revisions of the days used, None for a day that is not sealed."""
    revisions = day_revisions(context, rollout.environment, evaluation.days_used)
    return tuple(revisions.get(day) for day in evaluation.days_used)


def day_revisions(context: Context, environment: str, days: Iterable[date]) -> dict[date, int]:
    """Return the revision of each sealed day, which grows with every change of its content."""
    sealed = context.evidence.sealed_days(environment, days)
    return {day.day: day.revision for day in sealed}


# Counts of a cohort's prompts, with the words for a person.
_COUNTED: Mapping[str, str] = {
    "started": "prompts",
    "cancelled": "cancelled prompts",
    "completed": "completed prompts",
    "disrupted": "disrupted prompts",
    "ended": "ended prompts",
    "lost": "lost prompts",
    "covered": "covered prompts",
    "switched": "prompts that switched treatment",
}
# Sums over prompts: they move a metric without moving a count of prompts.
_AMOUNTS: Mapping[str, str] = {
    "tokens": "tokens",
    "turns": "model turns",
    "timed": "prompts with a duration",
}


def check_late_records(context: Context, rollout: Rollout, evaluation: Evaluation) -> None:
    """Check that late records moved no cohort of the evaluation beyond the policy's tolerance.

    The check covers every sum that metrics and checks rest on, in any cohort that had or has
    prompts. The tolerance is a fraction: for counts, of the prompts that the cohort had started;
    for amounts, of the amount; for durations, of their geometric mean. Owner-days are read only
    when the revision of a day has moved. Tolerated changes may still move the verdict, so that the
    worker judges the days again.

    Raises:
        EvaluationStale: names cohort, sum, and both numbers.
    """
    days = evaluation.days_used
    revisions = day_revisions(context, rollout.environment, days)
    if tuple(revisions.get(day) for day in days) == evaluation.day_revisions:
        return
    wave = evaluation.wave or 0
    rows = context.evidence.owner_days(
        rollout.environment, rollout.guard, wave, days, source=rollout.evidence_source
    )
    then = {sums.cohort: sums for sums in evaluation.cohort_sums}
    now = {sums.cohort: sums for sums in cohort_sums(rows)}
    tolerance = context.policies.of(rollout.environment).revision_tolerance
    for cohort in sorted({*then, *now}):
        before = then.get(cohort, CohortSums(cohort))
        after = now.get(cohort, CohortSums(cohort))
        for name, words in {**_COUNTED, **_AMOUNTS}.items():
            had, has = getattr(before, name), getattr(after, name)
            whole = had if name in _AMOUNTS else before.started
            # An invariant is zero or violated, so no switch is tolerated.
            tolerated = 0.0 if name == "switched" else tolerance * whole
            if abs(has - had) > tolerated:
                raise EvaluationStale(
                    f"the days of gate evaluation {evaluation.id} were revised: {cohort} had {had} "
                    f"{words} then and has {has} now; evaluate again",
                    extras=evaluate_links(rollout),
                )
        _check_durations(rollout, evaluation, (before, after), tolerance)


def _check_durations(
    rollout: Rollout, evaluation: Evaluation, sums: tuple[CohortSums, CohortSums], tolerance: float
) -> None:
    """Check that the geometric mean of a cohort's durations moved within the tolerance."""
    before, after = sums
    if not before.timed or not after.timed:
        return
    moved = 2.0 ** (after.log2_durations / after.timed - before.log2_durations / before.timed) - 1.0
    if abs(moved) > tolerance:
        raise EvaluationStale(
            f"the days of gate evaluation {evaluation.id} were revised: the typical duration of a "
            f"prompt of {before.cohort} moved by {moved:+.2%}; evaluate again",
            extras=evaluate_links(rollout),
        )


def cohort_sums(rows: Sequence[OwnerDay]) -> tuple[CohortSums, ...]:
    """Return the sums of the owner-days, by cohort."""
    return tuple(
        _sums(cohort, [row for row in rows if row.cohort is cohort])
        for cohort in sorted({row.cohort for row in rows})
    )


def _sums(cohort: Cohort, rows: Sequence[OwnerDay]) -> CohortSums:
    return CohortSums(
        cohort,
        **{name: sum(getattr(row, name) for row in rows) for name in _COUNTED},
        tokens=sum(row.tokens for row in rows),
        turns=sum(row.turns for row in rows),
        timed=sum(count for row in rows for _, count in row.durations),
        log2_durations=fsum(_log2_durations(row) for row in rows),
    )


def _log2_durations(row: OwnerDay) -> float:
    """Return the sum of the base-2 logarithms of a row's durations, taken mid-bucket."""
    return sum((bucket + 0.5) * count for bucket, count in row.durations) / 2.0**row.scale


def evaluate_links(rollout: Rollout) -> dict[str, object]:
    """Return the members of a problem document that link to a new evaluation."""
    path = f"/api/v1/environments/{rollout.environment}/guards/{rollout.guard}/gate-evaluations"
    return {"links": {"evaluate": path}}
