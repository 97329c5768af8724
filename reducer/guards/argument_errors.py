"""Argument errors: a wrong type in the host's code, with its field and the remedy."""

from collections.abc import Mapping


def argument_error(field: str, found: object, remedy: str) -> ValueError:
    """Return the error for a value of a wrong type; it never shows the value."""
    return ValueError(f"{field} is of type {type_of(found)}; {remedy}")


def type_of(found: object) -> str:
    """Return the name of a value's type, with its module because several events share a name."""
    kind = type(found)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def check_tuple(field: str, found: object, kind: type[object], remedy: str) -> None:
    """Raise ValueError, with the place, unless the value is a tuple of values of a type."""
    # The exact type: passing one call instead of a tuple is the likeliest slip, and a ToolCall is
    # a tuple too.
    if type(found) is not tuple:
        raise argument_error(field, found, remedy)
    for place, item in enumerate(found):
        if not isinstance(item, kind):
            raise argument_error(f"{field}[{place}]", item, remedy)


def check_responses(found: object, kind: type[object], remedy: str) -> None:
    """Raise ValueError, with the place, unless the value has a tuple for each model response."""
    if type(found) is not tuple:
        raise argument_error("responses", found, remedy)
    for at, response in enumerate(found):
        if type(response) is not tuple:
            raise argument_error(f"responses[{at}]", response, remedy)
        for place, item in enumerate(response):
            if not isinstance(item, kind):
                raise argument_error(f"responses[{at}][{place}]", item, remedy)


def check_flag(field: str, found: object) -> None:
    """Raise ValueError unless the value is true or false."""
    if not isinstance(found, bool):
        raise argument_error(field, found, "pass True or False")


def check_evidence(evidence: object) -> None:
    """Raise ValueError unless the value is a mapping."""
    if not isinstance(evidence, Mapping):
        raise argument_error("evidence", evidence, "pass a mapping from a call's key to a digest")
