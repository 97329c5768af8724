"""Histories of prompts, their expected sums, and the many ways in which they may arrive.

The sums are computed here once more, in plain Python, from the set of events alone: whatever does
not depend on order, batches or repetition.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from hypothesis import strategies as st

from guardwave.control_plane.stores.evidence.delta.dedupe_keys import DedupeKey
from guardwave.control_plane.stores.evidence.delta.prompt_events import (
    DisruptionDelta,
    EndDelta,
    EventRow,
    LoopDelta,
    PromptDelta,
    PromptEvents,
    PromptKey,
    SharedAttributes,
    StartDelta,
    TransitionDelta,
)
from guardwave.control_plane.stores.evidence.delta.prompt_parts import OUTCOME_PLACES
from guardwave.control_plane.stores.evidence.delta.request import PromptEvent
from guardwave.control_plane.stores.evidence.delta.strata import Stratum
from guardwave.control_plane.stores.evidence.owner_days import OwnerDay
from guardwave.reducer.vocabulary import Cohort, DisruptionKind, Mode, Outcome

DAY = date(2026, 11, 20)
DAYS = tuple(DAY + timedelta(days=offset) for offset in range(3))
GUARDS = ("identical_call", "repeated_tool_failure")
OWNERS = (PromptKey("aaaaaaaaaaaaaaaa", "", 3), PromptKey("bbbbbbbbbbbbbbbb", "", 200))

hours = st.integers(0, 23)
seconds = st.integers(1_800_000_000, 1_800_000_003)
days = st.sampled_from(DAYS)
starts = st.builds(StartDelta, hours)
disruptions = st.builds(DisruptionDelta, st.sampled_from(DisruptionKind))
ends = st.builds(
    EndDelta,
    outcome=st.sampled_from(sorted(OUTCOME_PLACES)),
    tokens=st.none() | st.integers(0, 9),
    turns=st.none() | st.integers(0, 3),
    duration_bucket=st.none() | st.integers(-2, 2),
    transitions=st.none() | st.integers(0, 3),
    calls_after_would_stop=st.integers(0, 2),
    hour=hours,
)


def strata(guard: str) -> st.SearchStrategy[Stratum]:
    """Return a strategy for strata of a guard; most that differ are of one treatment."""
    cohorts = st.sampled_from((Cohort.ENFORCED, Cohort.ENFORCED, Cohort.CONTROL))
    modes = st.sampled_from((Mode.WARN, Mode.WARN, Mode.ENFORCE))
    return st.builds(
        Stratum,
        st.just(guard),
        st.sampled_from(("1.0.0", "1.1.0")),
        st.integers(4, 5),
        cohorts,
        modes,
    )


def transition(sequence: int) -> st.SearchStrategy[PromptDelta]:
    """Return a strategy for a transition with this sequence."""
    flags = st.booleans()
    return st.builds(TransitionDelta, st.just(sequence), flags, flags, flags)


@st.composite
def histories(draw: st.DrawFn) -> list[PromptEvent]:
    """Draw the distinct events of up to four prompts, contradictory ones among them."""
    events: list[PromptEvent] = []
    for number in range(draw(st.integers(1, 4))):
        owner = draw(st.sampled_from(OWNERS))
        prompt = PromptKey(owner.pseudonym, f"prompt-{number}", owner.owner_bucket)
        deltas = [
            *draw(st.lists(starts, max_size=2)),
            *draw(st.lists(ends, max_size=2)),
            *[draw(transition(at)) for at in draw(st.lists(st.integers(0, 3), max_size=4))],
            *draw(st.lists(disruptions, max_size=2)),
            *draw(st.lists(st.just(LoopDelta()), max_size=2)),
        ]
        for delta in deltas:
            named_guards = st.lists(st.sampled_from(GUARDS), unique=True, min_size=1, max_size=2)
            guards = draw(named_guards)[
                : 1 if isinstance(delta, TransitionDelta | LoopDelta) else 2
            ]
            events.append(
                PromptEvent(
                    dedupe_key=DedupeKey(len(events) - 5, draw(seconds)),
                    prompt=prompt,
                    day=draw(days),
                    strata=tuple(draw(strata(guard)) for guard in guards),
                    is_conforming=None if isinstance(delta, LoopDelta) else draw(st.booleans()),
                    delta=delta,
                )
            )
    return events


@dataclass(frozen=True, slots=True)
class Delivery:
    """Events of a history in the order in which they arrive, some of them repeatedly."""

    history: tuple[PromptEvent, ...]
    batches: tuple[tuple[PromptEvent, ...], ...]


@st.composite
def deliveries(draw: st.DrawFn) -> Delivery:
    """Draw a history and one way in which all of it arrives: reordered, repeated, re-batched."""
    history = draw(histories())
    repeated = draw(st.lists(st.sampled_from(history), max_size=6)) if history else []
    order = draw(st.permutations([*history, *repeated]))
    batches: list[tuple[PromptEvent, ...]] = []
    while order:
        size = draw(st.integers(1, len(order)))
        batches.append(tuple(order[:size]))
        order = order[size:]
    return Delivery(tuple(history), tuple(batches))


@st.composite
def mixed(draw: st.DrawFn, events: Sequence[PromptEvent]) -> tuple[PromptEvent | PromptEvents, ...]:
    """Draw a mix of the same events: some single, some packed with others of their prompt."""
    alone: list[PromptEvent | PromptEvents] = []
    together: dict[PromptKey, list[EventRow]] = defaultdict(list)
    shared: dict[str, SharedAttributes] = {}
    for event in events:
        if draw(st.booleans()):
            alone.append(event)
            continue
        row = event.row()
        if draw(st.booleans()):
            attributes = event.shared_attributes()
            row = row._replace(shared=shared.setdefault(repr(attributes), attributes), numbers=None)
        together[event.prompt].append(row)
    groups = [PromptEvents.of(prompt, rows) for prompt, rows in together.items()]
    return tuple(draw(st.permutations([*alone, *groups])))


@dataclass(frozen=True, slots=True)
class Sums:
    """The sums of a history; `by_day` counts prompts and records by day and name."""

    owner_days: tuple[OwnerDay, ...]
    by_day: dict[date, Counter[str]]


def sums_of(history: Sequence[PromptEvent]) -> Sums:
    """Return the expected sums of the events, after every prompt without an end is lost."""
    rows: dict[tuple[str, date, Stratum], Counter[str]] = defaultdict(Counter)
    by_day: dict[date, Counter[str]] = defaultdict(Counter)
    by_prompt: dict[PromptKey, list[PromptEvent]] = defaultdict(list)
    for event in history:
        by_prompt[event.prompt].append(event)
    for prompt, events in by_prompt.items():
        for record in _records(events):
            by_day[record.day].update(records=1, conforming=int(bool(record.is_conforming)))
        day = _count_on_day(events, by_day)
        for guard in GUARDS:
            seen = _seen_strata(events, guard)
            if len({(stratum.cohort, stratum.mode) for stratum in seen}) > 1:
                switch_day = day or min(event.day for event in events)
                rows[prompt.pseudonym, switch_day, seen[0]].update(switched=1)
            if seen and day is not None:
                rows[prompt.pseudonym, day, seen[0]].update(_counts(events, guard))
    owner_days = [_owner_day(*key, counts) for key, counts in rows.items()]
    return Sums(tuple(sorted(owner_days, key=order)), by_day)


def order(row: OwnerDay) -> tuple[str, ...]:
    """Return the sort key of rows of several guards or modes."""
    return tuple(map(str, (row.day, row.owner, row)))


def _seen_strata(events: Sequence[PromptEvent], guard: str) -> list[Stratum]:
    """Return the guard's strata, that of the earliest event first."""
    seen = [
        (event.dedupe_key.second, stratum.name, stratum)
        for event in events
        for stratum in event.strata
        if stratum.guard == guard
    ]
    return [stratum for _, _, stratum in sorted(seen, key=lambda entry: entry[:2])]


