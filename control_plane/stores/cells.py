"""Cells: what owner-days of one kind have in common, interned to small integers by the store."""

import json
from dataclasses import dataclass
from datetime import date
from functools import lru_cache

from reducer.rollout.state import EvidenceSource
from reducer.vocabulary import Cohort, Mode


@dataclass(frozen=True, slots=True)
class Cell:
    """A guard, the version that reported, and the wave, cohort and mode of the assignment id.

    `cohort` and `mode` are None for volume that no assignment id vouches for. `source` is the
    telemetry that its owner-days were made from: those of two sources are never added.
    """

    guard: str
    version: str
    wave: int = 0
    cohort: Cohort | None = None
    mode: Mode | None = None
    source: EvidenceSource = EvidenceSource.EVENTS

    @property
    def name(self) -> str:
        """The cell as the store's key for interning: a JSON array."""
        named = (self.guard, self.version, self.wave, self.cohort, self.mode)
        if self.source is EvidenceSource.EVENTS:
            return _name(*named)
        return _name(*named, self.source)

    @property
    def treatment(self) -> str:
        """The cohort and the mode, whose change within a prompt is a switch of treatment."""
        return f"{self.cohort}|{self.mode}"

    @classmethod
    def named(cls, name: str) -> "Cell":
        """Return the cell of a stored name.

        Raises:
            ValueError: the name is not one that `name` made.
        """
        guard, version, wave, cohort, mode, *source = json.loads(name)
        return cls(
            guard,
            version,
            wave,
            None if cohort is None else Cohort(cohort),
            None if mode is None else Mode(mode),
            EvidenceSource(*source) if source else EvidenceSource.EVENTS,
        )


def day_number(day: date) -> int:
    """Return the days since 1970."""
    return (day - date(1970, 1, 1)).days


def used_on(day: date) -> str:
    """Return what the store notes of a cell beside its number: used on the day, in no budget."""
    return f"{day_number(day)} "


# Every event names its cell, and an environment has few.
@lru_cache(maxsize=4096)
def _name(*fields: str | int | None) -> str:
    return json.dumps(fields, separators=(",", ":"))
