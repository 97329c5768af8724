"""Prompts told in parts: what they must add up to, computed once more from the set of parts."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from control_plane.stores.cells import Cell
from control_plane.stores.evidence_events import PromptEvent
from control_plane.stores.evidence_parts import (
    OUTCOME_PLACES,
    Answered,
    Began,
    Called,
    Closed,
    Finished,
    Opened,
    Part,
    RequestFailed,
    Stopped,
)
from control_plane.stores.prompt_events import PromptKey
from control_plane.stores.prompt_news import Started, Transitioned
from control_plane.stores.seen import Seen
from reducer.vocabulary import Cohort, Mode, Outcome
from tests.control_plane.stores.prompt_histories import DAY

FIRST_MS = 1_800_000_000_000
SOON_MS = 600_000
OWNER = PromptKey("aaaaaaaaaaaaaaaa", "", 3)
SESSIONS = ("session-1", "session-2")
CELL = Cell("repeated_tool_failure", "0.24.4", 1, Cohort.EVERYONE, Mode.SHADOW)

moments = st.sampled_from([FIRST_MS + step for step in (0, 1, 1000, 300_000, 601_000, 900_000)])
outcomes = st.sampled_from([Outcome.COMPLETED, Outcome.CANCELLED, Outcome.FAILED])
parts = st.one_of(
    st.builds(Began, moments),
    st.builds(Answered, st.none() | st.integers(0, 9), st.booleans()),
    st.builds(RequestFailed),
    st.builds(Called, moments),
    st.builds(Stopped, st.sampled_from(sorted(OUTCOME_PLACES))),
    st.builds(Finished, moments, st.just(7), st.integers(0, 3), st.sampled_from(SESSIONS)),
    st.builds(
        Closed,
        moments,
        st.just(7),
        outcomes,
        st.none() | st.integers(5, 7),
        st.sampled_from(SESSIONS),
    ),
)


def _event(number: int, prompt: str, news: object, ms: int) -> PromptEvent:
    is_part = not isinstance(news, Started | Transitioned)
    return PromptEvent(
        seen=Seen(number, ms // 1000),
        prompt=PromptKey(OWNER.pseudonym, prompt, OWNER.owner_bucket),
        day=DAY,
        cells=(CELL,),
        is_conforming=None if is_part else True,
        news=news,  # type: ignore[arg-type]  # one of the news that the strategies draw
    )


@dataclass(frozen=True, slots=True)
class Delivery:
    """The distinct events of prompts and sessions, and the order and batches that they come in."""

    events: tuple[PromptEvent, ...]
    batches: tuple[tuple[PromptEvent, ...], ...]


@st.composite
def delivered(draw: st.DrawFn) -> Delivery:
    """Draw prompts told in parts, sessions that are opened, and one way in which all arrive."""
    events: list[PromptEvent] = []
    for prompt in ("prompt-1", "prompt-2", "prompt-3")[: draw(st.integers(1, 3))]:
        if draw(st.booleans()):
            events.append(_event(len(events), prompt, Started(7), FIRST_MS))
        for part in draw(st.lists(parts, max_size=7)):
            ms = getattr(part, "at_ms", FIRST_MS)
            events.append(_event(len(events), prompt, part, ms))
        for ms in draw(st.lists(moments, max_size=2)):
            would_stop = Transitioned(None, True, False, False, at_ms=ms)
            events.append(_event(len(events), prompt, would_stop, ms))
    for session in SESSIONS:
        for ms in draw(st.lists(moments, max_size=2, unique=True)):
            events.append(_event(len(events), session, Opened(ms), ms))
    repeated = draw(st.lists(st.sampled_from(events), max_size=5)) if events else []
    order = draw(st.permutations([*events, *repeated]))
    batches: list[tuple[PromptEvent, ...]] = []
    while order:
        size = draw(st.integers(1, len(order)))
        batches.append(tuple(order[:size]))
        order = order[size:]
    return Delivery(tuple(events), tuple(batches))


def sums_of(events: Sequence[PromptEvent]) -> Counter[str]:
    """Return what the events must add to the owner's day once open prompts are lost."""
    by_prompt: dict[str, list[PromptEvent]] = {}
    opened: dict[str, list[int]] = {}
    for event in events:
        if isinstance(event.news, Opened):
            opened.setdefault(event.prompt.suffix, []).append(event.news.at_ms)
        else:
            by_prompt.setdefault(event.prompt.suffix, []).append(event)
    disrupted = _disrupted(by_prompt, opened)
    sums: Counter[str] = Counter()
    for prompt, own in by_prompt.items():
        sums.update(_prompt_sums(own, is_disrupted=prompt in disrupted))
    return +sums


