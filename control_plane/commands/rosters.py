"""Freezing a roster: who is eligible now, in draw order."""

from dataclasses import replace
from datetime import date, timedelta

from control_plane.commands.trust import trusted_producers
from control_plane.context import Context
from control_plane.queries.days import floors_of
from reducer.rollout.days import COMPARED_DAYS, complete_days
from reducer.rollout.draw import Roster, draw, salt_text
from reducer.rollout.eligibility import (
    MEMORY_DAYS,
    OwnerFacts,
    Question,
    is_stable,
    reasons_against,
    recent,
)
from reducer.rollout.state import Rollout, Wave
from reducer.vocabulary import Mode, Route

_LOOK_BACK_DAYS = 14


def frozen_wave(context: Context, rollout: Rollout, draft: Wave) -> tuple[Wave, Roster | None]:
    """Return the draft with its roster frozen and drawn; a shadow wave has none."""
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
    """Eligible with the version it was seen with: who was not seen for 7 days is on no roster."""
    seen = recent(facts.versions, today) & set(draft.version_pin)
    question = Question(min(seen, default=None), Route.INTERACTIVE_FOREGROUND, today)
    against = reasons_against(
        facts, question, version_pin=draft.version_pin, trusted_producers=trusted
    )
    return not against


def _complete_days(context: Context, rollout: Rollout, today: date) -> tuple[date, ...]:
    """Return the last complete days of the environment, oldest first, whatever wave they lie in."""
    source = rollout.evidence_source
    floors = floors_of(context, rollout.environment, source)
    oldest = today - timedelta(days=_LOOK_BACK_DAYS)
    back = range(_LOOK_BACK_DAYS + COMPARED_DAYS, 0, -1)
    looked_at = [today - timedelta(days=at) for at in back]
    sealed = context.evidence.sealed_days(rollout.environment, looked_at, source)
    complete = complete_days(sealed, floors=floors)
    return tuple(day for day in complete if day >= oldest)[-MEMORY_DAYS:]
