"""Sealed days as the sums of a day's hashes show them, one hash for each shard."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from functools import cached_property
from typing import NamedTuple

from reducer.rollout.days import SealedDay
from reducer.rollout.state import EvidenceSource

HOURS = 24
# Sums of what counters of hosts that number nothing show; those of "_since" are of before midnight.
_COUNTERS = ("counted", "witnessed")


class PromptCounts(NamedTuple):
    """What trusted producers tell of the prompts of one day and version.

    `by_events` are the prompts that log records tell of, `by_counters` the starts that counters of
    prompts show, each None when there is none. A counter of each guard counts all prompts: the
    highest stands for them. `certain` of these are of the day for sure, and not of before midnight.
    """

    version: str
    by_events: int | None
    by_counters: int | None
    certain: int

    @property
    def untold(self) -> int:
        """The prompts that counters show and no event tells, where both tell of the version."""
        return max(self.certain - self.by_events, 0) if self.by_events else 0


class DayFields:
    """What the store holds of one day, in each of the shards."""

    def __init__(self, held: Sequence[Mapping[bytes, bytes]]) -> None:
        self._held = held

    @property
    def is_sealed(self) -> bool:
        """Whether all shards are: sealing may be cut off half-way, and the rest be sealed later."""
        return all(b"sealed_at" in each for each in self._held)

    @property
    def outage(self) -> bytes:
        """The longest outage of intake in seconds, as text; empty when nothing proves it was up."""
        return self._held[0].get(b"outage", b"")

    @property
    def revision(self) -> int:
        """How often the day changed since it was sealed, and 1: sealing makes one in each shard."""
        return self.count("revision") - (len(self._held) - 1)

    def count(self, name: str) -> int:
        """Return a sum of the day."""
        return sum(int(each.get(name.encode(), b"0")) for each in self._held)

    @cached_property
    def prompt_counts(self) -> tuple[PromptCounts, ...]:
        """What trusted producers tell of the day's prompts, by version."""
        by_events = self._counts("told:")
        shown: dict[str, int] = {}
        certain: dict[str, int] = {}
        since = self._counts("shown_since:")
        for of_guard, many in self._counts("shown:").items():
            version = of_guard.partition("|")[2]
            shown[version] = max(shown.get(version, 0), many)
            sure = many - since.get(of_guard, 0)
            certain[version] = max(certain.get(version, 0), sure)
        return tuple(
            PromptCounts(
                version, by_events.get(version), shown.get(version), certain.get(version, 0)
            )
            for version in sorted(by_events.keys() | shown.keys())
        )

    def _counts(self, prefix: str) -> dict[str, int]:
        """Return the sums above zero whose names begin so, by the rest of the name."""
        names = {name for each in self._held for name in each if name.startswith(prefix.encode())}
        counts = {name.decode(): self.count(name.decode()) for name in names}
        return {name.removeprefix(prefix): many for name, many in counts.items() if many > 0}


class Around(NamedTuple):
    """A day and those beside it: what happens just before midnight is counted after it."""

    before: DayFields
    day: DayFields
    after: DayFields

    @property
    def covered(self) -> int:
        """The covered prompts: at most the share that records have of counted transitions.

        Records that the day before had too many of are none that this day is short of.
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
        """The transitions without a number that no counter of their host shows.

        What points of the next day tell across midnight may be of this one.
        """
        counted = self.day.count("counted") + self.after.count("counted_since")
        return min(max(self.day.count("unnumbered") - counted, 0), self.day.count("unnumbered"))

    @property
    def unwitnessed(self) -> int:
        """The ended prompts with tool calls of hosts that number nothing, if no counter came."""
        day, after = self.day, self.after
        came = sum(day.count(name) + after.count(f"{name}_since") for name in _COUNTERS)
        return 0 if came > 0 else day.count("called")


def sealed_day(day: date, around: Around, source: EvidenceSource) -> SealedDay:
    """Return a sealed day as this source shows it.

    What counters show has names of its own; seal and revision are of the day. Counters do not tell
    which ended prompts are covered: by them none is.
    """
    count, outage = around.day.count, around.day.outage
    is_of_events = source is EvidenceSource.EVENTS
    prefix = "" if is_of_events else "c"
    return SealedDay(
        day=day,
        revision=around.day.revision,
        hourly_prompts=tuple(count(f"{prefix}h{hour}") for hour in range(HOURS)),
        longest_outage_seconds=float(outage) if outage else None,
        ended=count(f"{prefix}ended"),
        covered=around.covered if is_of_events else 0,
        records=count(f"{prefix}records"),
        conforming=count(f"{prefix}conforming"),
        smeared=max(count(f"{prefix}smeared"), 0),
        overflowed=max(count(f"{prefix}overflowed"), 0),
        unnumbered=count("unnumbered") if is_of_events else 0,
        uncounted=around.uncounted if is_of_events else 0,
        unwitnessed=around.unwitnessed if is_of_events else 0,
        untold=sum(each.untold for each in around.day.prompt_counts) if is_of_events else 0,
    )


class HeldDays:
    """What the store held of some days, and of those beside them, when they were read."""

    def __init__(self, days: Sequence[date], held: Mapping[date, DayFields]) -> None:
        self._days = days
        self._held = held

    def sealed(self, source: EvidenceSource = EvidenceSource.EVENTS) -> tuple[SealedDay, ...]:
        """Return those of the days that are sealed, in the order given, as this source shows them.

        Counters do not tell which ended prompts are covered: by them none is. Where a host's
        transitions are not numbered, no more are covered than its counter shows records of, and
        where it shows too few of those it is not known.
        """
        return tuple(
            sealed_day(day, self._around(day), source)
            for day in self._days
            if self._held[day].is_sealed
        )

    def prompt_counts(self, day: date) -> tuple[PromptCounts, ...]:
        """Return what trusted producers tell of the prompts of one of the days, sealed or not."""
        return self._held[day].prompt_counts

    def _around(self, day: date) -> Around:
        return Around(*(self._held[day + timedelta(days=by)] for by in (-1, 0, 1)))
