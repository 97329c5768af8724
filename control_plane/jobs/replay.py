"""Replays: a verdict made again from its bundle alone, and its first difference."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeAlias

import orjson

from guardwave.analysis.inference import DrawKey
from guardwave.control_plane.jobs.bundles import Bundle
from guardwave.control_plane.jobs.conclude import conclude

JsonValue: TypeAlias = (
    "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
)
# The members that name an entry of a list better than its place does.
_NAMES = ("metric", "check", "topic", "day")


@dataclass(frozen=True, slots=True)
class Replay:
    """The result of a replay: the digests of both results, and the first difference in words.

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
        conclusion = conclude(gathered)
    except ValueError as error:
        return Replay(bundle.digest, "", f"the evidence cannot be judged: {error}")
    difference: str | None = None
    if sha256(bundle.result.encode()).hexdigest() != bundle.digest:
        difference = f"the recorded result does not have the recorded digest {bundle.digest}"
    elif seed != gathered.seed:
        difference = f"seed: recorded {gathered.seed}, the wave's is {seed}"
    elif conclusion.result != bundle.result:
        difference = _first_difference(bundle.result, conclusion.result)
    return Replay(bundle.digest, conclusion.digest, difference)


def _first_difference(recorded: str, replayed: str) -> str:
    try:
        before: JsonValue = orjson.loads(recorded)
    except orjson.JSONDecodeError as error:
        return f"the recorded result is no JSON: {error}"
    after: JsonValue = orjson.loads(replayed)
    return _difference(before, after, "") or "the same values are written otherwise"


def _difference(before: JsonValue, after: JsonValue, place: str) -> str | None:
    """Return the first difference, None when both are the same."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted({*before, *after}):
            inner = f"{place}.{name}" if place else name
            if name not in before or name not in after:
                where = "recorded" if name in before else "made now"
                return f"{inner}: only in what was {where}"
            difference = _difference(before[name], after[name], inner)
            if difference:
                return difference
        return None
    if isinstance(before, list) and isinstance(after, list):
        if len(before) != len(after):
            return f"{place}: recorded {len(before)} entries, now {len(after)}"
        for at, (old, new) in enumerate(zip(before, after, strict=True)):
            difference = _difference(old, new, f"{place}[{_name(old, at)}]")
            if difference:
                return difference
        return None
    is_same = type(before) is type(after) and before == after
    return None if is_same else f"{place}: recorded {_json(before)}, now {_json(after)}"


def _name(entry: JsonValue, at: int) -> str:
    if isinstance(entry, dict):
        for name in _NAMES:
            if name in entry:
                return str(entry[name])
    return str(at)


def _json(value: JsonValue) -> str:
    return orjson.dumps(value).decode()
