"""Complete days: whole UTC days inside a wave whose telemetry is proven complete and sealed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from math import isnan

from guardwave.reducer.rollout.state import EvidenceSource

MAX_OUTAGE_SECONDS = 300
BUSY_HOUR_PROMPTS = 20
COMPARED_DAYS = 7
SEAL_DELAY = timedelta(hours=2)


@dataclass(frozen=True, slots=True)
class SealedDay:
    """One sealed UTC day of an environment.

    `hourly_prompts` are the prompts started in each of its 24 hours. `longest_outage_seconds` is
    the longest real time between two heartbeats of intake, None without any heartbeat. `ended` and
    `covered` count prompts (see the coverage check); `records` and `conforming` count records, and
    those of them that met the telemetry contract. `smeared` counts metric points whose interval
    crosses midnight, `overflowed` those whose attributes an SDK left out. Both are about the
    counters that are evidence, or about all counters where events are the evidence.

    The other counts are known only where events are the evidence. For hosts that do not number
    their transitions, `unnumbered` counts the transitions, `uncounted` those that no counter
    shows, and `unwitnessed` the ended prompts with tool calls of hosts without any counter point.
    `untold` counts prompts that counters show but no event reports.
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

    `contract` is the share of records, quarantined ones included, that met the telemetry contract.
    `coverage` is the share of ended prompts that are covered. It is None where counters are the
    evidence, because they cannot show coverage.
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
        """The evidence that the note is about."""
        return EvidenceSource.EVENTS if self is NoteMark.UNTOLD else EvidenceSource.COUNTERS


@dataclass(frozen=True, slots=True)
class DayNote:
    """One inexact count of a day; `sentence` explains it, with its numbers."""

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
    """Return the reason why a day inside a wave does not count, None for a complete day.

    `previous` are the sealed days before it, in any order. An hour without prompts is held
    against the day only if it had at least 20 prompts on each of the 7 days before.
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
        return f"no prompt started from {hours}, unlike on each of the 7 days before"
    if sealed.ended == 0:
        return "no prompt ended on it"
    off_contract = why_off_contract(sealed, floors.contract)
    if off_contract is not None:
        return off_contract
    if floors.coverage is None:
        return _why_overflowed(sealed)
    return _why_uncovered(sealed, floors.coverage)


def why_off_contract(sealed: SealedDay, floor: float) -> str | None:
    """Return the reason when too many of a day's records did not meet the telemetry contract.

    Quarantined records are in no other number of the day, so only this check can show them.
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
    points = _points(sealed.overflowed)
    return f"{points} came without attributes, beyond the cardinality limit of an SDK"


def _why_uncovered(sealed: SealedDay, floor: float) -> str | None:
    """Return the reason when coverage does not hold or is not known.

    Without numbered transitions only a counter can show that one is missing. A day without such a
    counter is therefore treated like a day with missing records.
    """
    if sealed.covered < floor * sealed.ended:
        return f"telemetry covered {sealed.covered} of {sealed.ended} ended prompts"
    if sealed.covered < floor * (sealed.ended + sealed.untold):
        shown = _many(sealed.untold, "prompt")
        return (
            f"counters show {shown} that no event reports, besides {sealed.ended:,} that ended: "
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
            f"coverage is not known: {ended} called tools on hosts that number no transitions and "
            "sent no counter"
        )
    return None


def day_notes(sealed: SealedDay) -> tuple[DayNote, ...]:
    """Return the notes on a day's inexact counts, of either source, complete or not."""
    notes: list[DayNote] = []
    if sealed.smeared:
        sentence = (
            f"{_points(sealed.smeared)} of counters cross midnight, so events around it may "
            "count on the neighbouring day"
        )
        notes.append(DayNote(NoteMark.SMEARED, sentence))
    if sealed.overflowed:
        sentence = (
            f"{_points(sealed.overflowed)} of counters came without attributes, beyond the "
            "cardinality limit of an SDK, so totals are whole and counts by outcome are not"
        )
        notes.append(DayNote(NoteMark.OVERFLOWED, sentence))
    if sealed.untold:
        sentence = f"counters show {_many(sealed.untold, 'prompt')} that no event reports"
        notes.append(DayNote(NoteMark.UNTOLD, sentence))
    return tuple(notes)


def notes_touching(source: EvidenceSource, notes: Iterable[DayNote]) -> tuple[DayNote, ...]:
    """Return the notes of a day that matter for evidence of this source.

    Inexact counters do not matter for events, which count on their own day; missing events do not
    matter for counters.
    """
    return tuple(note for note in notes if note.mark.source is source)


def _points(many: int) -> str:
    return _many(many, "point")


def _many(many: int, what: str) -> str:
    return f"{many:,} {what if many == 1 else f'{what}s'}"


def complete_days(sealed: Sequence[SealedDay], *, floors: DayFloors) -> tuple[date, ...]:
    """Return the sealed days that are complete, whatever their wave, in order.

    Silent hours are found by the 7 sealed days before, so pass those as well.
    """
    ordered = sorted(sealed, key=lambda day: day.day)
    return tuple(day.day for day in ordered if why_incomplete(day, ordered, floors=floors) is None)


def _silent_hour(sealed: SealedDay, previous: Sequence[SealedDay]) -> int | None:
    earliest = sealed.day - timedelta(days=COMPARED_DAYS)
    compared = [day for day in previous if earliest <= day.day < sealed.day]
    # Two revisions of one day must not stand in for a day that is missing.
    if len({day.day for day in compared}) < COMPARED_DAYS:
        return None
    for hour, prompts in enumerate(sealed.hourly_prompts):
        was_busy = all(day.hourly_prompts[hour] >= BUSY_HOUR_PROMPTS for day in compared)
        if was_busy and prompts == 0:
            return hour
    return None
