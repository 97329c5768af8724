"""Verified assignments: the assignment ids of records and points, each tag checked once."""

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

from guardwave.control_plane.ingest.contract import LONGEST_KEPT
from guardwave.control_plane.ingest.evidence.delta import REMEMBERED, VerifiedAssignment
from guardwave.control_plane.ingest.evidence.prompt_deltas import PromptRecord
from guardwave.control_plane.ingest.model.records import LoopDetected, Origin, Transition
from guardwave.control_plane.ingest.model.rejections import ItemRejected, RejectReason
from guardwave.control_plane.stores.evidence.delta.strata import Stratum
from guardwave.reducer.rollout.assignment import Assignment, ForgedId, verify

AssignedRecord: TypeAlias = PromptRecord | LoopDetected

# A cohort has one stratum, so its owners share one object.
_stratum = lru_cache(REMEMBERED)(Stratum)


class VerifiedAssignments:
    """Verifies the assignment ids of one environment and keeps the results."""

    def __init__(self, environment: str, tag_key: bytes) -> None:
        self._environment = environment
        self._tag_key = tag_key
        self._kept_of_ids = lru_cache(REMEMBERED)(self._find_of_ids)
        self._kept_for_guard = lru_cache(REMEMBERED)(self._find_for_guard)

    def of_ids(
        self, ids: tuple[str, ...], version: str, about: str | None
    ) -> tuple[VerifiedAssignment, ...]:
        """Return the assignment of each guard, or only of the guard that a record is `about`.

        Raises:
            ItemRejected: an assignment id is forged, or the ids are of several owners.
        """
        find = self._kept_of_ids if _is_short(ids) else self._find_of_ids
        return find(ids, version, about)

    def of_record(self, record: AssignedRecord) -> tuple[VerifiedAssignment, ...]:
        """Return the assignments of a record, one for each guard that it is about.

        Raises:
            ItemRejected: an assignment id is forged, or the ids are of several owners.
        """
        about = record.guard if isinstance(record, Transition) else None
        return self.of_ids(record.assignment_ids, record.origin.service_version, about)

    def of_resource(self, origin: Origin) -> tuple[VerifiedAssignment, ...]:
        """Return the assignments of a Resource; none where several owners share the process.

        Raises:
            ItemRejected: one of the ids is forged.
        """
        if not origin.assignment_ids:
            return ()
        try:
            return self.of_ids(origin.assignment_ids, origin.service_version, None)
        except ItemRejected as error:
            if error.rejection.reason is RejectReason.FORGED_ASSIGNMENT:
                raise
            return ()

    def for_guard(self, ids: Sequence[str], guard: str | None) -> Assignment | None:
        """Return the guard's assignment of the highest mode, or else the first of all.

        None when an id is forged: a forger's violations are counted and never latch. Points and
        flag evaluations have only the assignment ids of their Resource.
        """
        if not ids:
            return None
        find = self._kept_for_guard if _is_short(ids) else self._find_for_guard
        return find(tuple(ids), guard)

    def _verify(self, text: str, version: str) -> VerifiedAssignment | ForgedId:
        found = verify(self._tag_key, self._environment, text)
        if isinstance(found, ForgedId):
            return found
        stratum = _stratum(found.guard, version, found.wave, found.cohort, found.mode)
        return VerifiedAssignment(found, stratum)

    def _find_of_ids(
        self, ids: tuple[str, ...], version: str, about: str | None
    ) -> tuple[VerifiedAssignment, ...]:
        by_guard: dict[str, VerifiedAssignment] = {}
        owners: set[str] = set()
        for text in ids:
            verified = self._verify(text, version)
            if isinstance(verified, ForgedId):
                raise ItemRejected(
                    RejectReason.FORGED_ASSIGNMENT,
                    f"agent.guard.assignment.id is not one this environment issued: "
                    f"{verified.reason}",
                )
            guard = verified.assignment.guard
            if about in (None, guard):
                by_guard[guard] = verified
                owners.add(verified.assignment.pseudonym)
        if len(owners) > 1:
            raise ItemRejected(
                RejectReason.BAD_ATTRIBUTE,
                "agent.guard.assignment.id names several owners; a prompt has one",
            )
        return tuple(by_guard.values())

    def _find_for_guard(self, ids: tuple[str, ...], guard: str | None) -> Assignment | None:
        assignments: list[Assignment] = []
        for text in ids:
            verified = self._verify(text, "")
            if isinstance(verified, ForgedId):
                return None
            assignments.append(verified.assignment)
        of_guard = [assignment for assignment in assignments if assignment.guard == guard]
        return max(of_guard, key=lambda assignment: assignment.mode.rank, default=assignments[0])


def _is_short(ids: Sequence[str]) -> bool:
    """Whether a sender's texts are short enough to be kept."""
    return sum(map(len, ids)) <= LONGEST_KEPT
