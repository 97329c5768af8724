"""What stands behind records and points: their assignment ids, each verified once."""

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

from control_plane.ingest.booked import REMEMBERED, Backing
from control_plane.ingest.fields import LONGEST_KEPT
from control_plane.ingest.news_of_records import PromptRecord
from control_plane.ingest.records import LoopDetected, Origin, Transition
from control_plane.ingest.rejections import Refusal, RejectReason
from control_plane.stores.cells import Cell
from reducer.rollout.assignment import Assignment, Forged, verify

VouchedRecord: TypeAlias = PromptRecord | LoopDetected

# All of a cohort have the same one.
_cell = lru_cache(REMEMBERED)(Cell)


class Vouching:
    """Verifies the assignment ids of one environment, with what the ids of a body decide kept."""

    def __init__(self, environment: str, tag_key: bytes) -> None:
        self._environment = environment
        self._tag_key = tag_key
        self._kept = lru_cache(REMEMBERED)(self._verified_all)
        self._kept_behind = lru_cache(REMEMBERED)(self._first_behind)

    def of_ids(self, ids: tuple[str, ...], version: str, about: str | None) -> tuple[Backing, ...]:
        """Return what ids vouch for under the guard that a record is about, None for all.

        Raises:
            Refusal: an assignment id is forged, or the ids are of several owners.
        """
        find = self._kept if _is_short(ids) else self._verified_all
        return find(ids, version, about)

    def of_record(self, record: VouchedRecord) -> tuple[Backing, ...]:
        """Return what is behind a record, one for each guard it is about; () when nothing is.

        Raises:
            Refusal: an assignment id is forged, or the ids are of several owners.
        """
        about = record.guard if isinstance(record, Transition) else None
        return self.of_ids(record.assignment_ids, record.origin.service_version, about)

    def of_resource(self, origin: Origin) -> tuple[Backing, ...]:
        """Return what the ids of a Resource vouch for.

        Several owners on one Resource share a process: none of them is vouched for.

        Raises:
            Refusal: one of the ids is forged.
        """
        if not origin.assignment_ids:
            return ()
        try:
            return self.of_ids(origin.assignment_ids, origin.service_version, None)
        except Refusal as refusal:
            if refusal.rejected.reason is RejectReason.FORGED_ASSIGNMENT:
                raise
            return ()

    def behind(self, ids: Sequence[str], guard: str | None) -> Assignment | None:
        """Return what the first id says, of the guard itself the one of the highest mode.

        None when one of them is forged: what a forger sends is counted and never latches. Points
        and flag evaluations are vouched for by the assignment ids of their Resource alone.
        """
        if not ids:
            return None
        find = self._kept_behind if _is_short(ids) else self._first_behind
        return find(tuple(ids), guard)

    def _verified(self, text: str, version: str) -> Backing | Forged:
        found = verify(self._tag_key, self._environment, text)
        if isinstance(found, Forged):
            return found
        return Backing(found, _cell(found.guard, version, found.wave, found.cohort, found.mode))

    def _verified_all(
        self, ids: tuple[str, ...], version: str, about: str | None
    ) -> tuple[Backing, ...]:
        found: dict[str, Backing] = {}
        owners: set[str] = set()
        for text in ids:
            backing = self._verified(text, version)
            if isinstance(backing, Forged):
                raise Refusal(
                    RejectReason.FORGED_ASSIGNMENT,
                    f"agent.guard.assignment.id is not one this environment issued: "
                    f"{backing.reason}",
                )
            guard = backing.assigned.guard
            if about in (None, guard):
                found[guard] = backing
                owners.add(backing.assigned.pseudonym)
        if len(owners) > 1:
            raise Refusal(
                RejectReason.BAD_ATTRIBUTE,
                "agent.guard.assignment.id names several owners; a prompt has one",
            )
        return tuple(found.values())

    def _first_behind(self, ids: tuple[str, ...], guard: str | None) -> Assignment | None:
        backings = [self._verified(text, "") for text in ids]
        found = [each.assigned for each in backings if isinstance(each, Backing)]
        if len(found) < len(backings):
            return None
        own = [each for each in found if each.guard == guard]
        return max(own, key=lambda each: each.mode.rank, default=found[0])


def _is_short(ids: Sequence[str]) -> bool:
    """Whether a sender's texts are short enough to be kept."""
    return sum(map(len, ids)) <= LONGEST_KEPT
