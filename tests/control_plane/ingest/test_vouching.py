"""What stands behind records and points, and what verifying it leaves in memory."""

import tracemalloc

import pytest

from control_plane.ingest.rejections import Refusal, RejectReason
from control_plane.ingest.vouching import Vouching
from reducer.rollout.assignment import Assignment, issue
from reducer.rollout.pseudonym import pseudonym_of
from reducer.vocabulary import Cohort, Mode
from tests.control_plane.worlds import ENVIRONMENT, GUARD, VERSION

KEY = bytes(range(32))
GUARDS = [f"guard_number_{at:02d}" for at in range(15)]
LONG_IDS = [
    issue(KEY, ENVIRONMENT, Assignment(guard, pseudonym_of(KEY, "o"), 1, Cohort.EVERYONE, mode, 1))
    for guard, mode in zip(GUARDS, [Mode.SHADOW] * 14 + [Mode.OFF], strict=True)
]


def test_ids_of_many_guards_vouch_for_each_and_the_guard_itself_comes_first():
    vouching = Vouching(ENVIRONMENT, KEY)
    found = vouching.of_ids(tuple(LONG_IDS), VERSION, None)
    assert [each.assigned.guard for each in found] == GUARDS
    behind = vouching.behind(LONG_IDS, GUARDS[7])
    assert behind is not None
    assert behind.guard == GUARDS[7]
    behind = vouching.behind(LONG_IDS, GUARD)
    assert behind is not None
    assert behind.guard == GUARDS[0]


def test_long_texts_that_a_sender_makes_up_leave_nothing_behind():
    vouching = Vouching(ENVIRONMENT, KEY)

    def try_all(numbers: range) -> None:
        for number in numbers:
            ids = (*LONG_IDS[:-1], f"{LONG_IDS[-1][:-8]}{number:08d}")
            assert vouching.behind(ids, GUARD) is None
            with pytest.raises(Refusal) as refusal:
                vouching.of_ids(ids, VERSION, None)
            assert refusal.value.rejected.reason is RejectReason.FORGED_ASSIGNMENT

    try_all(range(1))
    tracemalloc.start()
    try:
        try_all(range(1, 401))
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert kept < 400 * sum(map(len, LONG_IDS)) / 8
