"""Histories of prompts, what they must add up to, and the many ways in which they may arrive.

The sums are computed here once more, in plain Python, from the set of events alone: whatever does
not depend on order, batches or repetition.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from hypothesis import strategies as st

from control_plane.stores.cells import Cell
from control_plane.stores.evidence_events import PromptEvent
from control_plane.stores.evidence_parts import OUTCOME_PLACES
from control_plane.stores.owner_days import OwnerDay
from control_plane.stores.prompt_events import BookedEvent, Like, PromptEvents, PromptKey
from control_plane.stores.prompt_news import (
    Disrupted,
    Ended,
    Looped,
    PromptNews,
    Started,
    Transitioned,
)
from control_plane.stores.seen import Seen
from reducer.vocabulary import Cohort, DisruptionKind, Mode, Outcome

DAY = date(2026, 11, 20)
DAYS = tuple(DAY + timedelta(days=offset) for offset in range(3))
GUARDS = ("identical_call", "repeated_tool_failure")
OWNERS = (PromptKey("aaaaaaaaaaaaaaaa", "", 3), PromptKey("bbbbbbbbbbbbbbbb", "", 200))

hours = st.integers(0, 23)
seconds = st.integers(1_800_000_000, 1_800_000_003)
days = st.sampled_from(DAYS)
starts = st.builds(Started, hours)
disruptions = st.builds(Disrupted, st.sampled_from(DisruptionKind))
ends = st.builds(
    Ended,
    outcome=st.sampled_from(sorted(OUTCOME_PLACES)),
    tokens=st.none() | st.integers(0, 9),
    turns=st.none() | st.integers(0, 3),
    duration_bucket=st.none() | st.integers(-2, 2),
    transitions=st.none() | st.integers(0, 3),
    calls_after_would_stop=st.integers(0, 2),
    hour=hours,
)


def cells(guard: str) -> st.SearchStrategy[Cell]:
    """Return a strategy for cells of a guard; most that differ are of one treatment."""
    cohorts = st.sampled_from((Cohort.ENFORCED, Cohort.ENFORCED, Cohort.CONTROL))
    modes = st.sampled_from((Mode.WARN, Mode.WARN, Mode.ENFORCE))
    return st.builds(
        Cell, st.just(guard), st.sampled_from(("1.0.0", "1.1.0")), st.integers(4, 5), cohorts, modes
    )


def transition(sequence: int) -> st.SearchStrategy[PromptNews]:
    """Return a strategy for a transition with this sequence."""
    flags = st.booleans()
    return st.builds(Transitioned, st.just(sequence), flags, flags, flags)


@st.composite
def histories(draw: st.DrawFn) -> list[PromptEvent]:
    """Draw the distinct events of up to four prompts, contradictory ones among them."""
    events: list[PromptEvent] = []
    for number in range(draw(st.integers(1, 4))):
        owner = draw(st.sampled_from(OWNERS))
        prompt = PromptKey(owner.pseudonym, f"prompt-{number}", owner.owner_bucket)
        news = [
            *draw(st.lists(starts, max_size=2)),
            *draw(st.lists(ends, max_size=2)),
            *[draw(transition(at)) for at in draw(st.lists(st.integers(0, 3), max_size=4))],
            *draw(st.lists(disruptions, max_size=2)),
            *draw(st.lists(st.just(Looped()), max_size=2)),
        ]
        for each in news:
            named = st.lists(st.sampled_from(GUARDS), unique=True, min_size=1, max_size=2)
            guards = draw(named)[: 1 if isinstance(each, Transitioned | Looped) else 2]
            events.append(
                PromptEvent(
                    seen=Seen(len(events) - 5, draw(seconds)),
                    prompt=prompt,
                    day=draw(days),
                    cells=tuple(draw(cells(guard)) for guard in guards),
                    is_conforming=None if isinstance(each, Looped) else draw(st.booleans()),
                    news=each,
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
    """Draw a form of the same events: some alone, and some together with others of their prompt."""
    alone: list[PromptEvent | PromptEvents] = []
    together: dict[PromptKey, list[BookedEvent]] = defaultdict(list)
    likes: dict[str, Like] = {}
    for event in events:
        if draw(st.booleans()):
            alone.append(event)
            continue
        told = event.booked()
        if draw(st.booleans()):
            like = event.like()
            told = told._replace(like=likes.setdefault(repr(like), like), numbers=None)
        together[event.prompt].append(told)
    groups = [PromptEvents.of(prompt, told) for prompt, told in together.items()]
    return tuple(draw(st.permutations([*alone, *groups])))


@dataclass(frozen=True, slots=True)
class Sums:
    """What a history adds up to. `by_day` counts prompts and records by day and name."""

    owner_days: tuple[OwnerDay, ...]
    by_day: dict[date, Counter[str]]


def sums_of(history: Sequence[PromptEvent]) -> Sums:
    """Return what the events must add up to once every prompt without an end is lost."""
    rows: dict[tuple[str, date, Cell], Counter[str]] = defaultdict(Counter)
    by_day: dict[date, Counter[str]] = defaultdict(Counter)
    by_prompt: dict[PromptKey, list[PromptEvent]] = defaultdict(list)
    for event in history:
        by_prompt[event.prompt].append(event)
    for prompt, events in by_prompt.items():
        for record in _records(events):
            by_day[record.day].update(records=1, conforming=int(bool(record.is_conforming)))
        day = _book_day(events, by_day)
        for guard in GUARDS:
            seen = _seen_cells(events, guard)
            if len({(each.cohort, each.mode) for each in seen}) > 1:
                switch_day = day or min(event.day for event in events)
                rows[prompt.pseudonym, switch_day, seen[0]].update(switched=1)
            if seen and day is not None:
                rows[prompt.pseudonym, day, seen[0]].update(_counts(events, guard))
    owner_days = [_owner_day(*key, counts) for key, counts in rows.items()]
    return Sums(tuple(sorted(owner_days, key=order)), by_day)


def order(row: OwnerDay) -> tuple[str, ...]:
    """Return what rows of two guards or two modes are sorted by."""
    return tuple(map(str, (row.day, row.owner, row)))


def _seen_cells(events: Sequence[PromptEvent], guard: str) -> list[Cell]:
    """Return the guard's cells, that of the earliest event first."""
    seen = [
        (event.seen.second, each.name, each)
        for event in events
        for each in event.cells
        if each.guard == guard
    ]
    return [each for _, _, each in sorted(seen, key=lambda entry: entry[:2])]


