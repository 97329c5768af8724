"""What pydantic refuses, said so that the sender can mend it: field, value, what is allowed."""

from collections.abc import Sequence
from typing import NoReturn

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from control_plane.errors import FieldProblem, InvalidField

_SHOWN = 64
_MOST = 20


def refuse(error: ValidationError) -> NoReturn:
    """Raise what the error says as one problem with a pointer for each refused member.

    Raises:
        InvalidField: always.
    """
    # Nothing that may hold an owner id is repeated, be it a value or the name of a member.
    holds_owner_ids = error.title.startswith("Owner")
    meant = [each for each in error.errors() if not _is_echo(each)][:_MOST]
    found = [_field_problem(each, is_silent=holds_owner_ids) for each in meant]
    first, *further = found
    raise InvalidField(first.detail, pointer=first.pointer, further=further)


def _field_problem(error: ErrorDetails, *, is_silent: bool) -> FieldProblem:
    path = error["loc"]
    is_unknown = error["type"] == "extra_forbidden"
    if is_unknown and is_silent:
        return FieldProblem(_pointer(path[:-1]), "a member is not known here; leave it out")
    name = str(path[-1])[:_SHOWN] if path else "the body"
    pointer = _pointer(path)
    if is_unknown:
        return FieldProblem(pointer, f"{name} is not known here; leave it out")
    message = _message(error)
    if error["type"] == "missing":
        return FieldProblem(pointer, f"{name} is missing; it is required")
    shown = None if is_silent else _shown(error["input"])
    return FieldProblem(pointer, f"{name}{'' if shown is None else f' is {shown}'}: {message}")


def _is_echo(error: ErrorDetails) -> bool:
    """Whether a list is called too short only because its items were refused one by one."""
    given = error["input"]
    return (
        error["type"] == "too_short"
        and isinstance(given, list | tuple)
        and len(given) >= error["ctx"]["min_length"]
    )


def _message(error: ErrorDetails) -> str:
    """Return what is allowed; what pydantic says of containers names types of Python."""
    limits = error.get("ctx", {})
    match error["type"]:
        case "too_short":
            return f"it has {limits['actual_length']} items; give at least {limits['min_length']}"
        case "too_long":
            return f"it has more than {limits['max_length']} items; give at most as many"
        case "tuple_type" | "list_type":
            return "it is a list; send a JSON array"
        case "model_type" | "model_attributes_type":
            return "it is an object; send a JSON object"
        case _:
            return f"{error['msg'][:1].lower()}{error['msg'][1:]}"


def _pointer(path: Sequence[int | str]) -> str:
    """Return the place as a JSON pointer (RFC 6901)."""
    escaped = (str(part).replace("~", "~0").replace("/", "~1")[:_SHOWN] for part in path)
    return "".join(f"/{part}" for part in escaped)


def _shown(value: object) -> str | None:
    """Return a scalar as JSON would write it, shortened; None for what is not worth repeating."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)[:_SHOWN]
        case str():
            return repr(value[:_SHOWN])
        case _:
            return None
