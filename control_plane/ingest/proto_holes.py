"""Where log records that say the same differ on the wire: their time, their prompt, their numbers.

A hole is a leaf of the message: its tag and its length lie outside of it. Two records of one size
that are equal outside of the holes of one are made of the same fields, whatever is in the holes.
"""

from collections.abc import Iterator, Mapping
from enum import Enum
from itertools import islice
from typing import NamedTuple

from control_plane.ingest import accepted
from control_plane.ingest.otlp import ATTRIBUTE_LIMIT
from control_plane.ingest.proto_fields import (
    FIXED64,
    LENGTH,
    VARINT,
    Field,
    GroupError,
    each_field,
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


class _Keys(NamedTuple):
    """What stands in the attributes that are holes, by key.

    `by_head` has it by the first bytes of an attribute as exporters write it: the tag and the
    length of its key, and the key.
    """

    by_key: Mapping[bytes, Role]
    by_head: Mapping[bytes, Role]


def _keys(roles: Mapping[str, Role]) -> _Keys:
    by_key = {key.encode(): role for key, role in roles.items()}
    by_head = {bytes((0x0A, len(key))) + key: role for key, role in by_key.items()}
    return _Keys(by_key, by_head)


_KEYS_OF_ANY, _KEYS_OF_AN_END = _keys(_IDS), _keys(_IDS | _NUMBERS)
_MANY = (Role.ASSIGNMENT, Role.SKIPPED)
# As many attributes as are read, ids of as many guards as may be, and some more. What is beyond is
# no exporter's, and would cost more than it saves.
_MOST_FIELDS = ATTRIBUTE_LIMIT + 16
_MOST_HOLES = 40


class _UnusualError(Exception):
    """The record is not written as exporters write it."""


def find_holes(record: bytes, *, is_end: bool) -> tuple[Hole, ...] | None:
    """Return the holes of a LogRecord in their order, those of numbers of an end only.

    None when it is written as no exporter does, or has no time or no prompt, or is none.
    """
    found = _holes(record, _KEYS_OF_AN_END if is_end else _KEYS_OF_ANY)
    try:
        holes = tuple(islice(found, _MOST_HOLES + 1))
    except (_UnusualError, GroupError, BadBody, IndexError):
        return None
    if len(holes) > _MOST_HOLES:
        return None
    # of two of a kind the last one holds, and the other says nothing
    once = [hole.role for hole in holes if hole.role not in _MANY]
    is_whole = Role.TIME in once and Role.PROMPT in once and len(once) == len(set(once))
    return holes if is_whole else None


def _holes(record: bytes, keys: _Keys) -> Iterator[Hole]:
    fields = _fields(record, 0, len(record), most=_MOST_FIELDS)
    has_time = any(field.tag == _TIME for field in fields)
    for tag, start, end in fields:
        if tag == _ATTRIBUTE:
            yield from _in_attribute(record, start, end, keys)
        elif tag == _TIME or (tag == _OBSERVED_TIME and not has_time):
            yield Hole(Role.TIME, start, end)
        elif tag in (_OBSERVED_TIME, _TRACE_ID, _SPAN_ID):
            yield Hole(Role.SKIPPED, start, end)


def _in_attribute(record: bytes, start: int, end: int, keys: _Keys) -> Iterator[Hole]:
    fields = _fields(record, start, end, most=2)
    role = keys.by_head.get(record[start : start + 2 + record[start + 1]]) if fields else None
    if role is None:
        named = [record[field.start : field.end] for field in fields if field.tag == _KEY]
        # in any other way of writing it the parser finds the same key: no constant may be one
        if any(key in keys.by_key for key in named):
            raise _UnusualError
        return
    if [field.tag for field in fields] != [_KEY, _VALUE]:
        raise _UnusualError
    _, value, after = fields[1]
    if value == after:
        # with nothing in it, it is as if the attribute were not there
        return
    held = _only(record, value, after)
    if held.tag == _ARRAY and role is Role.ASSIGNMENT:
        items = _fields(record, held.start, held.end, most=accepted.ASSIGNMENT_IDS)
        for tag, at, item_end in items:
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
    fields = _fields(message, start, end, most=1)
    if not fields:
        raise _UnusualError
    return fields[0]


def _fields(message: bytes, start: int, end: int, *, most: int) -> list[Field]:
    """Return the fields between two places; so many that no exporter writes more are unusual."""
    fields = list(islice(each_field(message, start, end), most + 1))
    if len(fields) > most:
        raise _UnusualError
    return fields