def _of(events: Sequence[PromptEvent], kind: type[Part]) -> list[tuple[PromptEvent, Part]]:
    return [(each, each.news) for each in events if isinstance(each.news, kind)]


def _finished(events: Sequence[PromptEvent]) -> Finished | None:
    found = [news for _, news in _of(events, Finished) if isinstance(news, Finished)]
    return min(found, key=lambda each: (each.at_ms, each.turns), default=None)


def _closed(events: Sequence[PromptEvent]) -> Closed | None:
    found = [news for _, news in _of(events, Closed) if isinstance(news, Closed)]
    return min(found, key=_closed_place, default=None)


def _session(events: Sequence[PromptEvent]) -> str:
    return min(each.news.session for each in events if isinstance(each.news, Finished | Closed))


def _closed_place(each: Closed) -> tuple[object, ...]:
    bucket = each.duration_bucket
    place = (each.at_ms, OUTCOME_PLACES[each.outcome])
    return (*place, bucket is not None, bucket or 0)


def _disrupted(by_prompt: dict[str, list[PromptEvent]], opened: dict[str, list[int]]) -> set[str]:
    found = set()
    for session, moments_of in opened.items():
        ends = []
        for prompt, events in by_prompt.items():
            bounds = _closed(events) or _finished(events)
            if bounds is not None and _session(events) == session:
                ends.append((bounds.at_ms, prompt))
        for moment in moments_of:
            before = [end for end in ends if end[0] < moment]
            if before and moment - max(before)[0] <= SOON_MS:
                found.add(max(before)[1])
    return found


def _outcome(events: Sequence[PromptEvent]) -> Outcome:
    closed, finished = _closed(events), _finished(events)
    if closed is not None and closed.outcome is not Outcome.FAILED:
        return closed.outcome
    stops = [
        (event.seen.second, OUTCOME_PLACES[news.outcome], news.outcome)
        for event, news in _of(events, Stopped)
        if isinstance(news, Stopped)
    ]
    if stops:
        return min(stops)[2]
    if closed is not None:
        return Outcome.FAILED
    assert finished is not None
    if finished.turns <= _turns(events):
        return Outcome.COMPLETED
    return Outcome.FAILED if _of(events, RequestFailed) else Outcome.CANCELLED


def _turns(events: Sequence[PromptEvent]) -> int:
    return sum(news.is_turn for _, news in _of(events, Answered) if isinstance(news, Answered))


def _prompt_sums(events: Sequence[PromptEvent], *, is_disrupted: bool) -> Counter[str]:
    closed, finished = _closed(events), _finished(events)
    is_started = any(isinstance(each.news, Started) for each in events)
    if closed is None and finished is None:
        would = _would_stops(events) if is_started else []
        return Counter(started=is_started, lost=is_started, would_stopped=len(would))
    outcome, would = _outcome(events), _would_stops(events)
    answers = [news for _, news in _of(events, Answered) if isinstance(news, Answered)]
    calls = [news.at_ms for _, news in _of(events, Called) if isinstance(news, Called)]
    began = {news.at_ms for _, news in _of(events, Began) if isinstance(news, Began)}
    unanswered = int(outcome in {Outcome.FAILED, Outcome.CANCELLED})
    is_answered = finished is not None and finished.turns - _turns(events) <= unanswered
    is_told = is_answered and all(each.tokens is not None for each in answers)
    sums: Counter[str] = Counter(
        started=1,
        ended=1,
        disrupted=int(is_disrupted),
        would_stopped=len(would),
        tokens=sum(each.tokens or 0 for each in answers) if is_told else 0,
        tokens_untold=int(not is_told),
        turns=0 if finished is None else finished.turns,
        turns_untold=int(finished is None),
        calls_after_would_stop=sum(bool(would) and ms > min(would) for ms in calls),
    )
    sums[outcome] += 1
    if is_started and len(began) < 2:
        sums["covered"] += is_answered
    bucket = closed.duration_bucket if closed is not None else None
    if closed is None and finished is not None and began:
        bucket = math.ceil(math.log2(max(finished.at_ms - min(began), 1)) * 128) - 1
    if bucket is not None:
        sums[f"bucket {bucket}"] += 1
    return sums


def _would_stops(events: Sequence[PromptEvent]) -> list[int]:
    return [each.news.at_ms or 0 for each in events if isinstance(each.news, Transitioned)]
