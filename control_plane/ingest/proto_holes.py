"""Where log records that say the same differ on the wire: their time, their prompt, their numbers.

A hole is a leaf of the message: its tag and its length lie outside of it. Two records of one size
that are equal outside of the holes of one are made of the same fields, whatever is in the holes.
"""

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import NamedTuple

from control_plane.ingest import accepted
from control_plane.ingest.proto_fields import (
    FIXED64,
    LENGTH,
    VARINT,
    Field,
    GroupError,
    fields_of,
    tag_of,
)
from control_plane.ingest.wire import BadBody
from reducer import contract


class Role(Enum):
    """What stands in a hole."""

    TIME = "time"
    SKIPPED = "skipped"
    PROMPT = "prompt id"
    ASSIGNMENT = "assignment id"
    DURATION = "duration"
    TURNS = "turns"
    TOOL_CALLS = "tool calls"
    TRANSITIONS = "transitions"
    INPUT_TOKENS = "input tokens"
    OUTPUT_TOKENS = "output tokens"
    CALLS_AFTER_WOULD_STOP = "calls after would_stop"


class Hole(NamedTuple):
    """Where something stands that other records have differently, and what it is."""

    role: Role
    start: int
    end: int


# Fields of the published schema: of LogRecord, KeyValue, AnyValue and ArrayValue.
_TIME, _OBSERVED_TIME = tag_of(1, FIXED64), tag_of(11, FIXED64)
_ATTRIBUTE, _TRACE_ID, _SPAN_ID = tag_of(6, LENGTH), tag_of(9, LENGTH), tag_of(10, LENGTH)
_KEY, _VALUE, _ITEM = tag_of(1, LENGTH), tag_of(2, LENGTH), tag_of(1, LENGTH)
_TEXT, _INTEGER = tag_of(1, LENGTH), tag_of(3, VARINT)
_DOUBLE, _ARRAY = tag_of(4, FIXED64), tag_of(5, LENGTH)
# In four bytes of seven bits each a number is within all limits of the contract.
_LONGEST_NUMBER = 4

_IDS = {contract.PROMPT_ID: Role.PROMPT, contract.ASSIGNMENT_ID: Role.ASSIGNMENT}
_NUMBERS = {
    contract.DURATION: Role.DURATION,
    contract.TURNS: Role.TURNS,
    contract.TOOL_CALLS: Role.TOOL_CALLS,
    contract.TRANSITIONS: Role.TRANSITIONS,
    contract.INPUT_TOKENS: Role.INPUT_TOKENS,
    contract.OUTPUT_TOKENS: Role.OUTPUT_TOKENS,
    accepted.OLDER_INPUT_TOKENS: Role.INPUT_TOKENS,
    accepted.OLDER_OUTPUT_TOKENS: Role.OUTPUT_TOKENS,
    contract.CALLS_AFTER_WOULD_STOP: Role.CALLS_AFTER_WOULD_STOP,
}
# By the first bytes of an attribute: the tag and the length of its key, and the key.
_Keys = Mapping[bytes, Role]
_KEYS_OF_ANY: _Keys = {bytes((0x0A, len(key))) + key.encode(): role for key, role in _IDS.items()}
_KEYS_OF_AN_END: _Keys = {
    bytes((0x0A, len(key))) + key.encode(): role for key, role in (_IDS | _NUMBERS).items()
}
_MANY = (Role.ASSIGNMENT, Role.SKIPPED)


class _UnusualError(Exception):
    """The record is not written as exporters write it."""


def find_holes(record: bytes, *, is_end: bool) -> tuple[Hole, ...] | None:
    """Return the holes of a LogRecord in their order, those of numbers of an end only.

    None when it is written as no exporter does, or has no time or no prompt, or is none. An
    attribute that is written in another way than exporters do may be taken for no hole.
    """
    try:
        holes = tuple(_holes(record, _KEYS_OF_AN_END if is_end else _KEYS_OF_ANY))
    except (_UnusualError, GroupError, BadBody, IndexError):
        return None
    # of two of a kind the last one holds, and the other says nothing
    once = [hole.role for hole in holes if hole.role not in _MANY]
    is_whole = Role.TIME in once and Role.PROMPT in once and len(once) == len(set(once))
    return holes if is_whole else None


def _holes(record: bytes, keys: _Keys) -> Iterator[Hole]:
    fields = fields_of(record, 0, len(record))
    has_time = any(field.tag == _TIME for field in fields)
    for tag, start, end in fields:
        if tag == _ATTRIBUTE:
            yield from _in_attribute(record, start, end, keys)
        elif tag == _TIME or (tag == _OBSERVED_TIME and not has_time):
            yield Hole(Role.TIME, start, end)
        elif tag in (_OBSERVED_TIME, _TRACE_ID, _SPAN_ID):
            yield Hole(Role.SKIPPED, start, end)


def _in_attribute(record: bytes, start: int, end: int, keys: _Keys) -> Iterator[Hole]:
    if end - start < 2:
        return
    role = keys.get(record[start : start + 2 + record[start + 1]])
    if role is None:
        return
    fields = fields_of(record, start, end)
    if [field.tag for field in fields] != [_KEY, _VALUE]:
        raise _UnusualError
    _, value, after = fields[1]
    if value == after:
        # with nothing in it, it is as if the attribute were not there
        return
    held = _only(record, value, after)
    if held.tag == _ARRAY and role is Role.ASSIGNMENT:
        for tag, at, item_end in fields_of(record, held.start, held.end):
            text = _only(record, at, item_end)
            if (tag, text.tag) != (_ITEM, _TEXT):
                raise _UnusualError
            yield Hole(role, text.start, text.end)
    elif _is_usual(role, held):
        yield Hole(role, held.start, held.end)
    else:
        raise _UnusualError


def _is_usual(role: Role, held: Field) -> bool:
    match role:
        case Role.PROMPT | Role.ASSIGNMENT:
            return held.tag == _TEXT
        case Role.DURATION:
            return held.tag == _DOUBLE
        case _:
            return held.tag == _INTEGER and held.end - held.start <= _LONGEST_NUMBER


def _only(message: bytes, start: int, end: int) -> Field:
    fields = fields_of(message, start, end)
    if len(fields) != 1:
        raise _UnusualError
    return fields[0]
