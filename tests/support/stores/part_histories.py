"""Prompts reported in parts, and their sums, computed a second time from the set of parts."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from guardwave.control_plane.stores.evidence.delta.dedupe_keys import DedupeKey
from guardwave.control_plane.stores.evidence.delta.prompt_events import (
    PromptKey,
    StartDelta,
    TransitionDelta,
)
from guardwave.control_plane.stores.evidence.delta.prompt_parts import (
    OUTCOME_PLACES,
    AnswerPart,
    BeginPart,
    CallPart,
    FailurePart,
    FinishPart,
    Part,
    SessionDelta,
    SpanPart,
    StopPart,
)
from guardwave.control_plane.stores.evidence.delta.request import PromptEvent
from guardwave.control_plane.stores.evidence.delta.strata import Stratum
from guardwave.reducer.vocabulary import Cohort, Mode, Outcome
from tests.support.stores.prompt_histories import DAY

FIRST_MS = 1_800_000_000_000
SOON_MS = 600_000
OWNER = PromptKey("aaaaaaaaaaaaaaaa", "", 3)
SESSIONS = ("session-1", "session-2")
STRATUM = Stratum("repeated_tool_failure", "0.24.4", 1, Cohort.EVERYONE, Mode.SHADOW)

moments = st.sampled_from([FIRST_MS + step for step in (0, 1, 1000, 300_000, 601_000, 900_000)])
outcomes = st.sampled_from([Outcome.COMPLETED, Outcome.CANCELLED, Outcome.FAILED])
parts = st.one_of(
    st.builds(BeginPart, moments),
    st.builds(AnswerPart, st.none() | st.integers(0, 9), st.booleans()),
    st.builds(FailurePart),
    st.builds(CallPart, moments),
    st.builds(StopPart, st.sampled_from(sorted(OUTCOME_PLACES))),
    st.builds(FinishPart, moments, st.just(7), st.integers(0, 3), st.sampled_from(SESSIONS)),
    st.builds(
        SpanPart,
        moments,
        st.just(7),
        outcomes,
        st.none() | st.integers(5, 7),
        st.sampled_from(SESSIONS),
    ),
)


def _event(number: int, prompt: str, delta: object, ms: int) -> PromptEvent:
    is_part = not isinstance(delta, StartDelta | TransitionDelta)
    return PromptEvent(
        dedupe_key=DedupeKey(number, ms // 1000),
        prompt=PromptKey(OWNER.pseudonym, prompt, OWNER.owner_bucket),
        day=DAY,
        strata=(STRATUM,),
        is_conforming=None if is_part else True,
        delta=delta,  # type: ignore[arg-type]  # one of the news that the strategies draw
    )


@dataclass(frozen=True, slots=True)
class Delivery:
    """The distinct events of prompts and sessions, and the order and batches that they come in."""

    events: tuple[PromptEvent, ...]
    batches: tuple[tuple[PromptEvent, ...], ...]


@st.composite
def delivered(draw: st.DrawFn) -> Delivery:
    """Draw prompts reported in parts, opened sessions, and one way in which all arrive."""
    events: list[PromptEvent] = []
    for prompt in ("prompt-1", "prompt-2", "prompt-3")[: draw(st.integers(1, 3))]:
        if draw(st.booleans()):
            events.append(_event(len(events), prompt, StartDelta(7), FIRST_MS))
        for part in draw(st.lists(parts, max_size=7)):
            ms = getattr(part, "at_ms", FIRST_MS)
            events.append(_event(len(events), prompt, part, ms))
        for ms in draw(st.lists(moments, max_size=2)):
            would_stop = TransitionDelta(None, True, False, False, at_ms=ms)
            events.append(_event(len(events), prompt, would_stop, ms))
    for session in SESSIONS:
        for ms in draw(st.lists(moments, max_size=2, unique=True)):
            events.append(_event(len(events), session, SessionDelta(ms), ms))
    repeated = draw(st.lists(st.sampled_from(events), max_size=5)) if events else []
    order = draw(st.permutations([*events, *repeated]))
    batches: list[tuple[PromptEvent, ...]] = []
    while order:
        size = draw(st.integers(1, len(order)))
        batches.append(tuple(order[:size]))
        order = order[size:]
    return Delivery(tuple(events), tuple(batches))


def sums_of(events: Sequence[PromptEvent]) -> Counter[str]:
    """Return the expected sums of the owner-day, after open prompts are lost."""
    by_prompt: dict[str, list[PromptEvent]] = {}
    opened: dict[str, list[int]] = {}
    for event in events:
        if isinstance(event.delta, SessionDelta):
            opened.setdefault(event.prompt.suffix, []).append(event.delta.at_ms)
        else:
            by_prompt.setdefault(event.prompt.suffix, []).append(event)
    disrupted = _disrupted(by_prompt, opened)
    sums: Counter[str] = Counter()
    for prompt, prompt_events in by_prompt.items():
        sums.update(_prompt_sums(prompt_events, is_disrupted=prompt in disrupted))
    return +sums


def _of(events: Sequence[PromptEvent], kind: type[Part]) -> list[tuple[PromptEvent, Part]]:
    return [(event, event.delta) for event in events if isinstance(event.delta, kind)]


def _finished(events: Sequence[PromptEvent]) -> FinishPart | None:
    found = [delta for _, delta in _of(events, FinishPart) if isinstance(delta, FinishPart)]
    return min(found, key=lambda part: (part.at_ms, part.turns), default=None)


def _closed(events: Sequence[PromptEvent]) -> SpanPart | None:
    found = [delta for _, delta in _of(events, SpanPart) if isinstance(delta, SpanPart)]
    return min(found, key=_span_order, default=None)


def _session(events: Sequence[PromptEvent]) -> str:
    return min(
        event.delta.session for event in events if isinstance(event.delta, FinishPart | SpanPart)
    )


def _span_order(span: SpanPart) -> tuple[object, ...]:
    bucket = span.duration_bucket
    place = (span.at_ms, OUTCOME_PLACES[span.outcome])
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
        (event.dedupe_key.second, OUTCOME_PLACES[delta.outcome], delta.outcome)
        for event, delta in _of(events, StopPart)
        if isinstance(delta, StopPart)
    ]
    if stops:
        return min(stops)[2]
    if closed is not None:
        return Outcome.FAILED
    assert finished is not None
    if finished.turns <= _turns(events):
        return Outcome.COMPLETED
    return Outcome.FAILED if _of(events, FailurePart) else Outcome.CANCELLED


def _turns(events: Sequence[PromptEvent]) -> int:
    return sum(
        delta.is_turn for _, delta in _of(events, AnswerPart) if isinstance(delta, AnswerPart)
    )


def _prompt_sums(events: Sequence[PromptEvent], *, is_disrupted: bool) -> Counter[str]:
    closed, finished = _closed(events), _finished(events)
    is_started = any(isinstance(event.delta, StartDelta) for event in events)
    if closed is None and finished is None:
        would = _would_stops(events) if is_started else []
        return Counter(started=is_started, lost=is_started, would_stopped=len(would))
    outcome, would = _outcome(events), _would_stops(events)
    answers = [delta for _, delta in _of(events, AnswerPart) if isinstance(delta, AnswerPart)]
    calls = [delta.at_ms for _, delta in _of(events, CallPart) if isinstance(delta, CallPart)]
    began = {delta.at_ms for _, delta in _of(events, BeginPart) if isinstance(delta, BeginPart)}
    unanswered = int(outcome in {Outcome.FAILED, Outcome.CANCELLED})
    is_answered = finished is not None and finished.turns - _turns(events) <= unanswered
    is_reported = is_answered and all(answer.tokens is not None for answer in answers)
    sums: Counter[str] = Counter(
        started=1,
        ended=1,
        disrupted=int(is_disrupted),
        would_stopped=len(would),
        tokens=sum(answer.tokens or 0 for answer in answers) if is_reported else 0,
        tokens_untold=int(not is_reported),
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
    return [event.delta.at_ms or 0 for event in events if isinstance(event.delta, TransitionDelta)]
