"""Verified assignments: the guards that ids prove, and the memory that verifying takes."""

import tracemalloc

import pytest

from guardwave.control_plane.ingest.evidence.verified_assignments import VerifiedAssignments
from guardwave.control_plane.ingest.model.rejections import ItemRejected, RejectReason
from guardwave.reducer.rollout.assignment import Assignment, issue
from guardwave.reducer.rollout.pseudonym import pseudonym_of
from guardwave.reducer.vocabulary import Cohort, Mode
from tests.support.worlds import ENVIRONMENT, GUARD, VERSION

KEY = bytes(range(32))
GUARDS = [f"guard_number_{at:02d}" for at in range(15)]
LONG_IDS = [
    issue(KEY, ENVIRONMENT, Assignment(guard, pseudonym_of(KEY, "o"), 1, Cohort.EVERYONE, mode, 1))
    for guard, mode in zip(GUARDS, [Mode.SHADOW] * 14 + [Mode.OFF], strict=True)
]


def test_ids_of_many_guards_prove_each_and_the_guard_itself_comes_first():
    assignments = VerifiedAssignments(ENVIRONMENT, KEY)
    found = assignments.of_ids(tuple(LONG_IDS), VERSION, None)
    assert [verified.assignment.guard for verified in found] == GUARDS
    assignment = assignments.for_guard(LONG_IDS, GUARDS[7])
    assert assignment is not None
    assert assignment.guard == GUARDS[7]
    assignment = assignments.for_guard(LONG_IDS, GUARD)
    assert assignment is not None
    assert assignment.guard == GUARDS[0]


def test_long_invented_ids_take_no_memory():
    assignments = VerifiedAssignments(ENVIRONMENT, KEY)

    def try_all(numbers: range) -> None:
        for number in numbers:
            ids = (*LONG_IDS[:-1], f"{LONG_IDS[-1][:-8]}{number:08d}")
            assert assignments.for_guard(ids, GUARD) is None
            with pytest.raises(ItemRejected) as error:
                assignments.of_ids(ids, VERSION, None)
            assert error.value.rejection.reason is RejectReason.FORGED_ASSIGNMENT

    try_all(range(1))
    tracemalloc.start()
    try:
        try_all(range(1, 401))
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert kept < 400 * sum(map(len, LONG_IDS)) / 8
