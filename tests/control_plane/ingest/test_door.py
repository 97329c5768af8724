"""The OTLP door: every error in the request's own encoding, and nothing lost when it is away."""

import gzip
import logging
import os
import signal
import zlib
from datetime import timedelta

import orjson
import pytest
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]  # ships no types
from redis import Redis

from guardwave.control_plane.core.otlp_request import Encoding, Limits, OtlpAnswer, signal_of
from guardwave.control_plane.core.settings import Settings
from guardwave.control_plane.rollouts.access import create_token, revoke_token
from guardwave.control_plane.stores.server.clients import connect
from guardwave.control_plane.stores.server.embedded import EmbeddedServer
from guardwave.control_plane.stores.server.function_library import load_functions
from guardwave.reducer.vocabulary import Mode, Role
from tests.support.hosts import (
    Host,
    Prompt,
    assignment_for,
    encode_request,
    gzip_body,
    logs,
    partial_of,
)
from tests.support.worlds import ENVIRONMENT, GUARD, NOW, context_over, world_in

TODAY = NOW.date()
AT = NOW - timedelta(hours=2)
BOTH = pytest.mark.parametrize("encoding", list(Encoding))


@pytest.fixture
def request_of_one(context):
    return logs(Prompt("p-1", [assignment_for(context, "owner-1")[1]], AT).events())


def started(context) -> int:
    rows = context.evidence.owner_days(ENVIRONMENT, GUARD, 1, [TODAY])
    return sum(row.started for row in rows)


def status_of(answer: OtlpAnswer) -> tuple[int, str]:
    """Return code and message of the google.rpc.Status in an answer, read in its own encoding."""
    if answer.content_type == Encoding.JSON.value:
        error = orjson.loads(answer.body)
        return error["code"], error["message"]
    assert answer.content_type == Encoding.PROTOBUF.value
    error = Status.FromString(answer.body)
    return error.code, error.message


@BOTH
@pytest.mark.parametrize("what", ["logs", "metrics", "traces"])
def test_an_empty_request_succeeds_with_an_empty_answer(host, encoding, what):
    body = b"{}" if encoding is Encoding.JSON else b""
    answer = host.post(body, signal=what, content_type=encoding.value)
    assert (answer.status, answer.body, answer.content_type) == (200, body, encoding.value)


@BOTH
def test_spans_that_no_dialect_reads_are_accepted_and_only_counted(host, encoding):
    bodies = {
        Encoding.JSON: b'{"resourceSpans": [{"scopeSpans": [{"scope": {"name": "http"}, '
        b'"spans": [{}]}]}]}',
        # resource_spans { scope_spans { scope { name: "http" } spans {} } }
        Encoding.PROTOBUF: bytes.fromhex("0a0c120a0a060a04687474701200"),
    }
    answer = host.post(bodies[encoding], signal="traces", content_type=encoding.value)
    assert answer.status == 200
    assert host.context.evidence.health(host.environment)["ignored:other_scope"] == 1


@BOTH
@pytest.mark.parametrize("what", ["logs", "metrics", "traces"])
def test_a_body_that_cannot_be_decoded_is_bad_data(context, host, encoding, what):
    answer = host.post(b"\xff\xff{[", signal=what, content_type=encoding.value)
    code, message = status_of(answer)
    assert (answer.status, code) == (400, 3)
    assert message


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"[]", id="a list"),
        pytest.param(b'{"resourceLogs": {}}', id="an object for a list"),
        pytest.param(b'{"resourceLogs": [1]}', id="a number for an object"),
        pytest.param(b'{"resourceLogs": [{"scopeLogs": "x"}]}', id="a string for a list"),
    ],
)
def test_json_of_wrong_types_is_bad_data(host, body):
    answer = host.post(body, content_type="application/json")
    assert answer.status == 400
    assert status_of(answer)[0] == 3


@BOTH
def test_a_body_over_the_wire_limit_is_too_large(context, encoding):
    host = Host(context, limits=Limits(wire_bytes=64, inflated_bytes=1024))
    for is_chunked in (False, True):
        answer = host.post(b" " * 65, content_type=encoding.value, is_chunked=is_chunked)
        assert answer.status == 413
        assert "64 bytes as sent" in status_of(answer)[1]


