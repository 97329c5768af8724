"""Owner-days of a rollout, in pages that are read while they are sent."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

import orjson

from control_plane.commands.changes import load_rollout
from control_plane.context import Context
from control_plane.errors import RuleViolated
from control_plane.queries.archive_lines import owner_day_members
from control_plane.stores.evidence_pages import NumberedCell, Place
from control_plane.stores.shards import OWNER_BUCKETS
from reducer.vocabulary import Cohort


@dataclass(frozen=True, slots=True)
class DayRange:
    """UTC days, both ends included; None is no end."""

    first: date | None
    last: date | None

    def held(self, days: Sequence[date]) -> tuple[date, ...]:
        """Return those of the days that lie in the range.

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
class EvidenceQuestion:
    """Which owner-days, and where to go on: behind the place that `after` names.

    `limit` is how many make a page; it ends with the bucket of owners that reaches it.
    """

    days: DayRange
    wave: int | None
    cohort: Cohort | None
    after: str | None
    limit: int


class EvidencePage(NamedTuple):
    """Lines of JSON, some owner-days at a time, and the cursor of the next page if there is one."""

    lines: Iterator[bytes]
    following: str | None


def evidence_page(
    context: Context, environment: str, guard: str, question: EvidenceQuestion
) -> EvidencePage:
    """Return a page of the rollout's owner-days, by day and owner, as the store holds them.

    Raises:
        NotFound: no such environment or rollout.
        RuleViolated: the days end before they begin.
    """
    load_rollout(context, environment, guard)
    days = question.days.held(context.evidence.days(environment))
    cells = [
        each
        for each in context.pages.cells(environment)
        if each.cell.guard == guard
        and each.cell.cohort is not None
        and question.wave in {None, each.cell.wave}
        and question.cohort in {None, each.cell.cohort}
    ]
    chosen: list[Place] = []
    owner_days = 0
    for place, size in _sizes(context, environment, cells, days=days, after=question.after):
        if owner_days >= question.limit:
            return EvidencePage(_lines(context, environment, cells, chosen), chosen[-1].cursor)
        chosen.append(place)
        owner_days += size
    return EvidencePage(_lines(context, environment, cells, chosen), None)


def _sizes(
    context: Context,
    environment: str,
    cells: Sequence[NumberedCell],
    *,
    days: Sequence[date],
    after: str | None,
) -> Iterator[tuple[Place, int]]:
    """Yield the places that hold owner-days, with how many, behind a cursor."""
    for day in days:
        places = [Place(day, bucket) for bucket in range(OWNER_BUCKETS)]
        left = [place for place in places if after is None or place.cursor > after]
        if left and cells:
            sizes = context.pages.sizes(environment, cells, left)
            yield from ((place, size) for place, size in zip(left, sizes, strict=True) if size)


def _lines(
    context: Context, environment: str, cells: Sequence[NumberedCell], places: Sequence[Place]
) -> Iterator[bytes]:
    for place in places:
        found = context.pages.owner_days(environment, cells, place)
        yield b"".join(orjson.dumps(owner_day_members(each)) + b"\n" for each in found)
