"""qwen-code's bodies in any order, doubled, split and merged: each event counts once."""

import random
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import orjson
import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from guardwave.reducer.rollout.assignment import Assignment
from guardwave.reducer.vocabulary import Cohort
from tests.support.hosts import gzip_body, issue_id, partial_of, pseudonym_in
from tests.support.otlp.qwen import ITEMS, Body, Receiver, cases

NAMES = sorted(cases())
REQUESTS: Mapping[str, Any] = {
    "logs": ExportLogsServiceRequest,
    "metrics": ExportMetricsServiceRequest,
    "traces": ExportTraceServiceRequest,
}
SPLIT_CASES = ["identity", "shadow-user_cancel", "warn-unsupported_host"]


def whole(store, name: str) -> Any:
    receiver = Receiver(store, cases()[name])
    receiver.send_all(cases()[name].bodies)
    return receiver.evidence()


@pytest.mark.parametrize("name", NAMES)
def test_bodies_in_another_order_and_twice_give_the_same_evidence(store, name):
    expected = whole(store, name)
    store.flushall()
    receiver = Receiver(store, cases()[name])
    bodies = [*cases()[name].bodies, *cases()[name].bodies]
    random.Random(name).shuffle(bodies)
    receiver.send_all(bodies)
    assert ownerless(receiver.evidence()) == ownerless(expected)


def ownerless(evidence: Any) -> Any:
    """Return evidence without the names that each environment makes anew."""
    rows, counters, facts = evidence
    history = [(owner.versions, owner.prompt_days) for owner in facts.values()]
    return [replace(row, owner="") for row in rows], counters, history


@pytest.mark.parametrize("name", SPLIT_CASES)
def test_items_that_come_one_by_one_in_any_order_give_the_same_evidence(store, name):
    expected = whole(store, name)
    store.flushall()
    receiver = Receiver(store, cases()[name])
    pieces = [piece for body in cases()[name].bodies for piece in body.singly()]
    random.Random(7).shuffle(pieces)
    for piece in pieces:
        assert partial_of(receiver.send(piece), piece.signal) == (0, "")
    assert ownerless(receiver.evidence()) == ownerless(expected)


def test_bodies_of_a_process_that_came_in_one_request_give_the_same_evidence(store):
    name = "identity"
    expected = whole(store, name)
    store.flushall()
    receiver = Receiver(store, cases()[name])
    for signal, (resources, _, _) in ITEMS.items():
        entries = [
            entry
            for body in reversed(cases()[name].bodies)
            if body.signal == signal
            for entry in body.content[resources]
        ]
        receiver.send_all([Body(signal, {resources: entries})])
    assert ownerless(receiver.evidence()) == ownerless(expected)


@pytest.mark.parametrize("name", SPLIT_CASES)
def test_bodies_that_a_collector_made_protobuf_give_the_same_evidence(store, name):
    expected = whole(store, name)
    store.flushall()
    receiver = Receiver(store, cases()[name])
    for body in cases()[name].bodies:
        resourced = receiver.resourced(body)
        answer = receiver.host.post(
            gzip_body(as_protobuf(resourced)), signal=body.signal, content_encoding="gzip"
        )
        assert (answer.status, answer.body) == (200, b"")
    assert ownerless(receiver.evidence()) == ownerless(expected)
    receiver.send_all(cases()[name].bodies)
    assert ownerless(receiver.evidence()) == ownerless(expected)


def as_protobuf(body: Body) -> bytes:
    """Return a body as a collector would encode it again, whose ids are bytes."""

    def with_bytes(value: Any) -> Any:
        match value:
            case dict():
                return {key: _id(key, item) or with_bytes(item) for key, item in value.items()}
            case list():
                return [with_bytes(item) for item in value]
            case _:
                return value

    request = REQUESTS[body.signal]()
    ParseDict(with_bytes(body.content), request, ignore_unknown_fields=True)
    return bytes(request.SerializeToString())


def _id(key: str, value: Any) -> str:
    if key not in {"traceId", "spanId", "parentSpanId"}:
        return ""
    return b64encode(bytes.fromhex(value)).decode()


def test_a_prompt_under_two_guards_counts_once_for_each(store):
    case = cases()["identity"]
    receiver = Receiver(store, case)
    other = Assignment(
        "duplicate_call_id",
        pseudonym_in(receiver.context, "owner-a"),
        1,
        Cohort.EVERYONE,
        case.mode,
        1,
    )
    receiver.ids = [issue_id(receiver.context, other), *receiver.ids]
    receiver.send_all(case.bodies)
    (mine,), (others,) = receiver.rows(), receiver.rows("duplicate_call_id")
    assert mine.would_stopped == 1
    assert others.would_stopped == 0
    for row in (mine, others):
        assert (row.started, row.ended, row.covered, row.completed) == (2, 2, 2, 2)
        assert row.tokens == sum(prompt["total_tokens"] for prompt in case.prompts)
        assert row.turns == sum(prompt["turnCount"] for prompt in case.prompts)


@pytest.mark.parametrize(
    "name", [name for name in NAMES if cases()[name].entry["scenario"] == "repeat_fail"]
)
def test_without_an_assignment_id_a_case_is_volume_only(store, name):
    receiver = Receiver(store, cases()[name])
    for body in cases()[name].bodies:
        assert partial_of(receiver.send(body, ids=()), body.signal) == (0, "")
    assert receiver.rows() == ()
    assert any(receiver.evidence()[1].values())


def test_a_body_without_environment_is_quarantined(store):
    case = cases()["no_resource"]
    receiver = Receiver(store, case)
    for body in case.bodies:
        if body.signal != "logs":
            continue
        answer = receiver.host.post(
            orjson.dumps(body.content), content_type="application/json", is_chunked=True
        )
        rejected, message = partial_of(answer)
        assert rejected == len(list(body.items))
        assert "deployment.environment.name" in message
    assert receiver.rows() == ()
