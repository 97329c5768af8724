"""Whether a gate evaluation still speaks of the rollout and of the evidence as they are now."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from math import fsum

import orjson

from control_plane.context import Context
from control_plane.errors import EvaluationStale, StateConflict
from control_plane.state import CohortSums, Environment, Evaluation
from control_plane.stores.owner_days import OwnerDay
from reducer.rollout.phases import gate_for
from reducer.rollout.state import Rollout
from reducer.vocabulary import Cohort

# What is counted of a cohort, and what a person calls it.
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
# Sums over prompts: more of them moves no count of prompts, and moves a metric.
_AMOUNTS: Mapping[str, str] = {
    "tokens": "tokens",
    "turns": "model turns",
    "timed": "prompts with a duration",
}


def check_freshness(
    context: Context, environment: Environment, rollout: Rollout, evaluation: Evaluation
) -> None:
    """Check that a finished evaluation is of this wave and gate, and not overtaken.

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
    # The policy may have been tightened: the verdict holds for the one that it was made under.
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


def check_revision(context: Context, rollout: Rollout, evaluation: Evaluation) -> None:
    """Check that late records changed no cohort of the evaluation by more than is tolerated.

    Every sum that metrics and checks rest on counts, in any cohort that had or has prompts; the
    policy tolerates a fraction of the prompts that the cohort had started, of amounts the same
    fraction of themselves, and of durations that of their geometric mean. The owner-days are read
    only when a day has another revision than it had. Whether what is tolerated would move the
    verdict is for the worker, which judges the days again.

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
            # An invariant is zero or violated: of switches none is tolerated.
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
    """Check that the geometric mean of a cohort's durations, then and now, is still about it."""
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


def day_revisions(context: Context, environment: str, days: Iterable[date]) -> dict[date, int]:
    """Return the revision of each of the days that is sealed: it moves with what the day holds."""
    sealed = context.evidence.sealed_days(environment, days)
    return {each.day: each.revision for each in sealed}


def cohort_sums(rows: Sequence[OwnerDay]) -> tuple[CohortSums, ...]:
    """Return what the owner-days of each cohort add up to, by cohort."""
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
    """Return the sum of the base-2 logarithms of a row's durations, each taken mid-bucket."""
    return sum((bucket + 0.5) * count for bucket, count in row.durations) / 2.0**row.scale


def evaluate_links(rollout: Rollout) -> dict[str, object]:
    """Return the further members of a problem that ask for a new evaluation."""
    path = f"/api/v1/environments/{rollout.environment}/guards/{rollout.guard}/gate-evaluations"
    return {"links": {"evaluate": path}}
