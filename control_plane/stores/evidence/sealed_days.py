"""Sealed days: the sums of a day over its shards, and the coverage that they prove."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from functools import cached_property
from typing import NamedTuple

from guardwave.reducer.rollout.days import SealedDay
from guardwave.reducer.rollout.state import EvidenceSource

HOURS = 24
# Sums from counters of hosts that number nothing; with "_since", of points across midnight.
_COUNTERS = ("counted", "witnessed")


class PromptCounts(NamedTuple):
    """The prompts of one day and version, as reported by trusted producers.

    `by_events` are the prompts in log records, `by_counters` the starts in counters of prompts,
    each None when there is none. The counter of each guard counts all prompts, so the highest
    counts. `certain` of these are of this day and not of before midnight.
    """

    version: str
    by_events: int | None
    by_counters: int | None
    certain: int

    @property
    def untold(self) -> int:
        """The prompts that only counters report, where both report the version."""
        return max(self.certain - self.by_events, 0) if self.by_events else 0


class DayFields:
    """The stored fields of one day, in each of the shards."""

    def __init__(self, by_shard: Sequence[Mapping[bytes, bytes]]) -> None:
        self._by_shard = by_shard

    @property
    def is_sealed(self) -> bool:
        """Whether all shards are sealed: an interrupted seal is completed later."""
        return all(b"sealed_at" in fields for fields in self._by_shard)

    @property
    def outage(self) -> bytes:
        """The longest outage of intake in seconds, as text; empty when nothing proves it was up."""
        return self._by_shard[0].get(b"outage", b"")

    @property
    def revision(self) -> int:
        """How often the day changed since it was sealed, plus 1: a seal makes one in each shard."""
        return self.count("revision") - (len(self._by_shard) - 1)

    def count(self, name: str) -> int:
        """Return a sum of the day."""
        return sum(int(fields.get(name.encode(), b"0")) for fields in self._by_shard)

    @cached_property
    def prompt_counts(self) -> tuple[PromptCounts, ...]:
        """The day's prompts as reported by trusted producers, by version."""
        by_events = self._counts("told:")
        by_counters: dict[str, int] = {}
        certain: dict[str, int] = {}
        across_midnight = self._counts("shown_since:")
        for name, count in self._counts("shown:").items():
            version = name.partition("|")[2]
            by_counters[version] = max(by_counters.get(version, 0), count)
            of_this_day = count - across_midnight.get(name, 0)
            certain[version] = max(certain.get(version, 0), of_this_day)
        return tuple(
            PromptCounts(
                version, by_events.get(version), by_counters.get(version), certain.get(version, 0)
            )
            for version in sorted(by_events.keys() | by_counters.keys())
        )

    def _counts(self, prefix: str) -> dict[str, int]:
        """Return the sums above zero whose names begin with `prefix`, by the rest of the name."""
        names = {name.decode() for fields in self._by_shard for name in fields}
        counts = {name: self.count(name) for name in names if name.startswith(prefix)}
        return {name.removeprefix(prefix): count for name, count in counts.items() if count > 0}


class DayWithNeighbours(NamedTuple):
    """A day and the days beside it: events just before midnight may be counted after it."""

    before: DayFields
    day: DayFields
    after: DayFields

    @property
    def covered(self) -> int:
        """The covered prompts: at most the share of counted transitions that have records.

        Excess records of the day before belong to transitions that were counted on this day.
        """
        count, before = self.day.count, self.before
        counted, recorded = count("counted"), count("unnumbered")
        early = max(before.count("unnumbered") - before.count("counted"), count("counted_since"), 0)
        missing = max(counted - recorded - early, 0)
        if not missing:
            return count("covered")
        return min(count("covered"), count("ended") * (counted - missing) // counted)

    @property
    def uncounted(self) -> int:
        """The transitions without a number that no counter of their host reports.

        Points of the next day that cover midnight may count transitions of this day.
        """
        counted = self.day.count("counted") + self.after.count("counted_since")
        return min(max(self.day.count("unnumbered") - counted, 0), self.day.count("unnumbered"))

    @property
    def unwitnessed(self) -> int:
        """The ended prompts with tool calls of hosts that number nothing, if no counter came."""
        day, after = self.day, self.after
        counted = sum(day.count(name) + after.count(f"{name}_since") for name in _COUNTERS)
        return 0 if counted > 0 else day.count("called")


def sealed_day(day: date, days: DayWithNeighbours, source: EvidenceSource) -> SealedDay:
    """Return a sealed day by this source.

    The sums of counters have names of their own; seal and revision belong to the day. Counters do
    not show which ended prompts are covered, so by counters none is.
    """
    fields = days.day
    count, outage = fields.count, fields.outage
    by_events = source is EvidenceSource.EVENTS
    prefix = "" if by_events else "c"
    return SealedDay(
        day=day,
        revision=fields.revision,
        hourly_prompts=tuple(count(f"{prefix}h{hour}") for hour in range(HOURS)),
        longest_outage_seconds=float(outage) if outage else None,
        ended=count(f"{prefix}ended"),
        covered=days.covered if by_events else 0,
        records=count(f"{prefix}records"),
        conforming=count(f"{prefix}conforming"),
        smeared=max(count(f"{prefix}smeared"), 0),
        overflowed=max(count(f"{prefix}overflowed"), 0),
        unnumbered=count("unnumbered") if by_events else 0,
        uncounted=days.uncounted if by_events else 0,
        unwitnessed=days.unwitnessed if by_events else 0,
        untold=sum(counts.untold for counts in fields.prompt_counts) if by_events else 0,
    )


class StoredDays:
    """The stored fields of some days, and of the days beside them, from one reading."""

    def __init__(self, days: Sequence[date], fields: Mapping[date, DayFields]) -> None:
        self._days = days
        self._fields = fields

    def sealed(self, source: EvidenceSource = EvidenceSource.EVENTS) -> tuple[SealedDay, ...]:
        """Return the sealed ones of the days, in the order given, by this source.

        By counters no prompt is covered. By events, for hosts that do not number transitions, the
        covered prompts are limited to the share of counted transitions that have records;
        transitions that nobody counted leave that share unknown.
        """
        return tuple(
            sealed_day(day, self._with_neighbours(day), source)
            for day in self._days
            if self._fields[day].is_sealed
        )

    def prompt_counts(self, day: date) -> tuple[PromptCounts, ...]:
        """Return one day's prompts as reported by trusted producers, sealed or not."""
        return self._fields[day].prompt_counts

    def _with_neighbours(self, day: date) -> DayWithNeighbours:
        return DayWithNeighbours(*(self._fields[day + timedelta(days=by)] for by in (-1, 0, 1)))
