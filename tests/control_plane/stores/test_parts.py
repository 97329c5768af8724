"""Prompts that a host tells of in parts: the sums depend on the parts alone."""

import itertools
from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta

import pytest
from hypothesis import HealthCheck, given, settings

from control_plane.stores.cells import Cell
from control_plane.stores.evidence import EvidenceStore
from control_plane.stores.evidence_events import (
    EvidenceBatch,
    PromptEvent,
    PromptKey,
    Seen,
    Started,
    Transitioned,
)
from control_plane.stores.evidence_parts import Answered, Closed, Finished
from control_plane.stores.evidence_points import PointEvent, PointOwner, Stream
from reducer.rollout.state import EvidenceSource
from reducer.vocabulary import Outcome
from tests.control_plane.stores.part_histories import CELL, OWNER, sums_of, told
from tests.control_plane.stores.prompt_histories import DAYS

LATER = datetime.fromtimestamp(1_800_000_000, UTC) + timedelta(days=2)
NAMES = ("started", "ended", "covered", "tokens", "turns", "disrupted", "would_stopped")
_numbers = itertools.count()


@pytest.fixture
def evidence(any_store):
    return EvidenceStore(any_store)


def stored_sums(evidence: EvidenceStore, environment: str) -> Counter[str]:
    sums: Counter[str] = Counter()
    for _, row in evidence.owner_rows(environment, OWNER.pseudonym, OWNER.owner_bucket, DAYS):
        for name in (*NAMES, "calls_after_would_stop", *Outcome):
            sums[name] += getattr(row, name)
        sums.update({f"bucket {bucket}": prompts for bucket, prompts in row.durations})
    return +sums


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(telling=told())
def test_the_sums_depend_on_the_parts_alone_however_they_arrive(evidence, telling):
    environment = f"parts-{next(_numbers)}"
    for batch in telling.batches:
        evidence.write(environment, EvidenceBatch(batch))
    evidence.lose_overdue(environment, LATER)
    assert stored_sums(evidence, environment) == sums_of(telling.events)


@pytest.mark.parametrize(
    ("made", "fault"),
    [
        pytest.param(lambda: Answered(-1, is_turn=True), "tokens=-1", id="negative tokens"),
        pytest.param(lambda: Finished(1, 24, 1), "hour=24", id="an hour that is none"),
        pytest.param(lambda: Finished(1, 2, -1), "turns=-1", id="negative turns"),
        pytest.param(lambda: Closed(1, 25, Outcome.FAILED, 1), "hour=25", id="no hour of a span"),
    ],
)
def test_a_part_that_the_store_cannot_add_is_refused(made, fault):
    with pytest.raises(ValueError, match=fault):
        made()


def unnumbered(number: int, day: date) -> PromptEvent:
    """Return a transition without a sequence, of a day."""
    ms = int(datetime.combine(day, time(12), UTC).timestamp() * 1000) + number
    return PromptEvent(
        seen=Seen(number, ms // 1000),
        prompt=PromptKey(OWNER.pseudonym, f"prompt-{day}", OWNER.owner_bucket),
        day=day,
        cells=(CELL,),
        is_conforming=True,
        news=Transitioned(None, False, False, False, at_ms=ms),
    )


def told_whole(number: int, day: date) -> tuple[PromptEvent, ...]:
    """Return a start and an end of the prompt of a day."""
    event = unnumbered(number, day)
    at_ms = event.seen.second * 1000
    finished = Finished(at_ms, 12, 0)
    return (
        replace(event, seen=Seen(number + 1, event.seen.second), news=Started(12)),
        replace(
            event,
            seen=Seen(number + 2, event.seen.second),
            news=finished,
            is_conforming=None,
        ),
    )


def counted(number: int, day: date, value: int) -> PointEvent:
    """Return what the host's own counter of transitions tells of a day."""
    second = int(datetime.combine(day, time(13), UTC).timestamp())
    return PointEvent(
        seen=Seen(number, second),
        day=day,
        hour=13,
        cell=Cell(CELL.guard, CELL.version, mode=CELL.mode),
        counter="agent.guard.transitions",
        stream=Stream(f"{number:016x}", False, 0, second * 1_000_000),
        value=value,
        owner=PointOwner(
            OWNER.pseudonym,
            OWNER.owner_bucket,
            replace(CELL, source=EvidenceSource.COUNTERS),
            (),
            counts_unnumbered=True,
        ),
    )


@pytest.mark.parametrize(
    ("recorded", "counts", "covered"),
    [
        pytest.param((0, 5), (0, 5), 1, id="a record of each"),
        pytest.param((0, 5), (0, 4), 1, id="more records than were counted"),
        pytest.param((0, 5), (0, 6), 0, id="one more was counted"),
        pytest.param((3, 5), (2, 6), 1, id="it was counted after midnight"),
        pytest.param((3, 5), (2, 7), 0, id="and one more is missing"),
    ],
)
def test_a_day_is_no_better_covered_than_the_counter_shows(evidence, recorded, counts, covered):
    environment = f"parts-{next(_numbers)}"
    events: list[PromptEvent | PointEvent] = []
    for day, records, value in zip(DAYS, recorded, counts, strict=False):
        base = 1000 * (1 + DAYS.index(day))
        events += [unnumbered(base + at, day) for at in range(records)]
        events += [*told_whole(base + 500, day), counted(base + 900, day, value)]
    for event in reversed(events):
        evidence.write(environment, EvidenceBatch((event,)))
    evidence.seal(environment, DAYS[1], at=LATER, longest_outage_seconds=0.0)
    (sealed,) = evidence.sealed_days(environment, [DAYS[1]])
    assert (sealed.ended, sealed.covered) == (1, covered)
