"""Variable fields: the time, prompt, ids and numbers in the bytes of an otherwise equal record.

A variable field is a leaf of the message: its tag and its length lie outside of it. If two records
of one size are equal outside of the variable fields of one of them, both have the same fields,
whatever the values are.
"""

from collections.abc import Iterator, Mapping
from enum import Enum
from itertools import islice
from typing import NamedTuple

from guardwave.control_plane.ingest.contract import limits
from guardwave.control_plane.ingest.model.otlp_values import ATTRIBUTE_LIMIT
from guardwave.control_plane.ingest.wire import (
    FIXED64,
    LENGTH,
    VARINT,
    BadBody,
    Field,
    GroupError,
    iterate_fields,
    tag_of,
)
from guardwave.reducer import contract


class Role(Enum):
    """Meaning of a variable field."""

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


class VariableField(NamedTuple):
    """Bytes of a record that differ from record to record, and their meaning."""

    role: Role
    start: int
    end: int


# Fields of the published schema: of LogRecord, KeyValue, AnyValue and ArrayValue.
_TIME, _OBSERVED_TIME = tag_of(1, FIXED64), tag_of(11, FIXED64)
_ATTRIBUTE, _TRACE_ID, _SPAN_ID = tag_of(6, LENGTH), tag_of(9, LENGTH), tag_of(10, LENGTH)
_KEY, _VALUE, _ITEM = tag_of(1, LENGTH), tag_of(2, LENGTH), tag_of(1, LENGTH)
_TEXT, _INTEGER = tag_of(1, LENGTH), tag_of(3, VARINT)
_DOUBLE, _ARRAY = tag_of(4, FIXED64), tag_of(5, LENGTH)
# A number of at most four bytes, of seven bits each, is within all limits of the contract.
_LONGEST_NUMBER = 4

_IDS = {contract.PROMPT_ID: Role.PROMPT, contract.ASSIGNMENT_ID: Role.ASSIGNMENT}
_NUMBERS = {
    contract.DURATION: Role.DURATION,
    contract.TURNS: Role.TURNS,
    contract.TOOL_CALLS: Role.TOOL_CALLS,
    contract.TRANSITIONS: Role.TRANSITIONS,
    contract.INPUT_TOKENS: Role.INPUT_TOKENS,
    contract.OUTPUT_TOKENS: Role.OUTPUT_TOKENS,
    limits.OLDER_INPUT_TOKENS: Role.INPUT_TOKENS,
    limits.OLDER_OUTPUT_TOKENS: Role.OUTPUT_TOKENS,
    contract.CALLS_AFTER_WOULD_STOP: Role.CALLS_AFTER_WOULD_STOP,
}


class _Keys(NamedTuple):
    """Roles of variable attributes by key.

    `by_head` has them by the first bytes of an attribute as exporters write it: the tag and the
    length of its key, and the key.
    """

    by_key: Mapping[bytes, Role]
    by_head: Mapping[bytes, Role]


def _keys(roles: Mapping[str, Role]) -> _Keys:
    by_key = {key.encode(): role for key, role in roles.items()}
    by_head = {bytes((0x0A, len(key))) + key: role for key, role in by_key.items()}
    return _Keys(by_key, by_head)


_KEYS_OF_ANY, _KEYS_OF_AN_END = _keys(_IDS), _keys(_IDS | _NUMBERS)
_REPEATABLE = (Role.ASSIGNMENT, Role.SKIPPED)
# As many attributes as are read, ids of as many guards as may be, and some more. A record with more
# is no exporter's, and would cost more than it saves.
_MOST_FIELDS = ATTRIBUTE_LIMIT + 16
_MOST_VARIABLE_FIELDS = 40


class _UnusualError(Exception):
    """The record is not written as exporters write it."""


def find_variable_fields(record: bytes, *, is_end: bool) -> tuple[VariableField, ...] | None:
    """Return the variable fields of a LogRecord in their order; only an end has numbers.

    None for bytes that no exporter writes, that are no LogRecord, or that lack a time or a prompt.
    """
    found = _variable_fields(record, _KEYS_OF_AN_END if is_end else _KEYS_OF_ANY)
    try:
        variable_fields = tuple(islice(found, _MOST_VARIABLE_FIELDS + 1))
    except (_UnusualError, GroupError, BadBody, IndexError):
        return None
    if len(variable_fields) > _MOST_VARIABLE_FIELDS:
        return None
    # where a field comes twice, parsers take the last: such a record is the slow path's
    once = [found.role for found in variable_fields if found.role not in _REPEATABLE]
    is_usable = Role.TIME in once and Role.PROMPT in once and len(once) == len(set(once))
    return variable_fields if is_usable else None


def _variable_fields(record: bytes, keys: _Keys) -> Iterator[VariableField]:
    fields = _fields(record, 0, len(record), most=_MOST_FIELDS)
    has_time = any(field.tag == _TIME for field in fields)
    for tag, start, end in fields:
        if tag == _ATTRIBUTE:
            yield from _in_attribute(record, start, end, keys)
        elif tag == _TIME or (tag == _OBSERVED_TIME and not has_time):
            yield VariableField(Role.TIME, start, end)
        elif tag in (_OBSERVED_TIME, _TRACE_ID, _SPAN_ID):
            yield VariableField(Role.SKIPPED, start, end)


def _in_attribute(record: bytes, start: int, end: int, keys: _Keys) -> Iterator[VariableField]:
    fields = _fields(record, start, end, most=2)
    role = keys.by_head.get(record[start : start + 2 + record[start + 1]]) if fields else None
    if role is None:
        named = [record[field.start : field.end] for field in fields if field.tag == _KEY]
        # the parser finds the key in other encodings too: no constant part may hold one
        if any(key in keys.by_key for key in named):
            raise _UnusualError
        return
    if [field.tag for field in fields] != [_KEY, _VALUE]:
        raise _UnusualError
    _, value, after = fields[1]
    if value == after:
        # an empty value counts as a missing attribute
        return
    content = _only(record, value, after)
    if content.tag == _ARRAY and role is Role.ASSIGNMENT:
        items = _fields(record, content.start, content.end, most=limits.ASSIGNMENT_IDS)
        for tag, at, item_end in items:
            text = _only(record, at, item_end)
            if (tag, text.tag) != (_ITEM, _TEXT):
                raise _UnusualError
            yield VariableField(role, text.start, text.end)
    elif _is_usual(role, content):
        yield VariableField(role, content.start, content.end)
    else:
        raise _UnusualError


def _is_usual(role: Role, content: Field) -> bool:
    match role:
        case Role.PROMPT | Role.ASSIGNMENT:
            return content.tag == _TEXT
        case Role.DURATION:
            return content.tag == _DOUBLE
        case _:
            return content.tag == _INTEGER and content.end - content.start <= _LONGEST_NUMBER


def _only(message: bytes, start: int, end: int) -> Field:
    fields = _fields(message, start, end, most=1)
    if not fields:
        raise _UnusualError
    return fields[0]


def _fields(message: bytes, start: int, end: int, *, most: int) -> list[Field]:
    """Return the fields between two positions; more than any exporter writes are unusual."""
    fields = list(islice(iterate_fields(message, start, end), most + 1))
    if len(fields) > most:
        raise _UnusualError
    return fields
