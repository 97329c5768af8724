"""Recorded bodies of qwen-code: the cases of its index, and ways to send them again."""

import copy
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any, NamedTuple

import orjson

from guardwave.control_plane.commands.environments import create_environment, create_rollout
from guardwave.control_plane.core.clock import fixed_clock, from_ns
from guardwave.control_plane.core.otlp_request import Encoding
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.stores.evidence.owner_days import OwnerDay
from guardwave.reducer.rollout.assignment import Assignment
from guardwave.reducer.vocabulary import Cohort, Mode, Outcome
from tests.support.hosts import Host, issue_id, pseudonym_in
from tests.support.otlp.bodies import FIXTURES
from tests.support.worlds import ENVIRONMENT, GUARD, OPERATOR, WHY, context_over

CASES = FIXTURES / "qwen-code"
VERSION = "0.24.4"
ITEMS = {
    "logs": ("resourceLogs", "scopeLogs", "logRecords"),
    "traces": ("resourceSpans", "scopeSpans", "spans"),
    "metrics": ("resourceMetrics", "scopeMetrics", "metrics"),
}
GUARD_EVENT = "qwen-code.repeated_tool_failure_guard"
OUTCOMES = {"ok": Outcome.COMPLETED, "cancelled": Outcome.CANCELLED, "error": Outcome.FAILED}

Json = dict[str, Any]
Edit = Callable[[Json], Iterable[Json]]


class Body(NamedTuple):
    """One request: its signal, and its JSON."""

    signal: str
    content: Json

    @property
    def items(self) -> Iterator[tuple[Json, Json, Json]]:
        """Every Resource, scope and item of the body."""
        resources, scopes, items = ITEMS[self.signal]
        for entry in self.content[resources]:
            for scope in entry[scopes]:
                for item in scope.get(items, []):
                    yield entry["resource"], scope["scope"], item

    def of_one(self, resource: Json, scope: Json, items: Sequence[Json]) -> "Body":
        """Return a body with these items alone."""
        resources, scopes, name = ITEMS[self.signal]
        content = {
            resources: [{"resource": resource, scopes: [{"scope": scope, name: list(items)}]}]
        }
        return Body(self.signal, content)

    def singly(self) -> list["Body"]:
        """Return a body for each item, as a collector may cut a request."""
        return [self.of_one(resource, scope, [item]) for resource, scope, item in self.items]


@dataclass(frozen=True)
class Case:
    """One recorded process: its requests in order, and the index's entry with its prompts."""

    name: str
    entry: Json
    bodies: tuple[Body, ...]

    @property
    def mode(self) -> Mode:
        return Mode(self.entry["mode"])

    @property
    def prompts(self) -> list[Json]:
        return list(self.entry["prompts"])

    @property
    def has_spans(self) -> bool:
        return any(body.signal == "traces" for body in self.bodies)

    @property
    def logs(self) -> tuple[Body, ...]:
        return tuple(body for body in self.bodies if body.signal == "logs")

    def edited_logs(self, edit: Edit) -> list[Body]:
        """Return the log bodies, each record of them replaced by what `edit` makes of it."""
        return [edited(body, edit) for body in self.logs]

    @property
    def last_ns(self) -> int:
        return max(int(item["timeUnixNano"]) for body in self.logs for _, _, item in body.items)

    def without(self, signal: str) -> tuple[Body, ...]:
        return tuple(body for body in self.bodies if body.signal != signal)


@cache
def cases() -> Mapping[str, Case]:
    """Return every recorded case by name."""
    index = json.loads((CASES / "index.json").read_text())
    return {
        entry["name"]: Case(
            entry["name"],
            entry,
            tuple(
                Body(body["signal"], json.loads((CASES / body["file"]).read_text()))
                for body in entry["bodies"]
            ),
        )
        for entry in index["fixtures"]
    }


def outcome_of(prompt: Json) -> Outcome:
    """Return the outcome of a prompt by the index."""
    if prompt["loop_type"]:
        return Outcome.GUARD_STOPPED
    return OUTCOMES[prompt["span_turn_status"]]


def attribute(item: Json, key: str) -> Any:
    """Return the value of an item's attribute, None without one."""
    found = [pair["value"] for pair in item["attributes"] if pair["key"] == key]
    return next(iter(found[0].values()), None) if found else None


