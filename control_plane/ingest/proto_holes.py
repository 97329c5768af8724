"""Where log records that say the same differ on the wire: their time, their prompt, their numbers.

A hole is a leaf of the message: its tag and its length lie outside of it. Two records of one size
that are equal outside of the holes of one are made of the same fields, whatever is in the holes.
"""

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import NamedTuple

from control_plane.ingest import contract
from control_plane.ingest.proto_size import read_varint
from control_plane.ingest.wire import BadBody


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


class _Field(NamedTuple):
    """Field number and wire type of the schema, and where the content lies."""

    kind: tuple[int, int]
    start: int
    end: int


# Kinds of fields of the published schema: LogRecord, KeyValue, AnyValue and ArrayValue, each with
# its wire type (Protocol Buffers Encoding, Message Structure).
_TIME, _OBSERVED_TIME = (1, 1), (11, 1)
_ATTRIBUTE, _TRACE_ID, _SPAN_ID = (6, 2), (9, 2), (10, 2)
_KEY, _VALUE, _ITEM = (1, 2), (2, 2), (1, 2)
_TEXT, _INTEGER, _DOUBLE, _ARRAY = (1, 2), (3, 0), (4, 1), (5, 2)
_BYTES_OF_WIRE_TYPE = {1: 8, 5: 4}
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
    contract.OLDER_INPUT_TOKENS: Role.INPUT_TOKENS,
    contract.OLDER_OUTPUT_TOKENS: Role.OUTPUT_TOKENS,
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
    except (_UnusualError, BadBody, IndexError):
        return None
    # of two of a kind the last one holds, and the other says nothing
    once = [hole.role for hole in holes if hole.role not in _MANY]
    is_whole = Role.TIME in once and Role.PROMPT in once and len(once) == len(set(once))
    return holes if is_whole else None


def _holes(record: bytes, keys: _Keys) -> Iterator[Hole]:
    fields = _fields(record, 0, len(record))
    has_time = any(field.kind == _TIME for field in fields)
    for kind, start, end in fields:
        if kind == _ATTRIBUTE:
            yield from _in_attribute(record, start, end, keys)
        elif kind == _TIME or (kind == _OBSERVED_TIME and not has_time):
            yield Hole(Role.TIME, start, end)
        elif kind in (_OBSERVED_TIME, _TRACE_ID, _SPAN_ID):
            yield Hole(Role.SKIPPED, start, end)


def _in_attribute(record: bytes, start: int, end: int, keys: _Keys) -> Iterator[Hole]:
    if end - start < 2:
        return
    role = keys.get(record[start : start + 2 + record[start + 1]])
    if role is None:
        return
    fields = _fields(record, start, end)
    if [field.kind for field in fields] != [_KEY, _VALUE]:
        raise _UnusualError
    _, value, after = fields[1]
    if value == after:
        # with nothing in it, it is as if the attribute were not there
        return
    held = _only(record, value, after)
    if held.kind == _ARRAY and role is Role.ASSIGNMENT:
        for kind, at, item_end in _fields(record, held.start, held.end):
            text = _only(record, at, item_end)
            if (kind, text.kind) != (_ITEM, _TEXT):
                raise _UnusualError
            yield Hole(role, text.start, text.end)
    elif _is_usual(role, held):
        yield Hole(role, held.start, held.end)
    else:
        raise _UnusualError


def _is_usual(role: Role, held: _Field) -> bool:
    match role:
        case Role.PROMPT | Role.ASSIGNMENT:
            return held.kind == _TEXT
        case Role.DURATION:
            return held.kind == _DOUBLE
        case _:
            return held.kind == _INTEGER and held.end - held.start <= _LONGEST_NUMBER


def _only(message: bytes, start: int, end: int) -> _Field:
    fields = _fields(message, start, end)
    if len(fields) != 1:
        raise _UnusualError
    return fields[0]


def _fields(message: bytes, at: int, end: int) -> list[_Field]:
    fields: list[_Field] = []
    while at < end:
        tag, at = read_varint(message, at)
        wire_type = tag & 7
        start = at
        if wire_type == 2:
            length, start = read_varint(message, at)
            at = start + length
        elif wire_type == 0:
            at = read_varint(message, at)[1]
        elif wire_type in _BYTES_OF_WIRE_TYPE:
            at += _BYTES_OF_WIRE_TYPE[wire_type]
        else:
            # a group: what stands in it would look like fields of the message's own
            raise _UnusualError
        fields.append(_Field((tag >> 3, wire_type), start, at))
    return fields
