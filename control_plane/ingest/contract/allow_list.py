"""Allow-list: the attributes that the contract knows, and the content that no item may carry."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from guardwave.control_plane.ingest.model.otlp_values import Attributes, KeyValues, Value
from guardwave.reducer.contract import ASSIGNMENT_ID
from guardwave.reducer.rollout.invariants import is_deny_listed, is_overlong


class SiftedAttributes(NamedTuple):
    """An item's attributes after the allow-list.

    `known` are the attributes that the contract names, without those that are too long for one of
    its words; `dropped` counts the rest; `deny_listed` names the keys that make the item a
    violation. Attributes that a pipeline adds about a record's place are dropped unread.
    """

    known: Attributes
    dropped: int
    deny_listed: tuple[str, ...]


def sift_attributes(
    attributes: Attributes, allowed: AbstractSet[str], *, forbidden: AbstractSet[str] = frozenset()
) -> SiftedAttributes:
    """Keep `allowed` keys; `forbidden` keys are violations although the contract knows them."""
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
    return SiftedAttributes(known, len(attributes) - len(known), tuple(denied))


# SDKs and Collectors add these on their own, about the place where a record was made
# (OpenTelemetry semantic conventions). Content that a host writes into one goes unnoticed.
_PIPELINE_PREFIXES = (
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
    if key.startswith(_PIPELINE_PREFIXES):
        return False
    # the names of a flag evaluation contain a word of the deny-list
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
