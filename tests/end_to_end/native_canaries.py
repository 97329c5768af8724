"""Native canaries: events and metrics with content in and beside each known attribute."""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from guardwave.control_plane.ingest.contract import limits
from guardwave.control_plane.ingest.contract.events import EVENTS
from guardwave.control_plane.ingest.contract.points import ALLOWED_ON_POINTS
from guardwave.reducer import contract
from guardwave.reducer.rollout.invariants import NEVER_ON_A_METRIC
from tests.end_to_end.canaries import CANARY, Json, planted_attributes, resource, text
from tests.support.otlp.qwen import Body

GUARD = "repeated_tool_failure"
PATH = f"/home/{CANARY}/notes.txt"
SECOND_NS = 1_000_000_000
WORDS: Mapping[str, Mapping[str, object]] = {
    contract.OUTCOME: limits.OUTCOMES,
    contract.LOOP_TYPE: limits.LOOP_TYPES,
    contract.FLAG_VARIANT: limits.MODES,
    contract.MODE: limits.MODES,
    contract.STAGE: limits.STAGES,
    **{key: words for labels in limits.COUNTERS.values() for key, words in labels.items()},
}
FLAGS = frozenset({contract.BATCH_COMPLETE, contract.HISTORY_PRESERVED, limits.COMPLETED})
# A name is kept: what a host calls a guard is not content.
NAMES = frozenset({contract.GUARD, contract.FLAG_KEY})


class Planted(NamedTuple):
    """A body full of content, and what is right to answer.

    `is_whole`: all of it is read. Else content may be quoted as a wrong word where it looks like
    one.
    """

    body: Body
    is_whole: bool = False


class NativeHost:
    """A host that was written for guardwave, and puts content wherever telemetry has a place."""

    def __init__(self, now_ns: int, assignment_id: str) -> None:
        self._now_ns = now_ns
        self._assignment_id = assignment_id
        self._prompts = 0

    def everything(self) -> Iterator[Planted]:
        """Yield bodies for every event and metric, and for each attribute of each."""
        for name, event in EVENTS.items():
            keys = event.allowed - {limits.EVENT_NAME}
            yield Planted(self._event(name, self._attributes(keys), is_beside=True), is_whole=True)
            for key in keys:
                for wrong in _wrong(key):
                    yield Planted(self._event(name, {**self._attributes(keys), key: wrong}))
        for name, labels in ALLOWED_ON_POINTS.items():
            given = self._attributes(labels - {limits.OVERFLOW})
            yield Planted(self._metric(name, given, is_beside=True), is_whole=True)
            for key in labels:
                for wrong in _wrong(key):
                    yield Planted(self._metric(name, {**given, key: wrong}))
            for unit in (CANARY, PATH):
                yield Planted(self._metric(name, given, unit=unit))
        yield from self._elsewhere()

    def _elsewhere(self) -> Iterator[Planted]:
        """Yield content in names, scopes, ids and numbers."""
        end = self._attributes(EVENTS[contract.PROMPT_END].allowed - {limits.EVENT_NAME})
        turns = self._attributes(ALLOWED_ON_POINTS[contract.TURNS_METRIC] - {limits.OVERFLOW})
        yield Planted(self._event(f"agent.guard.{CANARY}", end))
        yield Planted(self._event("", {**end, limits.EVENT_NAME: text(PATH)}))
        yield Planted(self._metric(f"agent.guard.{CANARY}", turns))
        for version in (CANARY, PATH):
            yield Planted(self._event(contract.PROMPT_END, end, version=version))
            yield Planted(self._metric(contract.TURNS_METRIC, turns, value=version))
            yield Planted(self._event(contract.PROMPT_END, end, traceId=version))

    def _attributes(self, keys: AbstractSet[str]) -> dict[str, Json]:
        """Return attributes that are right, each with a prompt of its own."""
        self._prompts += 1
        known: Mapping[str, Json] = {
            contract.GUARD: text(GUARD),
            contract.FLAG_KEY: text(f"{contract.FLAG_PREFIX}{GUARD}"),
            contract.PROMPT_ID: text(f"{CANARY}-{self._prompts}"),
            contract.ASSIGNMENT_ID: text(self._assignment_id),
            contract.ERROR_TYPE: text("ENOENT"),
        }
        return {key: known.get(key) or _right(key) for key in keys}

    def _event(
        self, name: str, given: Mapping[str, Json], *, is_beside: bool = False, **other: str
    ) -> Body:
        version = other.pop("version", contract.SCOPE_VERSION)
        attributes = [{"key": key, "value": value} for key, value in given.items()]
        item: Json = {"timeUnixNano": str(self._now_ns), "eventName": name, **other}
        if is_beside:
            attributes = planted_attributes(attributes, given.keys())
            attributes.append({"key": "error_text", "value": text(f"{CANARY} failed")})
            item |= {"body": text(f"{CANARY} was here"), "severityText": CANARY}
        return self._of_one("logs", {**item, "attributes": attributes}, version)

    def _metric(
        self, name: str, given: Mapping[str, Json], *, is_beside: bool = False, **other: str
    ) -> Body:
        self._now_ns += 1
        attributes = [{"key": key, "value": value} for key, value in given.items()]
        point: Json = {
            "startTimeUnixNano": str(self._now_ns - SECOND_NS),
            "timeUnixNano": str(self._now_ns),
        }
        if is_beside:
            attributes = planted_attributes(attributes, given.keys())
            attributes += [{"key": key, "value": text(CANARY)} for key in NEVER_ON_A_METRIC]
            exemplar = {"asInt": "1", "filteredAttributes": [{"key": CANARY, "value": text(PATH)}]}
            point["exemplars"] = [exemplar]
        point["attributes"] = attributes
        metric: Json = {"name": name, "description": f"{CANARY} counts", "metadata": attributes}
        metric["unit"] = other.get("unit", limits.UNITS.get(name, "1"))
        if name == contract.DURATION_METRIC:
            buckets = {"offset": 1, "bucketCounts": ["1"]}
            point |= {"count": "1", "sum": 3.0, "scale": 0, "positive": buckets}
            metric["exponentialHistogram"] = {"aggregationTemporality": 1, "dataPoints": [point]}
        else:
            point["asInt"] = other.get("value", "1")
            told_sum = {"aggregationTemporality": 1, "isMonotonic": True, "dataPoints": [point]}
            metric["sum"] = told_sum
        return self._of_one("metrics", metric, contract.SCOPE_VERSION)

    def _of_one(self, signal: str, item: Json, version: str) -> Body:
        scope = {
            "name": contract.SCOPE,
            "version": version,
            "attributes": planted_attributes([], frozenset()),
        }
        return Body(signal, {}).of_one(resource(self._assignment_id), scope, [item])


def _right(key: str) -> Json:
    if key in WORDS:
        return text(next(iter(WORDS[key])))
    return {"boolValue": True} if key in FLAGS else {"intValue": "1"}


def _wrong(key: str) -> Iterator[Json]:
    """Yield content in place of a value: as a text, and as what a number cannot be read from."""
    yield text(PATH)
    yield {"intValue": PATH}
    yield {"boolValue": {PATH: CANARY}}
    if key not in NAMES:
        yield text(CANARY)
        yield {"intValue": CANARY}
