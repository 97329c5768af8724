"""Complete days: whole UTC days inside a wave whose telemetry is proven complete and sealed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from math import isnan

from reducer.rollout.state import EvidenceSource

MAX_OUTAGE_SECONDS = 300
BUSY_HOUR_PROMPTS = 20
COMPARED_DAYS = 7
SEAL_DELAY = timedelta(hours=2)


@dataclass(frozen=True, slots=True)
class SealedDay:
    """One sealed UTC day of an environment.

    `hourly_prompts` holds the prompts started in each of its 24 hours; `longest_outage_seconds` is
    real time between two heartbeats of intake, None when no heartbeat proves that intake was up.
    `ended` and `covered` count prompts (see the coverage check), `records` and `conforming` count
    records and those among them that met the telemetry contract. `smeared` counts points that tell
    of a time on both sides of a midnight of the day, `overflowed` those whose attributes an SDK
    left out: of the evidence by counters, and where events are it, of all counters.

    What follows is known where events are the evidence. Of hosts that number no transitions,
    `unnumbered` counts their transitions, `uncounted` those that no counter of theirs shows, and
    `unwitnessed` ended prompts with tool calls if not one point of their counters came. `untold`
    are prompts that counters of hosts show and no event tells.
    """

    day: date
    revision: int
    hourly_prompts: tuple[int, ...]
    longest_outage_seconds: float | None
    ended: int
    covered: int
    records: int
    conforming: int
    smeared: int = 0
    overflowed: int = 0
    unnumbered: int = 0
    uncounted: int = 0
    unwitnessed: int = 0
    untold: int = 0


@dataclass(frozen=True, slots=True)
class DayFloors:
    """The least shares, from 0 to 1, with which a day counts.

    `contract` is of its records, quarantined ones included, those that met the telemetry contract.
    `coverage` is of its ended prompts, and None for days as counters show them, which do not tell
    what is covered.
    """

    contract: float
    coverage: float | None


class NoteMark(StrEnum):
    """What is not exact of a day: counts across midnight, of no attributes, or of no event."""

    SMEARED = "smeared"
    OVERFLOWED = "overflowed"
    UNTOLD = "untold"

    @property
    def source(self) -> EvidenceSource:
        """The evidence that is not exact: prompts that counters show are missing from events."""
        return EvidenceSource.EVENTS if self is NoteMark.UNTOLD else EvidenceSource.COUNTERS


@dataclass(frozen=True, slots=True)
class DayNote:
    """One thing that is not exact of a day; `sentence` says it in words, with its numbers."""

    mark: NoteMark
    sentence: str


def day_start(day: date) -> datetime:
    """Return the first instant of the UTC day."""
    return datetime.combine(day, time.min, UTC)


def is_whole(day: date, opened_at: datetime, closed_at: datetime | None) -> bool:
    """Whether the day lies wholly inside the wave."""
    if day_start(day) < opened_at:
        return False
    return closed_at is None or day_start(day + timedelta(days=1)) <= closed_at


def why_incomplete(
    sealed: SealedDay | None, previous: Sequence[SealedDay], *, floors: DayFloors
) -> str | None:
    """Return in words why a day inside a wave does not count; None when it is complete.

    `previous` are the sealed days before it, in any order; an hour is judged only when it had at
    least 20 prompts on each of the 7 days before.
    """
    if sealed is None:
        return "it is not sealed yet"
    outage = sealed.longest_outage_seconds
    if outage is None:
        return "no heartbeat shows that intake was up"
    if isnan(outage) or outage > MAX_OUTAGE_SECONDS:
        return f"intake was down for {outage:.0f} s, more than {MAX_OUTAGE_SECONDS} s"
    silent = _silent_hour(sealed, previous)
    if silent is not None:
        hours = f"{silent:02d}:00 to {silent + 1:02d}:00"
        return f"no prompt started from {hours}, on each of the 7 days before some did"
    if sealed.ended == 0:
        return "no prompt ended on it"
    off_contract = why_off_contract(sealed, floors.contract)
    if off_contract is not None:
        return off_contract
    if floors.coverage is None:
        return _why_overflowed(sealed)
    return _why_uncovered(sealed, floors.coverage)


def why_off_contract(sealed: SealedDay, floor: float) -> str | None:
    """Return in words why too many of a day's records did not meet the telemetry contract.

    What was quarantined is in no other number of the day, so that those show nothing of it.
    """
    if sealed.conforming >= floor * sealed.records:
        return None
    return (
        f"{sealed.conforming:,} of {_many(sealed.records, 'record')} met the telemetry contract, "
        f"{100 * floor:g} % is asked for"
    )


def _why_overflowed(sealed: SealedDay) -> str | None:
    if not sealed.overflowed:
        return None
    told = _points(sealed.overflowed)
    return f"{told} came without attributes, beyond the cardinality limit of an SDK"


def _why_uncovered(sealed: SealedDay, floor: float) -> str | None:
    """Return in words why coverage does not hold or is not known.

    Where transitions have no numbers, a counter is all that could show that one is missing: a day
    that it does not vouch for is no better than one of which records are known to be missing.
    """
    if sealed.covered < floor * sealed.ended:
        return f"telemetry covered {sealed.covered} of {sealed.ended} ended prompts"
    if sealed.covered < floor * (sealed.ended + sealed.untold):
        shown = _many(sealed.untold, "prompt")
        return (
            f"counters show {shown} that no event tells, beside {sealed.ended:,} that ended: "
            "events were lost on the way"
        )
    counted = sealed.unnumbered - sealed.uncounted
    if counted < floor * sealed.unnumbered:
        return (
            f"coverage is not known: the guard's counter shows {counted} of {sealed.unnumbered} "
            "transitions that have no sequence number"
        )
    if sealed.unwitnessed:
        ended = _many(sealed.unwitnessed, "ended prompt")
        return (
            f"coverage is not known: {ended} called tools, and no counter came of hosts that "
            "number no transitions"
        )
    return None


def day_notes(sealed: SealedDay) -> tuple[DayNote, ...]:
    """Return what is not exact of a day, complete or not, by whichever source."""
    found: list[DayNote] = []
    if sealed.smeared:
        sentence = (
            f"{_points(sealed.smeared)} of counters cross midnight, so what happened around it may "
            "count on the day beside"
        )
        found.append(DayNote(NoteMark.SMEARED, sentence))
    if sealed.overflowed:
        sentence = (
            f"{_points(sealed.overflowed)} of counters came without attributes, beyond the "
            "cardinality limit of an SDK, so totals are whole and counts by outcome are not"
        )
        found.append(DayNote(NoteMark.OVERFLOWED, sentence))
    if sealed.untold:
        sentence = f"counters show {_many(sealed.untold, 'prompt')} that no event tells"
        found.append(DayNote(NoteMark.UNTOLD, sentence))
    return tuple(found)


def notes_touching(source: EvidenceSource, notes: Iterable[DayNote]) -> tuple[DayNote, ...]:
    """Return those of a day's notes that touch a rollout whose evidence is of this source.

    What counters do not tell exactly is nothing to events, which are booked on their own day; the
    prompts that no event tells are missing from them alone.
    """
    return tuple(note for note in notes if note.mark.source is source)


def _points(many: int) -> str:
    return _many(many, "point")


def _many(many: int, what: str) -> str:
    return f"{many:,} {what if many == 1 else f'{what}s'}"


def complete_days(sealed: Sequence[SealedDay], *, floors: DayFloors) -> tuple[date, ...]:
    """Return those of the sealed days that are complete in themselves, whatever the wave, in order.

    A busy hour is told from a silent one by the sealed days before it, so give 7 days more.
    """
    ordered = sorted(sealed, key=lambda each: each.day)
    return tuple(
        each.day for each in ordered if why_incomplete(each, ordered, floors=floors) is None
    )


def _silent_hour(sealed: SealedDay, previous: Sequence[SealedDay]) -> int | None:
    earliest = sealed.day - timedelta(days=COMPARED_DAYS)
    compared = [day for day in previous if earliest <= day.day < sealed.day]
    # A day that is there in two revisions must not stand in for one that is missing.
    if len({day.day for day in compared}) < COMPARED_DAYS:
        return None
    for hour, prompts in enumerate(sealed.hourly_prompts):
        was_busy = all(day.hourly_prompts[hour] >= BUSY_HOUR_PROMPTS for day in compared)
        if was_busy and prompts == 0:
            return hour
    return None
