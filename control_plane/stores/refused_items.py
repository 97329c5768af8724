"""Items that intake refused, as they go to the store: each is counted once."""

from collections.abc import Sequence
from datetime import date
from typing import NamedTuple


class RefusedItems(NamedTuple):
    """Items of one service version that were refused alike.

    `counter` is `refused` or `quarantined`, `:`, and the reason. `digests` are what makes each the
    same item again, 63 bits. On `record_day` they count as records that do not conform; None where
    they are no records of the contract check. `instance` is a digest of the process that sent them,
    where its clock may be why; they are then late or future.
    """

    version: str
    counter: str
    digests: Sequence[int]
    record_day: date | None = None
    instance: str = ""

    def packed(self) -> list[object]:
        """Return them as the store's ingest function reads them."""
        day = "" if self.record_day is None else self.record_day.isoformat()
        digests = [str(digest) for digest in self.digests]
        return [self.version, self.counter, day, digests, self.instance]
