"""Finds what telemetry must never carry: content under any key that the contract does not know."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from control_plane.ingest.otlp import Attributes, KeyValues, Value
from reducer.contract import ASSIGNMENT_ID
from reducer.rollout.invariants import is_deny_listed, is_overlong


class Sifted(NamedTuple):
    """An item's attributes after the allow-list.

    `known` are those the contract names, less what is too long to be one of its words; `dropped`
    counts the rest; `deny_listed` names the keys that make the item a violation. What a pipeline
    adds about where a record came from is dropped, whatever it says.
    """

    known: Attributes
    dropped: int
    deny_listed: tuple[str, ...]


def sift(
    attributes: Attributes, allowed: AbstractSet[str], *, forbidden: AbstractSet[str] = frozenset()
) -> Sifted:
    """Keep what is `allowed`; `forbidden` keys are violations although the contract knows them."""
    known: dict[str, Value] = {}
    denied: list[str] = []
    for key, value in attributes.items():
        if key in allowed:
            if key != ASSIGNMENT_ID and type(value) is str and is_overlong(value):
                denied.append(key)
            else:
                known[key] = value
        elif key in forbidden or _is_exposing(key, value):
            denied.append(key)
    return Sifted(known, len(attributes) - len(known), tuple(denied))


# What SDKs and Collectors add of their own accord, of the place that a record came from
# (OpenTelemetry semantic conventions). A host that writes content into one is not found out.
_OF_THE_PIPELINE = (
    "cloud.",
    "code.",
    "container.",
    "host.",
    "k8s.",
    "log.",
    "process.",
    "telemetry.",
)


def _is_exposing(key: str, value: Value) -> bool:
    if key.startswith(_OF_THE_PIPELINE):
        return False
    # a flag evaluation's own names contain a word of the deny-list
    if not key.startswith("feature_flag.") and is_deny_listed(key):
        return True
    return any(is_overlong(text) for text in _texts(value)) or any(
        is_deny_listed(inner) for inner in _keys(value)
    )


def _texts(value: Value) -> Iterator[str]:
    match value:
        case str():
            yield value
        case tuple():
            for item in value:
                yield from _texts(item)
        case KeyValues(items):
            for _, item in items:
                yield from _texts(item)
        case _:
            return


def _keys(value: Value) -> Iterator[str]:
    match value:
        case tuple():
            for item in value:
                yield from _keys(item)
        case KeyValues(items):
            for key, item in items:
                yield key
                yield from _keys(item)
        case _:
            return
