"""Restarting a phase's wave: the same phase and shares, in shadow perhaps another version pin."""

from itertools import pairwise

from control_plane.commands.changes import (
    Change,
    Decision,
    Note,
    applied,
    bound_by_policy,
    change,
    check_reason,
    close_wave,
    put_rollout,
    put_wave,
    stored_rollout,
)
from control_plane.commands.environments import check_version_pin
from control_plane.commands.refusals import error_of, rule_violated
from control_plane.commands.rosters import frozen_wave
from control_plane.context import Context
from control_plane.errors import InvalidField, Latched, StepSkipped
from control_plane.etags import check_precondition, rollout_etag
from control_plane.state import Action, Actor, Environment
from reducer.rollout.draw import BPS
from reducer.rollout.ladder import Refusal, WaveStarted
from reducer.rollout.state import Rollout, Wave
from reducer.vocabulary import Mode

MAX_LOOKS = 8
MAX_DAYS = 90


def start_wave(
    context: Context,
    environment: str,
    guard: str,
    *,
    version_pin: tuple[str, ...] | None,
    looks: tuple[int, ...] | None,
    actor: Actor,
    reason: str,
    if_match: str | None,
) -> tuple[Rollout, Wave]:
    """Start the phase's wave again with a new roster; the dwell starts from zero.

    Raises:
        PreconditionRequired, PreconditionFailed: see `If-Match`, which this write needs.
        InvalidField: the looks do not rise, are too many or too late.
        RuleViolated: the first look is before the policy's dwell.
        Latched: the environment is latched and the phase is above shadow.
        StepSkipped: the rollout is off, or a version would come in above shadow.
    """
    reason = check_reason(reason)
    pin = None if version_pin is None else check_version_pin(version_pin)
    declared = _check_looks(looks, context.policies.of(environment).dwell_days)

    def decide(before: Environment) -> Decision[tuple[Rollout, Wave]]:
        rollout = stored_rollout(context, environment, guard)
        check_precondition(if_match, rollout_etag(rollout), is_required=True)
        if before.latch is not None and rollout.phase.rank > Mode.SHADOW.rank:
            raise Latched(f"{environment} is latched; acknowledge its rollback first")
        if pin is not None:
            _check_judged(rollout, pin)
        draft = Wave(
            number=rollout.last_wave + 1,
            phase=rollout.phase,
            version_pin=pin or rollout.version_pin,
            looks=declared,
            opened_at=context.clock.now(),
            treated_bps=_share(context, rollout),
        )
        wave, roster = frozen_wave(context, rollout, draft)
        after = applied(context, rollout, WaveStarted(wave))
        if isinstance(after, Refusal):
            raise error_of(after, rollout)
        writes = (
            put_rollout(after),
            *close_wave(context, rollout),
            *put_wave(environment, guard, wave, roster),
        )
        note = Note(
            actor,
            Action.WAVE_STARTED,
            f"{guard}: wave {wave.number}",
            reason,
            generation_before=rollout.generation,
            generation_after=after.generation,
        )
        return Change(before, writes, note, (bound_by_policy(context, after), wave))

    return change(context, environment, decide)


def _check_judged(rollout: Rollout, pin: tuple[str, ...]) -> None:
    """Check that a wave above shadow pins only versions whose gates were passed."""
    unjudged = sorted(set(pin) - set(rollout.version_pin))
    if rollout.phase.rank <= Mode.SHADOW.rank or not unjudged:
        return
    versions = "version" if len(unjudged) == 1 else "versions"
    was, it = ("was", "it") if len(unjudged) == 1 else ("were", "them")
    raise StepSkipped(
        f"{versions} {', '.join(unjudged)} {was} left out of the pin, or passed no gate of "
        f"{rollout.guard}: in {rollout.phase} a wave keeps the pin "
        f"{', '.join(rollout.version_pin)} or narrows it; "
        f"roll the guard back, start a shadow wave that pins {it}, and go up by its gates"
    )


def _share(context: Context, rollout: Rollout) -> int:
    """Return the phase's share, of enforce at most the ceiling.

    After a lowering to warn, the policy's holdback is drawn anew.
    """
    if rollout.phase is Mode.WARN and rollout.wave == 0:
        return BPS - context.policies.of(rollout.environment).holdback_bps
    if rollout.phase is Mode.ENFORCE:
        return min(rollout.treated_bps, bound_by_policy(context, rollout).ceiling_bps)
    return rollout.treated_bps


def _check_looks(looks: tuple[int, ...] | None, dwell_days: int) -> tuple[int, ...]:
    if looks is None:
        return (dwell_days,)
    rises = all(before < after for before, after in pairwise(looks))
    if not 1 <= len(looks) <= MAX_LOOKS or not rises or looks[0] < 1 or looks[-1] > MAX_DAYS:
        raise InvalidField(
            f"looks are 1 to {MAX_LOOKS} rising numbers of complete days, up to {MAX_DAYS}, not "
            f"{list(looks)}",
            pointer="/looks",
        )
    if looks[0] < dwell_days:
        raise rule_violated(
            f"the first look is after {looks[0]} complete days and the policy asks for "
            f"{dwell_days}; declare looks from {dwell_days} on",
            pointer="/looks/0",
        )
    return looks
