"""Owner view: the facts of one owner, its assignment by each guard, and its evidence."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import date, timedelta

from guardwave.control_plane.core.errors import InvalidField
from guardwave.control_plane.core.state import Environment
from guardwave.control_plane.data_plane.assignments import sentence_of
from guardwave.control_plane.queries import cards
from guardwave.control_plane.rollouts.access import trusted_producers
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.rollouts.loading import load_environment
from guardwave.control_plane.stores.evidence.owner_days import OwnerDay
from guardwave.reducer.rollout.allotment import Allotment, Place, allot
from guardwave.reducer.rollout.eligibility import OwnerFacts, Question, recent
from guardwave.reducer.rollout.pseudonym import pack, pseudonym_of
from guardwave.reducer.rollout.state import EvidenceSource, Rollout
from guardwave.reducer.vocabulary import Route

RECENT_DAYS = 14


@dataclass(frozen=True, slots=True)
class OwnerAllotment:
    """The owner's assignment by one guard in the foreground, with its last version."""

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
        names = [field.name for field in fields(self)]
        return EvidenceSums(**{name: getattr(self, name) + getattr(row, name) for name in names})


@dataclass(frozen=True, slots=True)
class OwnerEvidence:
    """The sums of the owner's prompts under one guard and wave."""

    guard: str
    wave: int
    sums: EvidenceSums


@dataclass(frozen=True, slots=True)
class OwnerView:
    """One owner, by pseudonym. `facts` None means that nothing is known of it."""

    pseudonym: str
    facts: OwnerFacts | None
    trusted_producers: frozenset[str]
    allotments: tuple[OwnerAllotment, ...]
    evidence: tuple[OwnerEvidence, ...]
    first_day: date
    last_day: date


def owner_view(context: Context, environment: str, owner: str) -> OwnerView:
    """Return the view of an owner, with its evidence of the last 14 days, today included.

    Raises:
        NotFound: no such environment.
        InvalidField: the id cannot be an owner's.
    """
    stored = load_environment(context, environment)
    try:
        pseudonym = pseudonym_of(bytes.fromhex(stored.pseudonym_key), owner)
    except ValueError as error:
        raise InvalidField(str(error), pointer="/owner") from None
    today = context.clock.now().date()
    days = [today - timedelta(days=back) for back in range(RECENT_DAYS - 1, -1, -1)]
    facts = context.owners.facts(environment, [pseudonym]).get(pseudonym)
    trusted = trusted_producers(context, environment)
    rollouts = context.environments.rollouts(stored)
    return OwnerView(
        pseudonym=pseudonym,
        facts=facts,
        trusted_producers=trusted,
        allotments=tuple(
            _allotment(context, stored, rollout, pseudonym, facts=facts, trusted=trusted)
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
    allotment = allot(
        rollout,
        facts,
        Question(version, Route.INTERACTIVE_FOREGROUND, today),
        place=place,
        trusted_producers=trusted,
        is_latched=environment.latch is not None,
    )
    sentence = sentence_of(rollout, allotment, place)
    return OwnerAllotment(rollout.guard, version, allotment, place, sentence)


def _version(facts: OwnerFacts | None, rollout: Rollout, today: date) -> str | None:
    """Return a recent version of the owner, a pinned one if it has one, as rosters do."""
    versions = frozenset[str]() if facts is None else recent(facts.versions, today)
    pinned = versions & set(rollout.version_pin)
    return min(pinned or versions, default=None)


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
    """Return the sums of the owner's days by guard and wave, from the source of each rollout."""
    sources = {rollout.guard: rollout.evidence_source for rollout in rollouts}
    rows = context.evidence.owner_rows(environment, pseudonym, pack(pseudonym)[0], days)
    sums: defaultdict[tuple[str, int], EvidenceSums] = defaultdict(EvidenceSums)
    for stratum, row in rows:
        if row.source is not sources.get(stratum.guard, EvidenceSource.EVENTS):
            continue
        sums[stratum.guard, stratum.wave] = sums[stratum.guard, stratum.wave].plus(row)
    return tuple(OwnerEvidence(guard, wave, total) for (guard, wave), total in sorted(sums.items()))
