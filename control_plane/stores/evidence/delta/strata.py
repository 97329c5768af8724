"""Strata: the key that owner-days of one kind share, interned to small integers by the store.

Keys of the store, its Lua functions, counters of intake and the archives call a stratum a cell.
"""

import json
from dataclasses import dataclass
from datetime import date
from functools import lru_cache

from guardwave.reducer.rollout.state import EvidenceSource
from guardwave.reducer.vocabulary import Cohort, Mode


@dataclass(frozen=True, slots=True)
class Stratum:
    """A guard, the version that reported, and the wave, cohort and mode of the assignment id.

    `cohort` and `mode` are None for volume without a verified assignment id. `source` is the
    telemetry that its owner-days come from: owner-days of two sources are never added.
    """

    guard: str
    version: str
    wave: int = 0
    cohort: Cohort | None = None
    mode: Mode | None = None
    source: EvidenceSource = EvidenceSource.EVENTS

    @property
    def name(self) -> str:
        """The stratum as the store's key for interning: a JSON array."""
        fields = (self.guard, self.version, self.wave, self.cohort, self.mode)
        if self.source is EvidenceSource.EVENTS:
            return _name(*fields)
        return _name(*fields, self.source)

    @property
    def treatment(self) -> str:
        """Cohort and mode: a change within a prompt is a switch of treatment."""
        return f"{self.cohort}|{self.mode}"

    @classmethod
    def from_name(cls, name: str) -> "Stratum":
        """Return the stratum of a stored name.

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
    """Return the note that the store keeps beside a stratum's number: its last day, no budget."""
    return f"{day_number(day)} "


# Every event names its stratum, and an environment has few.
@lru_cache(maxsize=4096)
def _name(*fields: str | int | None) -> str:
    return json.dumps(fields, separators=(",", ":"))
