"""Evidence pages: a rollout's owner-days, read from the store while they are sent."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

import orjson

from guardwave.control_plane.archive.lines import owner_day_members
from guardwave.control_plane.core.errors import RuleViolated
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.rollouts.loading import load_rollout
from guardwave.control_plane.stores.evidence.pages import DayBucket, NumberedStratum
from guardwave.control_plane.stores.evidence.shards import OWNER_BUCKETS
from guardwave.reducer.vocabulary import Cohort


@dataclass(frozen=True, slots=True)
class DayRange:
    """UTC days, both ends included; None is no end."""

    first: date | None
    last: date | None

    def select(self, days: Sequence[date]) -> tuple[date, ...]:
        """Return the days that lie in the range.

        Raises:
            RuleViolated: it ends before it begins.
        """
        if self.first is not None and self.last is not None and self.first > self.last:
            raise RuleViolated(
                f"from is {self.first} and to is {self.last}: the days end before they begin"
            )
        return tuple(
            day
            for day in days
            if (self.first is None or self.first <= day) and (self.last is None or day <= self.last)
        )


@dataclass(frozen=True, slots=True)
class OwnerDayQuery:
    """A filter of owner-days, and the cursor `after` which they continue.

    A page ends with the bucket of owners that reaches `limit` owner-days.
    """

    days: DayRange
    wave: int | None
    cohort: Cohort | None
    after: str | None
    limit: int


class EvidencePage(NamedTuple):
    """Chunks of JSON lines, one owner-day a line, and the cursor of the next page, if any."""

    lines: Iterator[bytes]
    following: str | None


def evidence_page(
    context: Context, environment: str, guard: str, query: OwnerDayQuery
) -> EvidencePage:
    """Return a page of the rollout's owner-days, by day and owner, as the store holds them.

    Raises:
        NotFound: no such environment or rollout.
        RuleViolated: the days end before they begin.
    """
    load_rollout(context, environment, guard)
    days = query.days.select(context.evidence.days(environment))
    strata = [
        stratum
        for stratum in context.pages.strata(environment)
        if stratum.stratum.guard == guard
        and stratum.stratum.cohort is not None
        and query.wave in {None, stratum.stratum.wave}
        and query.cohort in {None, stratum.stratum.cohort}
    ]
    chosen: list[DayBucket] = []
    owner_days = 0
    for place, size in _sizes(context, environment, strata, days=days, after=query.after):
        if owner_days >= query.limit:
            return EvidencePage(_lines(context, environment, strata, chosen), chosen[-1].cursor)
        chosen.append(place)
        owner_days += size
    return EvidencePage(_lines(context, environment, strata, chosen), None)


def _sizes(
    context: Context,
    environment: str,
    strata: Sequence[NumberedStratum],
    *,
    days: Sequence[date],
    after: str | None,
) -> Iterator[tuple[DayBucket, int]]:
    """Yield the places after a cursor that hold owner-days, with their numbers."""
    for day in days:
        places = [DayBucket(day, bucket) for bucket in range(OWNER_BUCKETS)]
        left = [place for place in places if after is None or place.cursor > after]
        if left and strata:
            sizes = context.pages.sizes(environment, strata, left)
            yield from ((place, size) for place, size in zip(left, sizes, strict=True) if size)


def _lines(
    context: Context,
    environment: str,
    strata: Sequence[NumberedStratum],
    places: Sequence[DayBucket],
) -> Iterator[bytes]:
    for place in places:
        found = context.pages.owner_days(environment, strata, place)
        yield b"".join(orjson.dumps(owner_day_members(row)) + b"\n" for row in found)
