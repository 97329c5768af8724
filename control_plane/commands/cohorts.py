"""Setting a cohort's mode: lower at once, higher only as the promotion of that step."""

from dataclasses import dataclass

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
    load_rollout,
    put_rollout,
    shadow_wave,
    stored_rollout,
)
from control_plane.commands.promotions import PromotionRequest, promised, request_promotion
from control_plane.commands.refusals import error_of, gate_required, rule_violated
from control_plane.context import Context
from control_plane.errors import InvalidField, NotFound, RuleViolated, WaveFrozenField
from control_plane.etags import check_precondition, rollout_etag
from control_plane.state import Action, Actor, Environment, Promotion
from reducer.rollout.ladder import Lowered, Refusal, Resumed
from reducer.rollout.phases import SETTABLE, TREATED
from reducer.rollout.state import Rollout
from reducer.vocabulary import Cohort, Mode


@dataclass(frozen=True, slots=True)
class CohortChange:
    """What is asked for; None leaves a field as it is.

    The last two make it a promotion, whose mode is the named cohort's unless it is given.
    """

    mode: Mode | None = None
    share_bps: int | None = None
    gate_evaluation: int | None = None
    digest: str | None = None


@dataclass(frozen=True, slots=True)
class CohortAnswer:
    """The rollout after the change.

    While a promotion is pending it is unchanged; a promotion that is only tried out has id 0 and
    shows the rollout as it would be, if the worker's checks agree.
    """

    rollout: Rollout
    changed: bool
    promotion: Promotion | None = None


def set_cohort_mode(
    context: Context,
    environment: str,
    guard: str,
    cohort: str,
    *,
    change: CohortChange,
    actor: Actor,
    reason: str,
    if_match: str | None = None,
    is_dry_run: bool = False,
) -> CohortAnswer:
    """Set one cohort's mode in one call.

    Raises:
        NotFound: unknown environment, rollout or cohort.
        GateRequired: it would raise a mode or a share and names no gate evaluation.
        StepSkipped, RuleViolated, WaveFrozenField: the ladder does not allow it.
        PreconditionFailed, PreconditionRequired: see `If-Match`.
    """
    reason = check_reason(reason)
    named = _cohort(cohort)
    if (change.gate_evaluation is None) != (change.digest is None):
        missing = "digest" if change.digest is None else "gate_evaluation"
        raise InvalidField(
            "a promotion names a gate evaluation and its digest; one is missing",
            pointer=f"/{missing}",
        )
    rollout = load_rollout(context, environment, guard)
    # Lowering needs no gate: an evaluation that is named with it stands in nobody's way.
    is_lower = change.mode is not None and change.mode.rank < rollout.phase.rank
    if change.gate_evaluation is not None and not is_lower:
        asked = _promotion(rollout, named, change)
        promotion = request_promotion(
            context,
            environment,
            guard,
            request=asked,
            actor=actor,
            reason=reason,
            if_match=if_match,
            is_dry_run=is_dry_run,
        )
        if not is_dry_run:
            return CohortAnswer(rollout, changed=False, promotion=promotion)
        after = promised(context, rollout, asked)
        return CohortAnswer(after, changed=True, promotion=promotion)
    return _lower(
        context,
        (environment, guard, named),
        change,
        note=(actor, reason),
        if_match=if_match,
        is_dry_run=is_dry_run,
    )


def _cohort(word: str) -> Cohort:
    found = next((cohort for cohort in Cohort if cohort == word), None)
    if found is None:
        known = ", ".join(sorted(SETTABLE))
        raise NotFound(f"there is no cohort {word[:64]!r}; the cohorts are {known}")
    return found


def _promotion(rollout: Rollout, cohort: Cohort, change: CohortChange) -> PromotionRequest:
    to = change.mode or _mode_of(cohort) or rollout.phase
    treated = TREATED[to]
    if cohort is not treated:
        raise RuleViolated(f"a promotion to {to} is asked for on cohort {treated}, not on {cohort}")
    assert change.gate_evaluation is not None  # the caller checked both
    assert change.digest is not None
    return PromotionRequest(
        gate_evaluation=change.gate_evaluation,
        digest=change.digest,
        to=to,
        share_bps=change.share_bps,
    )


def _mode_of(cohort: Cohort) -> Mode | None:
    """Return the mode whose promotions are asked for on this cohort."""
    return next((mode for mode in reversed(Mode) if TREATED[mode] is cohort), None)


def _lower(
    context: Context,
    where: tuple[str, str, Cohort],
    asked: CohortChange,
    *,
    note: tuple[Actor, str],
    if_match: str | None,
    is_dry_run: bool,
) -> CohortAnswer:
    environment, guard, cohort = where
    actor, reason = note

    def decide(before: Environment) -> Decision[CohortAnswer]:
        rollout = stored_rollout(context, environment, guard)
        etag = rollout_etag(rollout)
        check_precondition(if_match, etag, is_required=False)
        mode = asked.mode or _implied_mode(rollout, cohort, asked)
        if mode is None:
            return Unchanged(_unchanged(context, rollout))
        resumes = (rollout.phase, cohort, mode) == (Mode.OFF, Cohort.EVERYONE, Mode.SHADOW)
        if resumes:
            check_precondition(if_match, etag, is_required=True)
        event = Resumed() if resumes else Lowered(cohort, mode)
        after = applied(context, rollout, event)
        if isinstance(after, Refusal):
            raise error_of(after, rollout)
        is_lower = after.phase.rank < rollout.phase.rank
        if asked.share_bps is not None and cohort is TREATED[rollout.phase] and not is_lower:
            _refuse_share(rollout, asked.share_bps)
        if after is rollout:
            return Unchanged(_unchanged(context, rollout))
        opened = shadow_wave(context, after) if resumes else ()
        writes = (put_rollout(after), *close_wave(context, rollout), *opened)
        entry = Note(
            actor,
            Action.RESUMED if resumes else Action.MODE_LOWERED,
            f"{guard}: {cohort} {rollout.phase} -> {mode}",
            reason,
            generation_before=rollout.generation,
            generation_after=after.generation,
        )
        answer = CohortAnswer(bound_by_policy(context, after), changed=True)
        return Change(before, writes, entry, answer)

    return change(context, environment, decide, is_dry_run=is_dry_run)


def _implied_mode(rollout: Rollout, cohort: Cohort, asked: CohortChange) -> Mode | None:
    """Return the mode that a share alone asks for, None when nothing is asked for at all."""
    if asked.share_bps is None:
        return None
    treated = TREATED[rollout.phase]
    if cohort is treated:
        return rollout.phase
    mode = _mode_of(cohort)
    if mode is None or mode.rank < rollout.phase.rank:
        raise rule_violated(
            f"in phase {rollout.phase} a share is set of {treated}, not of {cohort}",
            pointer="/share_bps",
        )
    return mode


def _unchanged(context: Context, rollout: Rollout) -> CohortAnswer:
    return CohortAnswer(bound_by_policy(context, rollout), changed=False)


def _refuse_share(rollout: Rollout, share_bps: int) -> None:
    """A share alone never changes by this call: larger needs a gate, the rest is frozen."""
    if share_bps > rollout.treated_bps:
        raise gate_required(
            f"raising the share from {rollout.treated_bps} to {share_bps} basis points is a "
            "promotion; name a gate evaluation with the verdict within, and its digest",
            rollout,
        )
    if share_bps < rollout.treated_bps:
        raise WaveFrozenField(
            f"the share of the running wave is {rollout.treated_bps} basis points and frozen; "
            "lower the cohort's mode, or roll back"
        )
