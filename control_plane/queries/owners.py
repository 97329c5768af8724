"""One owner: its facts, what each guard gives it and why, and what its evidence adds up to."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import date, timedelta

from control_plane.commands.changes import load_environment
from control_plane.commands.trust import trusted_producers
from control_plane.context import Context
from control_plane.errors import InvalidField
from control_plane.queries import cards
from control_plane.queries.assignment_views import sentence_of
from control_plane.state import Environment
from control_plane.stores.owner_days import OwnerDay
from reducer.rollout.allotment import Allotment, Place, allot
from reducer.rollout.eligibility import OwnerFacts, Question, recent
from reducer.rollout.pseudonym import pack, pseudonym_of
from reducer.rollout.state import EvidenceSource, Rollout
from reducer.vocabulary import Route

RECENT_DAYS = 14


@dataclass(frozen=True, slots=True)
class OwnerAllotment:
    """What one guard gives the owner in the foreground, with the version it was last seen with."""

    guard: str
    version: str | None
    allotment: Allotment
    place: Place | None
    sentence: str


@dataclass(frozen=True, slots=True)
class EvidenceSums:
    """Counts of prompts, and tokens and turns, of one owner."""

    started: int = 0
    completed: int = 0
    cancelled: int = 0
    disrupted: int = 0
    tokens: int = 0
    turns: int = 0

    def plus(self, row: OwnerDay) -> "EvidenceSums":
        """Return the sums with one more owner-day."""
        names = [each.name for each in fields(self)]
        return EvidenceSums(**{name: getattr(self, name) + getattr(row, name) for name in names})


@dataclass(frozen=True, slots=True)
class OwnerEvidence:
    """What the owner's prompts under one guard and wave added up to."""

    guard: str
    wave: int
    sums: EvidenceSums


@dataclass(frozen=True, slots=True)
class OwnerView:
    """One owner, by pseudonym. `facts` None: nothing is known of it."""

    pseudonym: str
    facts: OwnerFacts | None
    trusted_producers: frozenset[str]
    allotments: tuple[OwnerAllotment, ...]
    evidence: tuple[OwnerEvidence, ...]
    first_day: date
    last_day: date


def owner_view(context: Context, environment: str, owner: str) -> OwnerView:
    """Return what is known of an owner; its evidence of the last 14 days, today included.

    Raises:
        NotFound: no such environment.
        InvalidField: the id cannot be an owner's.
    """
    held = load_environment(context, environment)
    try:
        pseudonym = pseudonym_of(bytes.fromhex(held.pseudonym_key), owner)
    except ValueError as error:
        raise InvalidField(str(error), pointer="/owner") from None
    today = context.clock.now().date()
    days = [today - timedelta(days=back) for back in range(RECENT_DAYS - 1, -1, -1)]
    facts = context.owners.facts(environment, [pseudonym]).get(pseudonym)
    trusted = trusted_producers(context, environment)
    rollouts = context.environments.rollouts(held)
    return OwnerView(
        pseudonym=pseudonym,
        facts=facts,
        trusted_producers=trusted,
        allotments=tuple(
            _allotment(context, held, rollout, pseudonym, facts=facts, trusted=trusted)
            for rollout in rollouts
        ),
        evidence=_evidence(context, pseudonym, days, rollouts, environment=environment),
        first_day=days[0],
        last_day=days[-1],
    )


def _allotment(
    context: Context,
    environment: Environment,
    rollout: Rollout,
    pseudonym: str,
    *,
    facts: OwnerFacts | None,
    trusted: frozenset[str],
) -> OwnerAllotment:
    today = context.clock.now().date()
    version = _version(facts, rollout, today)
    place = _place(context, rollout, pseudonym)
    allotted = allot(
        rollout,
        facts,
        Question(version, Route.INTERACTIVE_FOREGROUND, today),
        place=place,
        trusted_producers=trusted,
        is_latched=environment.latch is not None,
    )
    sentence = sentence_of(rollout, allotted, place)
    return OwnerAllotment(rollout.guard, version, allotted, place, sentence)


def _version(facts: OwnerFacts | None, rollout: Rollout, today: date) -> str | None:
    """Return a recent version of the owner, a pinned one if there is one, as rosters do."""
    seen = frozenset[str]() if facts is None else recent(facts.versions, today)
    pinned = seen & set(rollout.version_pin)
    return min(pinned or seen, default=None)


def _place(context: Context, rollout: Rollout, pseudonym: str) -> Place | None:
    wave = cards.membership_wave(context, rollout)
    if wave is None:
        return None
    roster = context.environments.roster(rollout.environment, rollout.guard, wave)
    if roster is None or pseudonym not in roster.pseudonyms:
        return None
    rank = roster.pseudonyms.index(pseudonym) + 1
    return Place(rank, wave.roster_size, wave.treated, wave.algorithm)


def _evidence(
    context: Context,
    pseudonym: str,
    days: Sequence[date],
    rollouts: Sequence[Rollout],
    *,
    environment: str,
) -> tuple[OwnerEvidence, ...]:
    """Return what the owner's days add up to, each guard's by the source of its rollout."""
    sources = {rollout.guard: rollout.evidence_source for rollout in rollouts}
    rows = context.evidence.owner_rows(environment, pseudonym, pack(pseudonym)[0], days)
    sums: defaultdict[tuple[str, int], EvidenceSums] = defaultdict(EvidenceSums)
    for cell, row in rows:
        if row.source is not sources.get(cell.guard, EvidenceSource.EVENTS):
            continue
        sums[cell.guard, cell.wave] = sums[cell.guard, cell.wave].plus(row)
    return tuple(OwnerEvidence(guard, wave, added) for (guard, wave), added in sorted(sums.items()))
