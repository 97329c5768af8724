"""Waves: the roster frozen for a wave, and the restart of a phase in a new wave."""

from dataclasses import replace
from datetime import date, timedelta
from itertools import pairwise

from guardwave.control_plane.core.errors import InvalidField, Latched, StepSkipped
from guardwave.control_plane.core.etags import check_precondition, rollout_etag
from guardwave.control_plane.core.state import Action, Actor, Environment
from guardwave.control_plane.rollouts.access import trusted_producers
from guardwave.control_plane.rollouts.changes import (
    Change,
    Decision,
    Note,
    apply_event,
    change,
    check_reason,
    close_wave,
    put_rollout,
    put_wave,
)
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.rollouts.days import floors_of
from guardwave.control_plane.rollouts.loading import stored_rollout, with_policy_ceiling
from guardwave.control_plane.rollouts.names import check_version_pin
from guardwave.control_plane.rollouts.refusals import error_of, rule_violated
from guardwave.reducer.rollout.days import COMPARED_DAYS, complete_days
from guardwave.reducer.rollout.draw import BPS, Roster, draw, salt_text
from guardwave.reducer.rollout.eligibility import (
    MEMORY_DAYS,
    OwnerFacts,
    Question,
    is_stable,
    reasons_against,
    recent,
)
from guardwave.reducer.rollout.ladder import Refusal, WaveStarted
from guardwave.reducer.rollout.state import Rollout, Wave
from guardwave.reducer.vocabulary import Mode, Route

MAX_LOOKS = 8
MAX_DAYS = 90
_LOOK_BACK_DAYS = 14


def freeze_wave(context: Context, rollout: Rollout, draft: Wave) -> tuple[Wave, Roster | None]:
    """Return the drafted wave with its frozen, drawn roster; a shadow wave has none."""
    if draft.phase.rank <= Mode.SHADOW.rank:
        return draft, None
    salt = salt_text(rollout.salt, rollout.salt_epoch)
    roster = draw(
        rollout.environment,
        rollout.guard,
        salt,
        _eligible(context, rollout, draft),
        share_bps=draft.treated_bps,
    )
    frozen = replace(
        draft,
        salt=salt,
        roster_size=len(roster.pseudonyms),
        treated=roster.treated,
        roster_digest=roster.digest,
    )
    return frozen, roster


def _eligible(context: Context, rollout: Rollout, draft: Wave) -> tuple[str, ...]:
    today = context.clock.now().date()
    trusted = trusted_producers(context, rollout.environment)
    days = _complete_days(context, rollout, today)
    everyone = context.owners.all_facts(rollout.environment)
    return tuple(
        pseudonym
        for pseudonym, facts in everyone.items()
        if _is_eligible(facts, draft, today=today, trusted=trusted)
        and (draft.phase is not Mode.ENFORCE or is_stable(facts, days))
    )


def _is_eligible(facts: OwnerFacts, draft: Wave, *, today: date, trusted: frozenset[str]) -> bool:
    """Whether an owner is eligible with a pinned version of its last 7 days, if it has one."""
    versions = recent(facts.versions, today) & set(draft.version_pin)
    question = Question(min(versions, default=None), Route.INTERACTIVE_FOREGROUND, today)
    against = reasons_against(
        facts, question, version_pin=draft.version_pin, trusted_producers=trusted
    )
    return not against


def _complete_days(context: Context, rollout: Rollout, today: date) -> tuple[date, ...]:
    """Return the environment's last complete days of any wave, oldest first."""
    source = rollout.evidence_source
    floors = floors_of(context, rollout.environment, source)
    oldest = today - timedelta(days=_LOOK_BACK_DAYS)
    back = range(_LOOK_BACK_DAYS + COMPARED_DAYS, 0, -1)
    candidates = [today - timedelta(days=at) for at in back]
    sealed = context.evidence.sealed_days(rollout.environment, candidates, source)
    complete = complete_days(sealed, floors=floors)
    return tuple(day for day in complete if day >= oldest)[-MEMORY_DAYS:]


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
    """Start a new wave of the phase, with a new roster and a dwell of zero days; return both.

    Raises:
        PreconditionRequired, PreconditionFailed: see `If-Match`, which is required.
        InvalidField: the looks do not rise, are too many or too late.
        RuleViolated: the first look is before the policy's dwell.
        Latched: the environment is latched and the phase is above shadow.
        StepSkipped: the rollout is off, or the pin has a new version above shadow.
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
        wave, roster = freeze_wave(context, rollout, draft)
        after = apply_event(context, rollout, WaveStarted(wave))
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
        return Change(before, writes, note, (with_policy_ceiling(context, after), wave))

    return change(context, environment, decide)


def _check_judged(rollout: Rollout, pin: tuple[str, ...]) -> None:
    """Check that a wave above shadow pins only versions that passed the gates."""
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
    """Return the phase's share, in enforce at most the ceiling.

    After a demotion to warn it is the policy's share again.
    """
    if rollout.phase is Mode.WARN and rollout.wave == 0:
        return BPS - context.policies.of(rollout.environment).holdback_bps
    if rollout.phase is Mode.ENFORCE:
        return min(rollout.treated_bps, with_policy_ceiling(context, rollout).ceiling_bps)
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
