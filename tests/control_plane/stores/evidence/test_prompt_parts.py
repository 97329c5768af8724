"""Prompts reported in parts: the sums depend on the set of parts alone."""

import itertools
from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta

import pytest
from hypothesis import HealthCheck, given, settings

from guardwave.control_plane.stores.evidence.delta.dedupe_keys import DedupeKey
from guardwave.control_plane.stores.evidence.delta.points import PointEvent, PointOwner, Stream
from guardwave.control_plane.stores.evidence.delta.prompt_events import (
    PromptKey,
    StartDelta,
    TransitionDelta,
)
from guardwave.control_plane.stores.evidence.delta.prompt_parts import (
    AnswerPart,
    CallPart,
    FinishPart,
    SpanPart,
)
from guardwave.control_plane.stores.evidence.delta.request import EvidenceBatch, PromptEvent
from guardwave.control_plane.stores.evidence.delta.strata import Stratum
from guardwave.control_plane.stores.evidence.store import EvidenceStore
from guardwave.reducer.rollout.state import EvidenceSource
from guardwave.reducer.vocabulary import Outcome
from tests.support.stores.part_histories import OWNER, STRATUM, delivered, sums_of
from tests.support.stores.prompt_histories import DAYS

LATER = datetime.fromtimestamp(1_800_000_000, UTC) + timedelta(days=2)
NAMES = ("started", "ended", "covered", "tokens", "turns", "disrupted", "would_stopped")
UNTOLD = ("tokens_untold", "turns_untold")
_numbers = itertools.count()


def stored_sums(evidence: EvidenceStore, environment: str) -> Counter[str]:
    sums: Counter[str] = Counter()
    for _, row in evidence.owner_rows(environment, OWNER.pseudonym, OWNER.owner_bucket, DAYS):
        for name in (*NAMES, *UNTOLD, "calls_after_would_stop", *Outcome):
            sums[name] += getattr(row, name)
        sums.update({f"bucket {bucket}": prompts for bucket, prompts in row.durations})
    return +sums


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(delivery=delivered())
def test_the_sums_depend_on_the_parts_alone_however_they_arrive(evidence, delivery):
    environment = f"parts-{next(_numbers)}"
    for batch in delivery.batches:
        evidence.write(environment, EvidenceBatch(batch))
    evidence.close_lost_prompts(environment, LATER)
    assert stored_sums(evidence, environment) == sums_of(delivery.events)


@pytest.mark.parametrize(
    ("made", "fault"),
    [
        pytest.param(lambda: AnswerPart(-1, is_turn=True), "tokens=-1", id="negative tokens"),
        pytest.param(lambda: FinishPart(1, 24, 1), "hour=24", id="an hour that is none"),
        pytest.param(lambda: FinishPart(1, 2, -1), "turns=-1", id="negative turns"),
        pytest.param(lambda: SpanPart(1, 25, Outcome.FAILED, 1), "hour=25", id="no hour of a span"),
    ],
)
def test_a_part_that_the_store_cannot_add_is_rejected(made, fault):
    with pytest.raises(ValueError, match=fault):
        made()