@BOTH
def test_a_body_over_the_limit_once_inflated_is_too_large(context, encoding):
    host = Host(context, limits=Limits(wire_bytes=4096, inflated_bytes=1024))
    answer = host.post(gzip_body(b" " * 2000), content_type=encoding.value, content_encoding="gzip")
    assert answer.status == 413
    assert "1024 bytes when decompressed" in status_of(answer)[1]


@BOTH
def test_too_many_records_are_too_large_and_nothing_is_taken_in(context, encoding):
    host = Host(context, limits=Limits(records=2))
    prompts = [Prompt(f"p-{n}", [assignment_for(context, "owner-1")[1]], AT) for n in range(2)]
    events = [event for prompt in prompts for event in prompt.events()]
    answer = host.post(encode_request(logs(events), encoding), content_type=encoding.value)
    assert answer.status == 413
    assert started(context) == 0


@BOTH
@pytest.mark.parametrize(
    ("coding", "compress"),
    [
        pytest.param("gzip", gzip_body, id="gzip"),
        pytest.param(
            "gzip", lambda body: gzip_body(body[:9]) + gzip_body(body[9:]), id="two members"
        ),
        pytest.param("deflate", zlib.compress, id="deflate"),
        pytest.param("identity", bytes, id="identity"),
    ],
)
@pytest.mark.parametrize("is_chunked", [False, True], ids=["with a length", "chunked"])
def test_every_compression_of_a_request_counts(
    context, host, request_of_one, encoding, coding, compress, is_chunked
):
    answer = host.post(
        compress(encode_request(request_of_one, encoding)),
        content_type=encoding.value,
        content_encoding=coding,
        is_chunked=is_chunked,
    )
    assert partial_of(answer) == (0, "")
    assert started(context) == 1


@pytest.mark.parametrize(
    ("content_type", "encoding"),
    [
        ("application/json; charset=utf-8", Encoding.JSON),
        ("Application/X-Protobuf", Encoding.PROTOBUF),
        ("application/protobuf", Encoding.PROTOBUF),
    ],
)
def test_content_types_are_read_with_parameters_and_in_any_case(
    context, host, request_of_one, content_type, encoding
):
    answer = host.post(encode_request(request_of_one, encoding), content_type=content_type)
    assert (answer.status, answer.content_type) == (200, encoding.value)
    assert started(context) == 1


@pytest.mark.parametrize("content_type", ["text/plain", "application/grpc", "", None])
def test_another_content_type_is_unsupported(host, content_type):
    answer = host.post(b"{}", content_type=content_type)
    assert answer.status == 415
    assert "application/x-protobuf or application/json" in status_of(answer)[1]


@BOTH
def test_another_content_encoding_is_unsupported(host, encoding):
    answer = host.post(b"", content_type=encoding.value, content_encoding="zstd")
    assert answer.status == 415
    assert "zstd" in status_of(answer)[1]


@BOTH
def test_a_body_that_is_not_of_its_content_encoding_is_bad_data(host, encoding):
    body = gzip.compress(b"{}")[:-4]
    for broken in (b"plain", body):
        answer = host.post(broken, content_type=encoding.value, content_encoding="gzip")
        assert answer.status == 400


@BOTH
@pytest.mark.parametrize(
    "authorization",
    [
        pytest.param(None, id="none"),
        pytest.param("Basic dXNlcjpwYXNz", id="another scheme"),
        pytest.param("Bearer nonsense", id="no token of ours"),
        pytest.param(f"Bearer gw_{'a' * 12}_{'b' * 43}", id="a token that nobody made"),
    ],
)
def test_without_a_good_token_nothing_is_taken_in(
    context, host, request_of_one, encoding, authorization
):
    answer = host.post(
        encode_request(request_of_one, encoding),
        content_type=encoding.value,
        authorization=authorization,
    )
    assert (answer.status, status_of(answer)[0]) == (401, 16)
    assert dict(answer.headers)["WWW-Authenticate"].startswith("Bearer")
    assert started(context) == 0


@BOTH
@pytest.mark.parametrize("role", [role for role in Role if role is not Role.INGEST])
def test_a_token_of_another_role_is_rejected(context, host, request_of_one, encoding, role):
    place = None if role is Role.ADMIN else ENVIRONMENT
    token = create_token(context, role=role, environment=place)
    answer = host.post(
        encode_request(request_of_one, encoding),
        content_type=encoding.value,
        authorization=f"Bearer {token}",
    )
    assert (answer.status, status_of(answer)[0]) == (403, 7)
    assert "role ingest" in status_of(answer)[1]
    assert started(context) == 0


