"""Loop events of other protections in owner-days: counted once, or unknown."""

from dataclasses import replace
from datetime import date
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardwave.control_plane.stores.codec import pack
from guardwave.control_plane.stores.evidence.delta.dedupe_keys import DedupeKey
from guardwave.control_plane.stores.evidence.delta.prompt_events import (
    EndDelta,
    LoopDelta,
    PromptDelta,
    StartDelta,
)
from guardwave.control_plane.stores.evidence.delta.request import EvidenceBatch, PromptEvent
from guardwave.control_plane.stores.evidence.delta.strata import Stratum
from guardwave.control_plane.stores.evidence.imports import check_owner_day, pack_owner_day
from guardwave.control_plane.stores.evidence.owner_days import SUMS, OwnerDay, unpack_owner_day
from guardwave.control_plane.stores.evidence.store import EvidenceStore
from guardwave.control_plane.stores.keys import EvidenceKeys
from guardwave.reducer.rollout.state import EvidenceSource
from guardwave.reducer.vocabulary import Cohort, Outcome
from tests.support.stores.one_prompt import (
    FRIDAY,
    GUARD,
    HERE,
    MIDNIGHT,
    OTHER_GUARD,
    OWNER,
    SATURDAY,
)

START = StartDelta(hour=23)
END = EndDelta(Outcome.LIMIT, 120, 3, 400, 0, 0, 23)


def event(
    delta: PromptDelta, digest: int, *, day: date = FRIDAY, stratum: Stratum = GUARD
) -> PromptEvent:
    second = MIDNIGHT - 60 + digest
    return PromptEvent(DedupeKey(digest, second), OWNER, day, (stratum,), None, delta)


def write(evidence: EvidenceStore, *events: PromptEvent) -> None:
    evidence.write(HERE, EvidenceBatch(events))


def loops_of(evidence: EvidenceStore, stratum: Stratum = GUARD) -> dict[date, int | None]:
    rows = evidence.owner_days(HERE, stratum.guard, stratum.wave, [FRIDAY, SATURDAY])
    return {row.day: row.loops for row in rows}


@pytest.mark.parametrize("order", list(permutations(range(4))), ids=str)
def test_loops_count_once_in_the_day_of_their_prompt_in_any_order(evidence, order):
    events = [
        event(START, 1),
        event(LoopDelta(), 2),
        event(LoopDelta(), 70, day=SATURDAY),
        event(END, 71, day=SATURDAY),
    ]
    for place in order:
        write(evidence, events[place])
        write(evidence, events[place])
    assert loops_of(evidence) == {FRIDAY: 2}


def test_a_prompt_without_start_and_end_counts_nowhere_and_nor_do_its_loops(evidence):
    write(evidence, event(LoopDelta(), 2))
    assert loops_of(evidence) == {}
    write(evidence, event(START, 1))
    assert loops_of(evidence) == {FRIDAY: 1}


def test_a_loop_counts_for_the_guard_of_its_own_stratum_alone(evidence):
    start = replace(event(START, 1), strata=(GUARD, OTHER_GUARD))
    write(evidence, start, event(LoopDelta(), 2), event(LoopDelta(), 3, stratum=OTHER_GUARD))
    write(evidence, event(LoopDelta(), 4, stratum=OTHER_GUARD))
    assert (loops_of(evidence), loops_of(evidence, OTHER_GUARD)) == ({FRIDAY: 1}, {FRIDAY: 2})


def test_prompts_without_a_loop_count_none(evidence):
    write(evidence, event(START, 1), event(END, 2))
    assert loops_of(evidence) == {FRIDAY: 0}


def test_a_loop_of_two_guards_in_one_event_is_rejected():
    with pytest.raises(ValueError, match="a loop of 2 guards; send one event for each"):
        replace(event(LoopDelta(), 1), strata=(GUARD, OTHER_GUARD))


def test_a_row_imported_without_loops_never_reports_them(evidence, any_store):
    """The row: 19 sums, how much coarser its histogram is, and one bucket with its count."""
    write(evidence, event(START, 1))
    ((number, _),) = evidence.strata(HERE)
    keys = EvidenceKeys(HERE, 0)
    old = [2, 0, 2, *[0] * 4, 0, 500, 6, *[0] * 3, 0, 2, 2, 0, 0, 0, 0, 400, 2]
    place = keys.owner_days(number, FRIDAY, OWNER.owner_bucket)
    any_store.hset(place, OWNER.pseudonym, pack(old))
    assert loops_of(evidence) == {FRIDAY: None}

    write(evidence, event(LoopDelta(), 2), event(END, 3))

    (row,) = evidence.owner_days(HERE, GUARD.guard, GUARD.wave, [FRIDAY])
    assert (row.started, row.completed, row.limit, row.tokens) == (2, 2, 1, 620)
    assert row.durations == ((400, 3),)
    assert row.loops is None


rows = st.builds(
    OwnerDay,
    st.just(OWNER.pseudonym),
    st.just(FRIDAY),
    st.just(Cohort.ENFORCED),
    st.just("1.0.0"),
    **dict.fromkeys(SUMS, st.integers(0, 2**53 - 1)),
    durations=st.dictionaries(st.integers(-9, 900), st.integers(1, 9), max_size=4).map(
        lambda found: tuple(sorted(found.items()))
    ),
    scale=st.integers(3, 7),
    loops=st.none() | st.integers(0, 2**53 - 1),
    mode=st.just(GUARD.mode),
)


@given(rows)
def test_an_imported_row_is_stored_as_it_was(row):
    check_owner_day(row)
    assert unpack_owner_day(row.owner, row.day, GUARD, pack_owner_day(row)) == row


@given(rows)
def test_a_row_of_counters_never_reports_loops(row):
    stratum = replace(GUARD, source=EvidenceSource.COUNTERS)
    assert unpack_owner_day(row.owner, row.day, stratum, pack_owner_day(row)).loops is None


def test_an_imported_row_with_a_negative_count_of_loops_is_rejected():
    counts = dict.fromkeys(SUMS, 0)
    row = OwnerDay(OWNER.pseudonym, FRIDAY, Cohort.ENFORCED, "1.0.0", loops=-1, **counts)  # type: ignore[arg-type]  # by the names of the sums
    with pytest.raises(ValueError, match=r"loops is -1; it is from 0 to \d+"):
        check_owner_day(row)
