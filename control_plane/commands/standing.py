"""Whether what a gate evaluation concluded still stands: nothing known since says otherwise."""

from control_plane.commands.freshness import check_revision, day_revisions, evaluate_links
from control_plane.context import Context
from control_plane.errors import EvaluationStale, HarmAlarm
from control_plane.queries.days import complete_days, wave_days
from control_plane.state import Evaluation, EvaluationStatus, HarmLook
from reducer.rollout.state import Rollout
from reducer.vocabulary import Verdict


def check_undisputed(context: Context, rollout: Rollout, evaluation: Evaluation) -> None:
    """Check that no newer evaluation of the wave says otherwise, and no look found harm in it.

    An alarm holds for as long as its wave is open, whatever later looks show: its bound holds at
    all looks together, so that it is not taken back by waiting.

    Raises:
        EvaluationStale: names the newest evaluation that is not within.
        HarmAlarm: names the look and what it told.
    """
    links = evaluate_links(rollout)
    count = context.gates.evaluation_count(rollout.environment, rollout.guard)
    newer = context.gates.evaluations(
        rollout.environment, rollout.guard, at_most=max(0, count - evaluation.id)
    )
    for each in newer:
        is_same = each.wave == evaluation.wave and each.gate is evaluation.gate
        is_finished = each.status is not EvaluationStatus.PENDING
        if is_same and is_finished and each.verdict != Verdict.WITHIN:
            raise EvaluationStale(
                f"gate evaluation {each.id} of the same wave is newer than {evaluation.id} and is "
                f"{each.verdict or each.status}: {_ended(each.sentence)} Evaluate again and name "
                "what comes of it",
                extras=links,
            )
    for look in context.incidents.harm_looks(rollout.environment, rollout.guard):
        if look.wave == rollout.wave and look.raised:
            raise HarmAlarm(_alarm(look), extras=links)


def check_standing(context: Context, rollout: Rollout, evaluation: Evaluation) -> None:
    """Check that the days of an evaluation still count, and hold what they held.

    Raises:
        EvaluationStale: names the day and why it does not count, or the sum that moved.
    """
    _check_days(context, rollout, evaluation)
    check_revision(context, rollout, evaluation)


def _check_days(context: Context, rollout: Rollout, evaluation: Evaluation) -> None:
    """Check that the days used are complete, and are still the wave's first that are."""
    wave = context.environments.wave(rollout.environment, rollout.guard, rollout.wave)
    used = evaluation.days_used
    if wave is None or not used:
        return
    days = wave_days(context, rollout.environment, wave, rollout.evidence_source)
    found = {each.day: each for each in days}
    for day in used:
        held = found.get(day)
        if held is None or not held.is_complete:
            why = "it is no day of the wave" if held is None else held.reason
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


def check_judged(
    context: Context,
    rollout: Rollout,
    evaluation: Evaluation,
    *,
    judged: tuple[int | None, ...] | None,
) -> None:
    """Check that the evaluation's days are as they were when last judged.

    `judged` are their revisions when the worker judged them again, None when it had no need to.

    Raises:
        EvaluationStale: records came in between.
    """
    now = revisions_now(context, rollout, evaluation)
    if now not in (evaluation.day_revisions, judged):
        raise EvaluationStale(
            f"late records changed the days of gate evaluation {evaluation.id} while they were "
            "judged again; promote again when they have come to rest",
            extras=evaluate_links(rollout),
        )


def revisions_now(
    context: Context, rollout: Rollout, evaluation: Evaluation
) -> tuple[int | None, ...]:
    """Return the revision of each day used, None for one that is not sealed."""
    revisions = day_revisions(context, rollout.environment, evaluation.days_used)
    return tuple(revisions.get(day) for day in evaluation.days_used)


def _alarm(look: HarmLook) -> str:
    told = " ".join(_ended(each.sentence) for each in look.raised)
    return (
        f"the look for harm after {look.days} complete days of wave {look.wave}, through "
        f"{look.through.isoformat()}, raised an alarm: {told} It holds until the wave ends: start "
        "a new one and evaluate that"
    )


def _ended(sentence: str | None) -> str:
    return f"{(sentence or 'it has no result').removesuffix('.')}."