def _records(events: Sequence[PromptEvent]) -> list[PromptEvent]:
    """Return the records of a prompt: one start, one end and one disruption of a kind at most."""
    found = [event for event in events if isinstance(event.delta, TransitionDelta)]
    kinds = [DisruptionDelta(kind) for kind in DisruptionKind]
    same_kind = (
        [event for event in events if isinstance(event.delta, StartDelta)],
        [event for event in events if isinstance(event.delta, EndDelta)],
        *([event for event in events if event.delta == kind] for kind in kinds),
    )
    return found + [min(group, key=_precedence) for group in same_kind if group]


def _precedence(event: PromptEvent) -> tuple[object, ...]:
    """Return the order of events of one kind: the first of them counts."""
    place = (event.dedupe_key.second, event.day)
    match event.delta:
        case StartDelta(hour=hour):
            return (*place, hour, event.is_conforming)
        case EndDelta() as end:
            bucket = end.duration_bucket
            return (
                *(*place, OUTCOME_PLACES[end.outcome], *map(_as_stored, (end.tokens, end.turns))),
                *(bucket is not None, bucket or 0, _as_stored(end.transitions)),
                *(end.calls_after_would_stop, end.hour, event.is_conforming),
            )
        case _:
            return (*place, event.is_conforming)


def _as_stored(number: int | None) -> int:
    return -1 if number is None else number