def changed(item: Json, key: str, value: Json) -> Json:
    """Return an item with an attribute that has another value."""
    kept = [pair for pair in item["attributes"] if pair["key"] != key]
    return {**item, "attributes": [*kept, {"key": key, "value": value}]}


def edited(body: Body, edit: Edit) -> Body:
    """Return a body in which each item is replaced by what `edit` makes of it."""
    resources, scopes, name = ITEMS[body.signal]
    content = copy.deepcopy(body.content)
    for entry in content[resources]:
        for scope in entry[scopes]:
            scope[name] = [new for item in scope.get(name, []) for new in edit(item)]
    return Body(body.signal, content)


def event_of(item: Json) -> str:
    """Return the name of a log record's event."""
    return str(attribute(item, "event.name"))


def of_guard(edit: Callable[[Json], Json | None]) -> Edit:
    """Return an edit of the guard's records alone; None drops one."""

    def apply(item: Json) -> list[Json]:
        if event_of(item) != GUARD_EVENT:
            return [item]
        found = edit(item)
        return [] if found is None else [found]

    return apply


def unwarned(item: Json) -> Json | None:
    """Drop a warning, and let a stop report that none came before it."""
    match attribute(item, "decision"):
        case "warned":
            return None
        case "stopped":
            return changed(item, "phase_before", {"stringValue": "tracking"})
        case _:
            return item


class Receiver:
    """An environment that received no telemetry yet, some minutes after a case was recorded."""

    def __init__(
        self, store: Any, case: Case, *, owner: str = "owner-a", minutes: float = 1
    ) -> None:
        self.now = from_ns(case.last_ns) + timedelta(minutes=minutes)
        self.context: Context = context_over(store, clock=fixed_clock(self.now))
        create_environment(self.context, ENVIRONMENT, requires=None, actor=OPERATOR, reason=WHY)
        create_rollout(
            self.context, ENVIRONMENT, GUARD, version_pin=(VERSION,), actor=OPERATOR, reason=WHY
        )
        self.host = Host(self.context)
        self.ids: Sequence[str] = [self.id_for(owner, mode=case.mode)]

    def id_for(self, owner: str, *, mode: Mode, guard: str = GUARD) -> str:
        """Return an assignment id of an owner."""
        pseudonym = pseudonym_in(self.context, owner)
        return issue_id(self.context, Assignment(guard, pseudonym, 1, Cohort.EVERYONE, mode, 1))

    def resourced(self, body: Body, *, ids: Sequence[str] | None = None) -> Body:
        """Return a body as its process would send it, with assignment ids on its Resource."""
        content = copy.deepcopy(body.content)
        joined = "~".join(self.ids if ids is None else ids)
        for entry in content[ITEMS[body.signal][0]]:
            kept = [pair for pair in entry["resource"]["attributes"] if pair["key"] not in _SET]
            entry["resource"]["attributes"] = [
                *kept,
                _attribute("deployment.environment", ENVIRONMENT),
                *([_attribute("agent.guard.assignment.id", joined)] if joined else []),
            ]
        return Body(body.signal, content)

    def send(self, body: Body, *, ids: Sequence[str] | None = None) -> Any:
        """Send a body as its process would."""
        return self.host.post(
            orjson.dumps(self.resourced(body, ids=ids).content),
            signal=body.signal,
            content_type=Encoding.JSON.value,
            is_chunked=True,
        )

    def send_all(self, bodies: Sequence[Body]) -> None:
        """Send bodies in this order; each must be taken in whole."""
        for body in bodies:
            answer = self.send(body)
            assert (answer.status, answer.body) == (200, b"{}")

    def rows(self, guard: str = GUARD) -> tuple[OwnerDay, ...]:
        held = self.context.evidence
        return held.owner_days(ENVIRONMENT, guard, 1, held.days(ENVIRONMENT))

    def evidence(self) -> tuple[Any, ...]:
        """Everything that counts: owner-days, counters, and what is known of owners."""
        held = self.context.evidence
        days = held.days(ENVIRONMENT)
        return (
            self.rows(),
            {day: held.counters(ENVIRONMENT, day) for day in days},
            self.context.owners.all_facts(ENVIRONMENT),
        )

    def health(self) -> dict[str, int]:
        return self.context.evidence.health(ENVIRONMENT)


_SET = {"deployment.environment", "agent.guard.assignment.id"}


def _attribute(key: str, value: str) -> Json:
    return {"key": key, "value": {"stringValue": value}}
