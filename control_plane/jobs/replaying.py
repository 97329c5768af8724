"""Making a verdict again from its bundle alone, and saying where it came out otherwise."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeAlias

import orjson

from analysis.rerandomisation import DrawKey
from control_plane.jobs.bundles import Bundle
from control_plane.jobs.concluding import conclude

JsonValue: TypeAlias = (
    "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
)
# What tells the members of a list apart better than their places.
_NAMES = ("metric", "check", "topic", "day")


@dataclass(frozen=True, slots=True)
class Replay:
    """What came of a replay: the digests of both results, and the first difference in words.

    `difference` is None when both results are the same bytes.
    """

    recorded_digest: str
    digest: str
    difference: str | None


def replay(bundle: Bundle) -> Replay:
    """Judge the bundle's evidence again and compare the result, byte by byte."""
    gathered = bundle.gathered
    seed = str(DrawKey(gathered.environment, gathered.guard, gathered.wave.number).seed)
    try:
        again = conclude(gathered)
    except ValueError as error:
        return Replay(bundle.digest, "", f"the evidence cannot be judged: {error}")
    difference: str | None = None
    if sha256(bundle.result.encode()).hexdigest() != bundle.digest:
        difference = f"the recorded result does not have the recorded digest {bundle.digest}"
    elif seed != gathered.seed:
        difference = f"seed: recorded {gathered.seed}, the wave's is {seed}"
    elif again.result != bundle.result:
        difference = _first_difference(bundle.result, again.result)
    return Replay(bundle.digest, again.digest, difference)


def _first_difference(recorded: str, made: str) -> str:
    try:
        before: JsonValue = orjson.loads(recorded)
    except orjson.JSONDecodeError as error:
        return f"the recorded result is no JSON: {error}"
    after: JsonValue = orjson.loads(made)
    found = _between(before, after, "")
    return found or "the same values are written otherwise"


def _between(before: JsonValue, after: JsonValue, place: str) -> str | None:
    """Return the first difference, None when both are the same."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted({*before, *after}):
            inner = f"{place}.{name}" if place else name
            if name not in before or name not in after:
                where = "recorded" if name in before else "made now"
                return f"{inner}: only in what was {where}"
            found = _between(before[name], after[name], inner)
            if found:
                return found
        return None
    if isinstance(before, list) and isinstance(after, list):
        if len(before) != len(after):
            return f"{place}: recorded {len(before)} entries, now {len(after)}"
        for at, (old, new) in enumerate(zip(before, after, strict=True)):
            found = _between(old, new, f"{place}[{_name(old, at)}]")
            if found:
                return found
        return None
    is_same = type(before) is type(after) and before == after
    return None if is_same else f"{place}: recorded {_shown(before)}, now {_shown(after)}"


def _name(entry: JsonValue, at: int) -> str:
    if isinstance(entry, dict):
        for name in _NAMES:
            if name in entry:
                return str(entry[name])
    return str(at)


def _shown(value: JsonValue) -> str:
    return orjson.dumps(value).decode()
