"""Prompt deltas: what one event adds to its prompt, in the buckets that evidence counts."""

from math import ceil, log2
from typing import TypeAlias

from guardwave.control_plane.core.clock import NANOSECONDS
from guardwave.control_plane.ingest.contract import DAY_NS, HOUR_NS, utc_hour
from guardwave.control_plane.ingest.model.record_templates import EndNumbers
from guardwave.control_plane.ingest.model.records import (
    PromptDisruption,
    PromptEnd,
    PromptPart,
    PromptStart,
    SessionOpened,
    Transition,
)
from guardwave.control_plane.stores.evidence.delta.dedupe_keys import MOST
from guardwave.control_plane.stores.evidence.delta.prompt_events import (
    DisruptionDelta,
    EndDelta,
    Numbers,
    PromptDelta,
    StartDelta,
    TransitionDelta,
)
from guardwave.control_plane.stores.evidence.delta.prompt_parts import SessionDelta
from guardwave.reducer.vocabulary import Decision, GuardPhase, ResetReason

PromptRecord: TypeAlias = (
    PromptStart | PromptEnd | PromptDisruption | Transition | PromptPart | SessionOpened
)

# Base-2 exponential buckets of scale 7: 128 for each doubling, a ratio of 1.0054.
BUCKETS_PER_DOUBLING = 128
MILLISECOND_NS = 1_000_000

_STOPS = frozenset({Decision.STOPPED, Decision.SUSPENDED})
_WOULD_STOP = frozenset({Decision.WOULD_STOP, Decision.WOULD_SUSPEND})


def duration_bucket(seconds: float | None) -> int | None:
    """Return the base-2 exponential bucket b at scale 7: (2^(b/128), 2^((b+1)/128)] milliseconds.

    The bucket rule is OpenTelemetry's (data model, ExponentialHistogram). A duration below a
    millisecond counts as one; None stays None.
    """
    if seconds is None:
        return None
    milliseconds = seconds * 1000.0
    if milliseconds <= 1.0:
        return -1
    return ceil(log2(milliseconds) * BUCKETS_PER_DOUBLING) - 1


def began_ns(record: PromptRecord) -> int:
    """Return when the prompt began, as far as this record reports it."""
    if isinstance(record, PromptEnd):
        return record.time_ns - int((record.duration_seconds or 0) * NANOSECONDS)
    if isinstance(record, PromptPart):
        return record.began_ns or record.time_ns
    return record.time_ns


def prompt_delta(record: PromptRecord, began: int) -> PromptDelta:
    """Return the delta of a record whose prompt began at `began` nanoseconds."""
    match record:
        case PromptStart():
            return StartDelta(utc_hour(began))
        case PromptEnd():
            return EndDelta(
                outcome=record.outcome,
                tokens=_tokens(record.input_tokens, record.output_tokens),
                turns=record.turns,
                duration_bucket=duration_bucket(record.duration_seconds),
                transitions=record.transitions,
                calls_after_would_stop=record.calls_after_would_stop or 0,
                hour=utc_hour(began),
            )
        case Transition():
            return TransitionDelta(
                sequence=record.sequence,
                is_would_stop=record.decision in _WOULD_STOP,
                is_stop=record.decision in _STOPS,
                is_unreliable_input=record.reset_reason is ResetReason.UNRELIABLE_INPUT,
                is_warning=record.decision is Decision.WARNED,
                ordinal=record.ordinal,
                at_ms=None if record.sequence is not None else record.time_ns // MILLISECOND_NS,
                is_unwarned=_is_unwarned(record),
            )
        case PromptDisruption():
            return DisruptionDelta(record.kind)
        case PromptPart():
            return record.part
        case SessionOpened():
            return SessionDelta(record.time_ns // MILLISECOND_NS)


def end_delta_numbers(place: int, time_ns: int, numbers: EndNumbers) -> tuple[int, Numbers]:
    """Return the day, from 1970, on which an ended prompt began, and the numbers of its delta.

    `place` is that of its outcome. `prompt_delta` gives the same numbers and takes five times as
    long; ends are many.
    """
    duration, turns, _, transitions, input_tokens, output_tokens, after = numbers
    began, bucket = time_ns, None
    if duration is not None:
        began, bucket = time_ns - int(duration * NANOSECONDS), duration_bucket(duration)
    day, of_day = divmod(began, DAY_NS)
    tokens = _tokens(input_tokens, output_tokens)
    return day, (
        place,
        -1 if tokens is None else tokens,
        -1 if turns is None else turns,
        False if bucket is None else bucket,
        -1 if transitions is None else transitions,
        after or 0,
        of_day // HOUR_NS,
    )


def _tokens(read: int | None, written: int | None) -> int | None:
    """Return the tokens of an end; None unless both are reported: half of a sum is no sum."""
    if read is None or written is None:
        return None
    # Each was checked alone; the store's sums end at the same number.
    return min(read + written, MOST)


def _is_unwarned(record: Transition) -> bool:
    """Whether a stop reports itself that its candidate had not been warned."""
    is_reported = record.decision in _STOPS and record.phase_from is not None
    return is_reported and record.phase_from is not GuardPhase.WARNED


def is_conforming(record: PromptRecord) -> bool | None:
    """Whether the record reports what the gate needs of its kind (the contract check).

    None for a record that does not count there: a prompt in parts counts by its start, its
    transitions, and its end as computed from the parts.
    """
    match record:
        case Transition():
            is_about_a_call = record.decision is not Decision.RESET
            return record.execution_status is not None or not is_about_a_call
        case PromptEnd():
            reported = (
                record.duration_seconds,
                record.turns,
                record.transitions,
                record.input_tokens,
                record.output_tokens,
            )
            return None not in reported
        case PromptPart() | SessionOpened():
            return None
        case _:
            return True
