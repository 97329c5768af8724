"""A mistake of the host's code in words: the field, the type that was found, and the remedy."""

from collections.abc import Mapping


def mistaken(field: str, found: object, remedy: str) -> ValueError:
    """Return the error for a value of another type; the value itself is never shown."""
    return ValueError(f"{field} is of type {type_of(found)}; {remedy}")


def type_of(found: object) -> str:
    """Return the name of a value's type, with its module: several events share a name."""
    kind = type(found)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def check_each(field: str, found: object, kind: type[object], remedy: str) -> None:
    """Raise ValueError for what is no tuple of values of a type; naming the place."""
    # By exact type: a call that stands for the tuple of it is the likeliest slip, and a tuple too.
    if type(found) is not tuple:
        raise mistaken(field, found, remedy)
    for place, each in enumerate(found):
        if not isinstance(each, kind):
            raise mistaken(f"{field}[{place}]", each, remedy)


def check_responses(found: object, kind: type[object], remedy: str) -> None:
    """Raise ValueError for what is no tuple of a tuple per model response; naming the place."""
    if type(found) is not tuple:
        raise mistaken("responses", found, remedy)
    for at, response in enumerate(found):
        if type(response) is not tuple:
            raise mistaken(f"responses[{at}]", response, remedy)
        for place, each in enumerate(response):
            if not isinstance(each, kind):
                raise mistaken(f"responses[{at}][{place}]", each, remedy)


def check_flag(field: str, found: object) -> None:
    """Raise ValueError for what is neither true nor false."""
    if not isinstance(found, bool):
        raise mistaken(field, found, "pass True or False")


def check_evidence(evidence: object) -> None:
    """Raise ValueError for what maps no keys to digests."""
    if not isinstance(evidence, Mapping):
        raise mistaken("evidence", evidence, "pass a mapping from a call's key to a digest")
