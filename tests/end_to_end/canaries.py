"""Canaries: telemetry with content planted wherever a host or a Collector could put some."""

from collections.abc import Set as AbstractSet
from typing import Any

from guardwave.control_plane.ingest.dialects import qwen_code_vocabulary as words
from guardwave.control_plane.ingest.dialects.qwen_code_logs import EVENTS
from tests.support.otlp.qwen import ITEMS, VERSION, Body, Case, attribute

CANARY = "zebrafinch"
MARK = CANARY.encode()
TIMES = ("timeUnixNano", "observedTimeUnixNano", "startTimeUnixNano", "endTimeUnixNano")
# Ids are read, and only digests of them are kept.
IDS = frozenset(
    {words.SESSION_ID, words.PROMPT_ID, words.SPAN_PROMPT_ID, words.RESPONSE_ID, words.CALL_ID}
)
READ_OF_SPANS = frozenset({words.SPAN_STATUS, words.SPAN_DURATION_MS})

Json = dict[str, Any]


def text(value: str) -> Json:
    return {"stringValue": value}


def planted_attributes(attributes: list[Json], read: AbstractSet[str]) -> list[Json]:
    """Return attributes of which all that is not read is content, and some more of it."""
    return [
        *(_planted(pair, read) for pair in attributes),
        {"key": f"{CANARY}.key", "value": text("x")},
        {"key": "note", "value": text(f"{CANARY} said so")},
        {
            "key": "nested",
            "value": {
                "kvlistValue": {
                    "values": [{"key": CANARY, "value": {"arrayValue": {"values": [text(CANARY)]}}}]
                }
            },
        },
    ]


def _planted(pair: Json, read: AbstractSet[str]) -> Json:
    key, value = pair["key"], pair["value"]
    if key in IDS and "stringValue" in value:
        return {"key": key, "value": text(f"{CANARY}-{value['stringValue']}")}
    return pair if key in read else {"key": key, "value": text(f"/home/{CANARY}/notes.txt")}


def planted(body: Body, *, shift_ns: int, assignment_id: str) -> Body:
    """Return a body of qwen-code, moved in time and full of content, under an assignment id."""
    resources, scopes, items = ITEMS[body.signal]
    batches = []
    for entry in body.content[resources]:
        held = [
            {
                "scope": {**scope["scope"], "attributes": planted_attributes([], frozenset())},
                items: [_item(body.signal, item, shift_ns) for item in scope.get(items, [])],
            }
            for scope in entry[scopes]
        ]
        batches.append({"resource": resource(assignment_id), scopes: held})
    return Body(body.signal, {resources: batches})


def resource(assignment_id: str) -> Json:
    """Return a Resource of which all that is not known of qwen-code is content."""
    known = {
        "service.name": "qwen-code",
        "service.version": VERSION,
        "deployment.environment": "internal",
        "agent.guard.assignment.id": assignment_id,
    }
    content = (
        "host.name",
        "user.id",
        "process.command_line",
        "process.executable.path",
        "service.instance.id",
        "service.namespace",
    )
    pairs = [{"key": key, "value": text(value)} for key, value in known.items()]
    pairs += [{"key": key, "value": text(f"{CANARY} --token {CANARY}")} for key in content]
    return {"attributes": planted_attributes(pairs, known.keys() | set(content))}


def _item(signal: str, item: Json, shift_ns: int) -> Json:
    moved = {
        key: str(int(value) + shift_ns) if key in TIMES else value for key, value in item.items()
    }
    match signal:
        case "logs":
            event = EVENTS.get(str(attribute(item, words.EVENT_NAME)))
            read = frozenset({words.EVENT_NAME}) if event is None else event.allowed
            attributes = planted_attributes(item["attributes"], read | {words.EVENT_NAME})
            return {**moved, "attributes": attributes, "body": text(f"{CANARY} ran rm -rf")}
        case "traces":
            return _span(moved)
        case _:
            return _metric(moved, shift_ns)


def _span(span: Json) -> Json:
    name = span["name"] if span["name"] == words.SPAN else f"{span['name']} {CANARY}"
    event = {"name": CANARY, "attributes": planted_attributes([], frozenset())}
    link = {"traceId": span["traceId"], "spanId": span["spanId"], "traceState": f"a={CANARY}"}
    return {
        **span,
        "name": name,
        "attributes": planted_attributes(span["attributes"], READ_OF_SPANS),
        "status": {**span["status"], "message": f"{CANARY} could not be read"},
        "events": [event],
        "links": [link],
        "traceState": f"a={CANARY}",
    }


def _metric(metric: Json, shift_ns: int) -> Json:
    kind = next(key for key in metric if isinstance(metric[key], dict))
    points = [_point(metric["name"], point, shift_ns) for point in metric[kind]["dataPoints"]]
    described = {**metric, "description": f"{CANARY} counts"}
    return {**described, kind: {**metric[kind], "dataPoints": points}}


def _point(metric: str, point: Json, shift_ns: int) -> Json:
    moved = {
        key: str(int(value) + shift_ns) if key in TIMES else value for key, value in point.items()
    }
    is_of_guard = metric == words.GUARD_COUNTER
    read = frozenset(words.GUARD_WORDS) if is_of_guard else frozenset({words.EXECUTION_STATUS})
    exemplar = {"asInt": "1", "filteredAttributes": [{"key": CANARY, "value": text(CANARY)}]}
    attributes = planted_attributes(point.get("attributes", []), read)
    return {**moved, "attributes": attributes, "exemplars": [exemplar]}


def newest_ns(case: Case) -> int:
    """Return the newest time of any item of a case."""
    return max(
        (
            int(item[key])
            for body in case.bodies
            if body.signal != "metrics"
            for _, _, item in body.items
            for key in TIMES
            if key in item
        ),
    )