def _records(events: Sequence[PromptEvent]) -> list[PromptEvent]:
    """Return the records of a prompt: one start, one end and one disruption of a kind at most."""
    found = [event for event in events if isinstance(event.news, Transitioned)]
    kinds = [Disrupted(kind) for kind in DisruptionKind]
    alike = (
        [event for event in events if isinstance(event.news, Started)],
        [event for event in events if isinstance(event.news, Ended)],
        *([event for event in events if event.news == kind] for kind in kinds),
    )
    return found + [min(each, key=_precedence) for each in alike if each]


def _precedence(event: PromptEvent) -> tuple[object, ...]:
    """Return what events of one kind are ordered by: the first of them counts."""
    place = (event.seen.second, event.day)
    match event.news:
        case Started(hour=hour):
            return (*place, hour, event.is_conforming)
        case Ended() as end:
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
    found = [event for event in events if isinstance(event.news, Started)]
    if not found:
        return None
    first = min(found, key=_precedence)
    assert isinstance(first.news, Started)
    return first.day, first.news.hour


def _end(events: Sequence[PromptEvent]) -> tuple[date, Ended] | None:
    found = [event for event in events if isinstance(event.news, Ended)]
    if not found:
        return None
    first = min(found, key=_precedence)
    assert isinstance(first.news, Ended)
    return first.day, first.news


def _is_covered(events: Sequence[PromptEvent]) -> bool:
    end = _end(events)
    sequences = sorted(
        event.news.sequence or 0 for event in events if isinstance(event.news, Transitioned)
    )
    if _start(events) is None or end is None or end[1].transitions is None:
        return False
    return sequences == list(range(1, end[1].transitions + 1))


def _book_day(events: Sequence[PromptEvent], by_day: dict[date, Counter[str]]) -> date | None:
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
        event.news
        for event in events
        if isinstance(event.news, Transitioned) and event.cells[0].guard == guard
    ]
    found = _end(events)
    counts = {
        "started": 1,
        "would_stopped": sum(each.is_would_stop for each in decided),
        "stopped": sum(each.is_stop for each in decided),
        "unreliable": int(any(each.is_unreliable_input for each in decided)),
        "disrupted": int(any(isinstance(event.news, Disrupted) for event in events)),
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
    return isinstance(event.news, Looped) and event.cells[0].guard == guard


def _owner_day(owner: str, day: date, where: Cell, counts: Counter[str]) -> OwnerDay:
    durations = sorted(
        (int(name.removeprefix("bucket ")), prompts)
        for name, prompts in counts.items()
        if name.startswith("bucket ")
    )
    assert where.cohort is not None
    others = ("started", "disrupted", "tokens", "turns", "would_stopped", "stopped")
    more = ("calls_after_would_stop", "unreliable", "covered", "ended", "switched", "loops")
    untold = ("tokens_untold", "turns_untold")
    counted: dict[str, Any] = {name: counts[name] for name in (*others, *more, *untold)}
    counted |= {str(outcome): counts[outcome] for outcome in Outcome}
    return OwnerDay(
        owner=owner,
        day=day,
        cohort=where.cohort,
        version=where.version,
        durations=tuple(durations),
        mode=where.mode or Mode.OFF,
        **counted,
    )