def test_a_revoked_token_is_rejected(context, host, request_of_one):
    revoke_token(context, host.token.split("_")[1])
    assert host.send(request_of_one).status == 401


@BOTH
def test_a_token_of_an_environment_that_does_not_exist_is_reported(context, encoding):
    host = Host(context, environment="later")
    prompt = Prompt("p-1", [], AT)
    answer = host.post(
        encode_request(logs(prompt.events(), environment="later"), encoding),
        content_type=encoding.value,
    )
    assert (answer.status, status_of(answer)[0]) == (404, 5)
    assert "PUT /api/v1/environments/later" in status_of(answer)[1]
    assert context.evidence.days("later") == ()


@BOTH
def test_a_fault_of_ours_is_a_status_too_and_is_logged(store, context, caplog, encoding):
    host = Host(context)
    # A key of another type, as a foreign program that shares the store might leave it.
    key = f"cells:{{{ENVIRONMENT}:0}}"
    store.set(key, "not a hash")
    request = logs(Prompt("p-1", [assignment_for(context, "owner-1")[1]], AT).events())
    answer = host.send(request, encoding)
    assert (answer.status, status_of(answer)[0]) == (500, 13)
    assert "WRONGTYPE" not in status_of(answer)[1]
    assert "the request was not taken in" in caplog.text
    assert "ResponseError" in caplog.text
    # a message may repeat what was sent
    assert "WRONGTYPE" not in caplog.text
    store.delete(key)
    assert host.send(request, encoding).status == 200
    assert started(context) == 1


def test_a_value_in_an_error_goes_to_the_sender_alone(context, caplog):
    host = Host(context)
    end = Prompt("p-1", [assignment_for(context, "owner-1")[1]], AT, outcome="zebrafinch").end()
    with caplog.at_level(logging.DEBUG):
        answer = host.send(logs([end]), Encoding.JSON)
    assert b"is 'zebrafinch', not one of" in answer.body
    assert "1 items rejected: bad_attribute" in caplog.text
    assert "zebrafinch" not in caplog.text


@pytest.fixture
def mortal(tmp_path_factory):
    """A store of its own that a test may freeze and kill."""
    with EmbeddedServer.start(tmp_path_factory.mktemp("gw")) as server:
        yield server


def over(server: EmbeddedServer) -> tuple[Redis, Host]:
    client = connect(Settings(data_dir=server.data_dir))
    load_functions(client)
    context = world_in(context_over(client), Mode.SHADOW).context
    return client, Host(context)


@BOTH
def test_while_the_store_is_killed_the_answer_is_503_and_the_retry_succeeds(mortal, encoding):
    client, host = over(mortal)
    with client:
        prompts = [
            Prompt(f"p-{n}", [assignment_for(host.context, "owner-1")[1]], AT) for n in (1, 2)
        ]
        assert host.send_prompts(prompts[0]).status == 200
        mortal.kill()
        request = logs(prompts[1].events())
        answer = host.send(request, encoding)
        assert (answer.status, status_of(answer)[0]) == (503, 14)
        assert ("Retry-After", "1") in answer.headers
        mortal.ensure_running()
        assert started(host.context) == 1
        assert partial_of(host.send(request, encoding)) == (0, "")
        assert started(host.context) == 2


def test_while_the_store_hangs_the_answer_is_503_and_the_retry_counts_once(mortal):
    client, host = over(mortal)
    with client:
        request = logs(Prompt("p-1", [assignment_for(host.context, "owner-1")[1]], AT).events())
        host.send(logs([]))
        assert mortal.pid is not None
        os.kill(mortal.pid, signal.SIGSTOP)
        try:
            answer = host.send(request)
        finally:
            os.kill(mortal.pid, signal.SIGCONT)
        assert answer.status == 503
        # Whether the frozen call was carried out after all does not show in the sums.
        assert partial_of(host.send(request)) == (0, "")
        assert started(host.context) == 1


@pytest.mark.parametrize(
    ("path", "prefix", "found"),
    [
        ("/v1/logs", "", "logs"),
        ("/v1/metrics/", "", "metrics"),
        ("/otel/v1/traces", "/otel", "traces"),
        ("/v1/logs", "/otel", "logs"),
        ("/v1/profiles", "", None),
        ("/v2/logs", "", None),
        ("/v1/logs/x", "", None),
    ],
)
def test_the_path_names_the_signal(path, prefix, found):
    assert signal_of(path, prefix) == found
