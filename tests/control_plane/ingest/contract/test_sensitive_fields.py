import pytest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from guardwave.control_plane.ingest.model.otlp_values import KeyValues
from guardwave.control_plane.ingest.model.records import Transition
from tests.support.otlp.bodies import RESOURCE, TRANSITION, read_one


def transition_of(attributes, **how):
    decoded = read_one(attributes, **how)
    assert decoded.rejected == ()
    (record,) = decoded.records
    return record


@pytest.mark.parametrize(
    ("key", "value"),
    [
        pytest.param("tool.arguments", "ls", id="arguments"),
        pytest.param("toolArguments", "ls", id="in camel case"),
        pytest.param("gen_ai.tool.call.result", "ok", id="result"),
        pytest.param("exception.message", "boom", id="error text"),
        pytest.param("exception.stacktrace", "at", id="stack"),
        pytest.param("file.path", "a.py", id="path"),
        pytest.param("logs.file.path", "a.log", id="a prefix that is not quite a pipeline's"),
        pytest.param("server.address", "db", id="server"),
        pytest.param("user.id", "u", id="user"),
        pytest.param("private_key", "k", id="private key"),
        pytest.param("note", "x" * 129, id="a long string"),
        pytest.param("note", "é" * 65, id="long in bytes"),
        pytest.param("notes", ("x", "y" * 129), id="a long string in an array"),
        pytest.param("note", KeyValues((("user", "u"),)), id="a denied key in a map"),
        pytest.param("agent.guard.error.type", "x" * 129, id="error text as error type"),
    ],
)
def test_a_field_that_must_never_be_sent_is_reported_and_dropped(key, value):
    decoded = read_one({**TRANSITION, key: value})
    assert decoded.dropped_attributes == 1
    (record,) = decoded.records
    assert isinstance(record, Transition)
    assert record.deny_listed == (key,)
    assert "x" * 129 not in repr(record)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        pytest.param("thread.name", "main", id="unknown key"),
        pytest.param("note", "x" * 128, id="a string at the limit"),
        pytest.param("user_agent.original", "qwen", id="a user agent is no user"),
        pytest.param("agent.guard.prompt.turns", 3, id="a known key on another event"),
        pytest.param("notes", (1, None, True), id="an array of no strings"),
    ],
)
def test_any_other_unknown_field_is_dropped_and_counted(key, value):
    decoded = read_one({**TRANSITION, key: value})
    assert decoded.dropped_attributes == 1
    (record,) = decoded.records
    assert isinstance(record, Transition)
    assert record.deny_listed == ()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        pytest.param("log.file.path", "/var/log/agent.log", id="of a log file"),
        pytest.param("log.record.original", "x" * 500, id="the line as it was"),
        pytest.param("code.file.path", "agent.py", id="of the code"),
        pytest.param("code.stacktrace", "at", id="a stack of the code"),
        pytest.param("k8s.pod.labels", KeyValues((("user", "u"),)), id="of Kubernetes"),
        pytest.param("host.arch.path", "x", id="of the machine"),
        pytest.param("process.command_args", ("agent", "y" * 129), id="of the process"),
        pytest.param("container.command_args", ("agent",), id="of the container"),
        pytest.param("cloud.user", "u", id="of the cloud"),
        pytest.param("telemetry.sdk.path", "x", id="of the SDK"),
    ],
)
def test_what_a_pipeline_adds_is_dropped_and_counted_and_no_violation(key, value):
    decoded = read_one({**TRANSITION, key: value})
    assert decoded.dropped_attributes == 1
    (record,) = decoded.records
    assert isinstance(record, Transition)
    assert record.deny_listed == ()
    assert "agent.log" not in repr(record)


def test_several_long_assignment_ids_are_no_sensitive_field():
    ids = "~".join(f"a1.{'x' * 100}.{n}" for n in range(3))
    record = transition_of({**TRANSITION, "agent.guard.assignment.id": ids})
    assert len(record.assignment_ids) == 3
    assert record.deny_listed == ()


def test_the_resource_may_hold_paths_and_long_strings():
    resource = {**RESOURCE, "process.executable.path": "/bin/agent", "process.command": "x" * 500}
    assert transition_of(TRANSITION, resource=resource).deny_listed == ()


def test_a_body_with_content_is_reported():
    assert transition_of(TRANSITION, body=AnyValue(string_value="text")).has_body
    assert not transition_of(TRANSITION, body=AnyValue()).has_body
