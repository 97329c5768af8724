"""Validation problems: the field, its value and what is allowed, so that a sender can mend it."""

from collections.abc import Sequence
from typing import NoReturn

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from guardwave.control_plane.core.errors import FieldProblem, InvalidField

_MAX_CHARACTERS = 64
_MAX_PROBLEMS = 20


def reject_invalid(error: ValidationError) -> NoReturn:
    """Raise the error as one problem, with a pointer to each rejected member.

    Raises:
        InvalidField: always.
    """
    # A value or a member's name may be an owner id; neither is repeated then.
    holds_owner_ids = error.title.startswith("Owner")
    details = [detail for detail in error.errors() if not _is_echo(detail)][:_MAX_PROBLEMS]
    first, *further = [_field_problem(detail, is_silent=holds_owner_ids) for detail in details]
    raise InvalidField(first.detail, pointer=first.pointer, further=further)


def _field_problem(error: ErrorDetails, *, is_silent: bool) -> FieldProblem:
    path = error["loc"]
    is_unknown = error["type"] == "extra_forbidden"
    if is_unknown and is_silent:
        return FieldProblem(_pointer(path[:-1]), "a member is not known here; leave it out")
    name = str(path[-1])[:_MAX_CHARACTERS] if path else "the body"
    pointer = _pointer(path)
    if is_unknown:
        return FieldProblem(pointer, f"{name} is not known here; leave it out")
    message = _message(error)
    if error["type"] == "missing":
        return FieldProblem(pointer, f"{name} is missing; it is required")
    shown = None if is_silent else _scalar_text(error["input"])
    return FieldProblem(pointer, f"{name}{'' if shown is None else f' is {shown}'}: {message}")


def _is_echo(error: ErrorDetails) -> bool:
    """Whether a list counts as too short only because each of its items was rejected."""
    given = error["input"]
    return (
        error["type"] == "too_short"
        and isinstance(given, list | tuple)
        and len(given) >= error["ctx"]["min_length"]
    )


def _message(error: ErrorDetails) -> str:
    """Return what is allowed; pydantic's own messages about containers name Python types."""
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
    """Return the path as a JSON pointer (RFC 6901)."""
    escaped = (str(part).replace("~", "~0").replace("/", "~1")[:_MAX_CHARACTERS] for part in path)
    return "".join(f"/{part}" for part in escaped)


def _scalar_text(value: object) -> str | None:
    """Return a scalar as JSON, shortened; None for objects and arrays, which are too long."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)[:_MAX_CHARACTERS]
        case str():
            return repr(value[:_MAX_CHARACTERS])
        case _:
            return None