def _start(events: Sequence[PromptEvent]) -> tuple[date, int] | None:
    found = [event for event in events if isinstance(event.delta, StartDelta)]
    if not found:
        return None
    first = min(found, key=_precedence)
    assert isinstance(first.delta, StartDelta)
    return first.day, first.delta.hour


def _end(events: Sequence[PromptEvent]) -> tuple[date, EndDelta] | None:
    found = [event for event in events if isinstance(event.delta, EndDelta)]
    if not found:
        return None
    first = min(found, key=_precedence)
    assert isinstance(first.delta, EndDelta)
    return first.day, first.delta


def _is_covered(events: Sequence[PromptEvent]) -> bool:
    end = _end(events)
    sequences = sorted(
        event.delta.sequence or 0 for event in events if isinstance(event.delta, TransitionDelta)
    )
    if _start(events) is None or end is None or end[1].transitions is None:
        return False
    return sequences == list(range(1, end[1].transitions + 1))


def _count_on_day(events: Sequence[PromptEvent], by_day: dict[date, Counter[str]]) -> date | None:
    """Count the prompt on the day of its start, as far as that is known; return that day."""
    start, end = _start(events), _end(events)
    if start is not None:
        day, hour = start
    elif end is not None:
        day, hour = end[0], end[1].hour
    else:
        return None
    counts = {f"h{hour}": 1, "ended": int(end is not None), "covered": int(_is_covered(events))}
    by_day[day].update(counts)
    return day


def _counts(events: Sequence[PromptEvent], guard: str) -> dict[str, int]:
    decided = [
        event.delta
        for event in events
        if isinstance(event.delta, TransitionDelta) and event.strata[0].guard == guard
    ]
    found = _end(events)
    counts = {
        "started": 1,
        "would_stopped": sum(decision.is_would_stop for decision in decided),
        "stopped": sum(decision.is_stop for decision in decided),
        "unreliable": int(any(decision.is_unreliable_input for decision in decided)),
        "disrupted": int(any(isinstance(event.delta, DisruptionDelta) for event in events)),
        "loops": sum(_is_loop_of(event, guard) for event in events),
        "covered": int(_is_covered(events)),
    }
    if found is None:
        return {**counts, "lost": 1}
    end = found[1]
    if end.duration_bucket is not None:
        counts[f"bucket {end.duration_bucket}"] = 1
    return {
        **counts,
        str(end.outcome): 1,
        "ended": 1,
        "tokens": end.tokens or 0,
        "turns": end.turns or 0,
        "tokens_untold": int(end.tokens is None),
        "turns_untold": int(end.turns is None),
        "calls_after_would_stop": end.calls_after_would_stop,
    }


def _is_loop_of(event: PromptEvent, guard: str) -> bool:
    return isinstance(event.delta, LoopDelta) and event.strata[0].guard == guard


def _owner_day(owner: str, day: date, stratum: Stratum, counts: Counter[str]) -> OwnerDay:
    durations = sorted(
        (int(name.removeprefix("bucket ")), prompts)
        for name, prompts in counts.items()
        if name.startswith("bucket ")
    )
    assert stratum.cohort is not None
    others = ("started", "disrupted", "tokens", "turns", "would_stopped", "stopped")
    more = ("calls_after_would_stop", "unreliable", "covered", "ended", "switched", "loops")
    missing = ("tokens_untold", "turns_untold")
    counted: dict[str, Any] = {name: counts[name] for name in (*others, *more, *missing)}
    counted |= {str(outcome): counts[outcome] for outcome in Outcome}
    return OwnerDay(
        owner=owner,
        day=day,
        cohort=stratum.cohort,
        version=stratum.version,
        durations=tuple(durations),
        mode=stratum.mode or Mode.OFF,
        **counted,
    )
