"""Cohort modes: lowered at once, raised only as the promotion of that step."""

from dataclasses import dataclass

from guardwave.control_plane.commands.promotions import request_promotion
from guardwave.control_plane.core.errors import (
    InvalidField,
    NotFound,
    RuleViolated,
    WaveFrozenField,
)
from guardwave.control_plane.core.etags import check_precondition, rollout_etag
from guardwave.control_plane.core.state import Action, Actor, Environment, Promotion
from guardwave.control_plane.rollouts.changes import (
    Change,
    Decision,
    Note,
    Unchanged,
    apply_event,
    change,
    check_reason,
    close_wave,
    put_rollout,
    shadow_wave,
)
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.rollouts.loading import (
    load_rollout,
    stored_rollout,
    with_policy_ceiling,
)
from guardwave.control_plane.rollouts.promotion_rules import PromotionRequest, rollout_after_step
from guardwave.control_plane.rollouts.refusals import error_of, gate_required, rule_violated
from guardwave.reducer.rollout.ladder import ModeLowered, Refusal, RolloutResumed
from guardwave.reducer.rollout.state import SETTABLE, TREATED, Rollout
from guardwave.reducer.vocabulary import Cohort, Mode


@dataclass(frozen=True, slots=True)
class CohortChange:
    """The requested mode and share of a cohort; None leaves a field as it is.

    With `gate_evaluation` and `digest` it is a promotion; without `mode`, to the cohort's mode.
    """

    mode: Mode | None = None
    share_bps: int | None = None
    gate_evaluation: int | None = None
    digest: str | None = None


@dataclass(frozen=True, slots=True)
class CohortAnswer:
    """The rollout after the change.

    A pending promotion leaves it unchanged. A dry run of a promotion has id 0 and shows the rollout
    as it would be if the worker's checks agree.
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
    target = _cohort(cohort)
    if (change.gate_evaluation is None) != (change.digest is None):
        missing = "digest" if change.digest is None else "gate_evaluation"
        raise InvalidField(
            "a promotion names a gate evaluation and its digest; one is missing",
            pointer=f"/{missing}",
        )
    rollout = load_rollout(context, environment, guard)
    # Lowering needs no gate, so an evaluation that is named with it does not matter.
    is_lower = change.mode is not None and change.mode.rank < rollout.phase.rank
    if change.gate_evaluation is not None and not is_lower:
        request = _promotion(rollout, target, change)
        promotion = request_promotion(
            context,
            environment,
            guard,
            request=request,
            actor=actor,
            reason=reason,
            if_match=if_match,
            is_dry_run=is_dry_run,
        )
        if not is_dry_run:
            return CohortAnswer(rollout, changed=False, promotion=promotion)
        after = rollout_after_step(context, rollout, request)
        return CohortAnswer(after, changed=True, promotion=promotion)
    return _lower(
        context,
        (environment, guard, target),
        change,
        note=(actor, reason),
        if_match=if_match,
        is_dry_run=is_dry_run,
    )


def _cohort(name: str) -> Cohort:
    found = next((cohort for cohort in Cohort if cohort == name), None)
    if found is None:
        known = ", ".join(sorted(SETTABLE))
        raise NotFound(f"there is no cohort {name[:64]!r}; the cohorts are {known}")
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
    """Return the mode that a promotion of this cohort leads to."""
    return next((mode for mode in reversed(Mode) if TREATED[mode] is cohort), None)


def _lower(
    context: Context,
    where: tuple[str, str, Cohort],
    requested: CohortChange,
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
        mode = requested.mode or _implied_mode(rollout, cohort, requested)
        if mode is None:
            return Unchanged(_unchanged(context, rollout))
        resumes = (rollout.phase, cohort, mode) == (Mode.OFF, Cohort.EVERYONE, Mode.SHADOW)
        if resumes:
            check_precondition(if_match, etag, is_required=True)
        event = RolloutResumed() if resumes else ModeLowered(cohort, mode)
        after = apply_event(context, rollout, event)
        if isinstance(after, Refusal):
            raise error_of(after, rollout)
        is_lower = after.phase.rank < rollout.phase.rank
        if requested.share_bps is not None and cohort is TREATED[rollout.phase] and not is_lower:
            _refuse_share(rollout, requested.share_bps)
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
        answer = CohortAnswer(with_policy_ceiling(context, after), changed=True)
        return Change(before, writes, entry, answer)

    return change(context, environment, decide, is_dry_run=is_dry_run)


def _implied_mode(rollout: Rollout, cohort: Cohort, requested: CohortChange) -> Mode | None:
    """Return the mode that a share without a mode means, None without either."""
    if requested.share_bps is None:
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
    return CohortAnswer(with_policy_ceiling(context, rollout), changed=False)


def _refuse_share(rollout: Rollout, share_bps: int) -> None:
    """Refuse a share without a mode: a larger one needs a gate, a smaller one is frozen."""
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