def unnumbered(number: int, day: date) -> PromptEvent:
    """Return a transition without a sequence, of a day."""
    ms = int(datetime.combine(day, time(12), UTC).timestamp() * 1000) + number
    return PromptEvent(
        dedupe_key=DedupeKey(number, ms // 1000),
        prompt=PromptKey(OWNER.pseudonym, f"prompt-{day}", OWNER.owner_bucket),
        day=day,
        strata=(STRATUM,),
        is_conforming=True,
        delta=TransitionDelta(None, False, False, False, at_ms=ms),
    )


def whole_prompt(number: int, day: date) -> tuple[PromptEvent, ...]:
    """Return a start and an end of the prompt of a day."""
    event = unnumbered(number, day)
    at_ms = event.dedupe_key.second * 1000
    finished = FinishPart(at_ms, 12, 0)
    return (
        replace(
            event, dedupe_key=DedupeKey(number + 1, event.dedupe_key.second), delta=StartDelta(12)
        ),
        replace(
            event,
            dedupe_key=DedupeKey(number + 2, event.dedupe_key.second),
            delta=finished,
            is_conforming=None,
        ),
    )


def counted(number: int, day: date, value: int) -> PointEvent:
    """Return the host's counter of transitions for a day."""
    second = int(datetime.combine(day, time(13), UTC).timestamp())
    return PointEvent(
        dedupe_key=DedupeKey(number, second),
        day=day,
        hour=13,
        stratum=Stratum(STRATUM.guard, STRATUM.version, mode=STRATUM.mode),
        counter="agent.guard.transitions",
        stream=Stream(f"{number:016x}", False, 0, second * 1_000_000),
        value=value,
        owner=PointOwner(
            OWNER.pseudonym,
            OWNER.owner_bucket,
            replace(STRATUM, source=EvidenceSource.COUNTERS),
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
        events += [*whole_prompt(base + 500, day), counted(base + 900, day, value)]
    for event in reversed(events):
        evidence.write(environment, EvidenceBatch((event,)))
    evidence.seal(environment, DAYS[1], at=LATER, longest_outage_seconds=0.0)
    (sealed,) = evidence.sealed_days(environment, [DAYS[1]])
    assert (sealed.ended, sealed.covered) == (1, covered)


@pytest.mark.parametrize(
    ("recorded", "counts", "uncounted"),
    [
        pytest.param((5, 0), (5, 0), 0, id="all counted"),
        pytest.param((5, 0), (6, 0), 0, id="more counted than recorded"),
        pytest.param((5, 0), (4, 0), 1, id="one is not"),
        pytest.param((5, 0), (4, 3), 1, id="nor by what the next day counted"),
        pytest.param((5, 0), (None, None), 5, id="no counter came"),
    ],
)
def test_a_day_counts_records_that_no_counter_reports(evidence, recorded, counts, uncounted):
    environment = f"parts-{next(_numbers)}"
    for day, records, value in zip(DAYS[1:], recorded, counts, strict=False):
        base = 1000 * (1 + DAYS.index(day))
        events: list[PromptEvent | PointEvent] = [
            unnumbered(base + at, day) for at in range(records)
        ]
        events += () if value is None else (counted(base + 900, day, value),)
        evidence.write(environment, EvidenceBatch(tuple(events)))
    evidence.seal(environment, DAYS[1], at=LATER, longest_outage_seconds=0.0)
    (sealed,) = evidence.sealed_days(environment, [DAYS[1]])
    assert (sealed.unnumbered, sealed.uncounted) == (5, uncounted)


@pytest.mark.parametrize(
    ("began_on", "uncounted", "unwitnessed"),
    [
        pytest.param(DAYS[1], 0, 0, id="by a point across midnight"),
        pytest.param(DAYS[1] + timedelta(days=1), 1, 1, id="by a point that began after midnight"),
        pytest.param(None, 1, 1, id="by a point without a start"),
    ],
)
def test_what_happened_before_midnight_may_be_counted_on_the_next_day(
    evidence, began_on, uncounted, unwitnessed
):
    environment, day = f"parts-{next(_numbers)}", DAYS[1]
    point = replace(counted(2, day + timedelta(days=1), 1), began_on=began_on)
    called = replace(unnumbered(3, day), delta=CallPart(1), is_conforming=None)
    prompt = (unnumbered(1, day), called, *whole_prompt(5, day))
    evidence.write(environment, EvidenceBatch((*prompt, point)))
    evidence.seal(environment, day, at=LATER, longest_outage_seconds=0.0)
    (sealed,) = evidence.sealed_days(environment, [day])
    assert (sealed.uncounted, sealed.unwitnessed) == (uncounted, unwitnessed)


@pytest.mark.parametrize(
    ("has_called", "counted_by", "unwitnessed"),
    [
        pytest.param(True, None, 1, id="calls and no counter"),
        pytest.param(True, "transitions", 0, id="the guard's counter came"),
        pytest.param(True, "another", 0, id="another counter of the host came"),
        pytest.param(False, None, 0, id="no call that could have been counted"),
    ],
)
def test_a_day_counts_prompts_with_calls_of_hosts_without_counters(
    evidence, has_called, counted_by, unwitnessed
):
    environment, day = f"parts-{next(_numbers)}", DAYS[1]
    events: list[PromptEvent | PointEvent] = [*whole_prompt(1000, day)]
    if has_called:
        event = unnumbered(7, day)
        events.append(replace(event, delta=CallPart(1), is_conforming=None))
    if counted_by is not None:
        point = counted(9, day, 1)
        assert point.owner is not None
        is_of_guard = counted_by == "transitions"
        owner = point.owner._replace(counts_unnumbered=is_of_guard, is_witness=not is_of_guard)
        events.append(replace(point, owner=owner))
    evidence.write(environment, EvidenceBatch(tuple(events)))
    evidence.seal(environment, day, at=LATER, longest_outage_seconds=0.0)
    (sealed,) = evidence.sealed_days(environment, [day])
    assert (sealed.ended, sealed.unwitnessed) == (1, unwitnessed)


@pytest.mark.parametrize(
    ("began_on", "covered"),
    [
        pytest.param(DAYS[0], 1, id="across midnight"),
        pytest.param(DAYS[1], 0, id="within the day"),
    ],
)
def test_transitions_counted_across_midnight_are_not_missing_on_their_day(
    evidence, began_on, covered
):
    environment, day = f"parts-{next(_numbers)}", DAYS[1]
    point = replace(counted(2, day, 1), began_on=began_on)
    evidence.write(environment, EvidenceBatch((*whole_prompt(5, day), point)))
    evidence.seal(environment, day, at=LATER, longest_outage_seconds=0.0)
    (sealed,) = evidence.sealed_days(environment, [day])
    assert (sealed.ended, sealed.covered) == (1, covered)
