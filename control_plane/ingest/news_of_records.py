"""What a record tells of its prompt, in the form that evidence is counted in."""

from math import ceil, log2
from typing import TypeAlias

from control_plane.clock import NANOSECONDS
from control_plane.ingest.event_time import DAY_NS, HOUR_NS, utc_hour
from control_plane.ingest.records import (
    PromptDisruption,
    PromptEnd,
    PromptPart,
    PromptStart,
    SessionOpened,
    Transition,
)
from control_plane.ingest.wordings import EndNumbers
from control_plane.stores.evidence_parts import Opened
from control_plane.stores.prompt_events import Numbers
from control_plane.stores.prompt_news import Disrupted, Ended, PromptNews, Started, Transitioned
from control_plane.stores.seen import MOST
from reducer.vocabulary import Decision, GuardPhase, ResetReason

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
    """Return when the prompt began, as far as this record tells."""
    if isinstance(record, PromptEnd):
        return record.time_ns - int((record.duration_seconds or 0) * NANOSECONDS)
    if isinstance(record, PromptPart):
        return record.began_ns or record.time_ns
    return record.time_ns


def news_of(record: PromptRecord, began: int) -> PromptNews:
    """Return what the record adds to its prompt, which began at `began` nanoseconds."""
    match record:
        case PromptStart():
            return Started(utc_hour(began))
        case PromptEnd():
            return Ended(
                outcome=record.outcome,
                tokens=_tokens(record.input_tokens, record.output_tokens),
                turns=record.turns,
                duration_bucket=duration_bucket(record.duration_seconds),
                transitions=record.transitions,
                calls_after_would_stop=record.calls_after_would_stop or 0,
                hour=utc_hour(began),
            )
        case Transition():
            return Transitioned(
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
            return Disrupted(record.kind)
        case PromptPart():
            return record.part
        case SessionOpened():
            return Opened(record.time_ns // MILLISECOND_NS)


def ended_numbers(place: int, time_ns: int, numbers: EndNumbers) -> tuple[int, Numbers]:
    """Return the day, from 1970, on which the prompt of an end began, and what `news_of` it has.

    `place` is that of its outcome. Ends are many, and this takes a fifth of the time.
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
    """Return the tokens of an end, None where it did not report both: a part of a sum is none."""
    if read is None or written is None:
        return None
    # Each was checked alone; the store's sums end at the same number.
    return min(read + written, MOST)


def _is_unwarned(record: Transition) -> bool:
    """Whether a stop says itself that its candidate had not been warned."""
    is_told = record.decision in _STOPS and record.phase_from is not None
    return is_told and record.phase_from is not GuardPhase.WARNED


def is_conforming(record: PromptRecord) -> bool | None:
    """Whether the record reports what the gate needs of its kind (the contract check).

    None for what is no record of its own there: a prompt told in parts is one by its start, its
    transitions and what its parts say of its end.
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
