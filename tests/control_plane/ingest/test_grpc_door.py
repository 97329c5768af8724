"""OTLP over gRPC: the core of OTLP/HTTP, with the errors of gRPC."""

import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import grpc
import pytest
from google.rpc.error_details_pb2 import BadRequest, RetryInfo  # type: ignore[import-untyped]  # ships no types
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]  # ships no types
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse

from guardwave.control_plane.core.errors import StartError
from guardwave.control_plane.core.otlp_request import Limits
from guardwave.control_plane.core.settings import Settings
from guardwave.control_plane.ingest import grpc_door
from guardwave.control_plane.ingest.grpc_door import RETRY_INFO, STATUS_DETAILS
from guardwave.control_plane.rollouts.access import create_token
from guardwave.control_plane.server.grpc import THREADS, listen, run
from guardwave.control_plane.stores.server.clients import connect
from guardwave.control_plane.stores.server.embedded import EmbeddedServer
from guardwave.control_plane.stores.server.function_library import load_functions
from guardwave.reducer.vocabulary import Mode, Role
from tests.support.hosts import Host, Prompt, assignment_for, logs
from tests.support.web_workers import PATIENCE_S, free_port, until
from tests.support.worlds import ENVIRONMENT, GUARD, NOW, context_over, world_in

AT = NOW - timedelta(hours=2)
LOGS, METRICS, TRACES = (
    f"/opentelemetry.proto.collector.{signal}.v1.{service}/Export"
    for signal, service in [
        ("logs", "LogsService"),
        ("metrics", "MetricsService"),
        ("trace", "TraceService"),
    ]
)
LIMIT = 64 * 1024


class Caller:
    """A gRPC client that sends bytes as they are."""

    def __init__(self, host: Host, channel: grpc.Channel) -> None:
        self.host = host
        self.channel = channel

    def call(
        self,
        body: bytes,
        *,
        method: str = LOGS,
        compression: grpc.Compression = grpc.Compression.NoCompression,
        authorization: str | None = "",
    ) -> bytes:
        bearer = f"Bearer {self.host.token}" if authorization == "" else authorization
        metadata = () if bearer is None else (("authorization", bearer),)
        export: grpc.UnaryUnaryMultiCallable[bytes, bytes] = self.channel.unary_unary(method)
        answer: bytes = export(body, metadata=metadata, compression=compression, timeout=PATIENCE_S)
        return answer

    def error(self, body: bytes, **named) -> grpc.RpcError:
        with pytest.raises(grpc.RpcError) as error:
            self.call(body, **named)
        return error.value


def before(host: Host) -> Iterator[Caller]:
    limits = Limits(wire_bytes=LIMIT, inflated_bytes=LIMIT)
    server, port = listen(host.door, host="127.0.0.1", port=0, limits=limits)
    try:
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield Caller(host, channel)
    finally:
        server.stop(0).wait()


@pytest.fixture
def caller(context):
    yield from before(Host(context))


@pytest.fixture
def body_of_one(context):
    prompt = Prompt("p-1", [assignment_for(context, "owner-1")[1]], AT)
    return logs(prompt.events()).SerializeToString()


def started(context) -> int:
    rows = context.evidence.owner_days(ENVIRONMENT, GUARD, 1, [NOW.date()])
    return sum(row.started for row in rows)


def trailing_of(error: grpc.RpcError) -> dict[str, str | bytes]:
    """Return the metadata of an error."""
    return {entry.key: entry.value for entry in error.trailing_metadata() or ()}


def status_in(error: grpc.RpcError) -> Status:
    """Return the google.rpc.Status of an error."""
    return Status.FromString(trailing_of(error)[STATUS_DETAILS])


@pytest.mark.parametrize("method", [LOGS, METRICS, TRACES])
def test_an_empty_message_succeeds_with_an_empty_answer(caller, method):
    assert caller.call(b"", method=method) == b""


@pytest.mark.parametrize("compression", list(grpc.Compression))
def test_messages_are_taken_in_however_they_are_compressed_and_once(
    caller, context, body_of_one, compression
):
    for _ in range(2):
        assert caller.call(body_of_one, compression=compression) == b""
    assert started(context) == 1


def test_a_partial_success_is_reported_as_over_http(caller, context):
    late = Prompt("p-1", [assignment_for(context, "owner-1")[1]], NOW - timedelta(days=3))
    body = logs([*late.events(), Prompt("p-2", late.ids, AT).start()]).SerializeToString()
    answer = caller.call(body)
    assert answer == caller.host.post(body).body
    partial = ExportLogsServiceResponse.FromString(answer).partial_success
    assert partial.rejected_log_records == 2
    assert partial.error_message.startswith("late")


def test_a_method_that_is_not_of_otlp_is_unimplemented(caller):
    error = caller.error(b"", method="/opentelemetry.proto.collector.logs.v1.LogsService/Import")
    assert error.code() is grpc.StatusCode.UNIMPLEMENTED


def test_bytes_that_cannot_be_decoded_are_an_invalid_argument(caller):
    error = caller.error(b"\x0a\xff")
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    (detail,) = status_in(error).details
    assert detail.Is(BadRequest.DESCRIPTOR)
    assert RETRY_INFO not in trailing_of(error)


@pytest.mark.parametrize(
    ("authorization", "code"),
    [
        pytest.param(None, grpc.StatusCode.UNAUTHENTICATED, id="no token"),
        pytest.param("Bearer gw_abc_def", grpc.StatusCode.UNAUTHENTICATED, id="an unknown token"),
        pytest.param("Basic abc", grpc.StatusCode.UNAUTHENTICATED, id="another scheme"),
    ],
)
def test_a_call_without_a_good_token_is_unauthenticated(caller, body_of_one, authorization, code):
    error = caller.error(body_of_one, authorization=authorization)
    assert error.code() is code
    assert "role ingest" in error.details()


def test_a_token_of_another_role_may_not_send(caller, context):
    token = create_token(context, role=Role.VIEWER, environment=ENVIRONMENT)
    error = caller.error(b"", authorization=f"Bearer {token}")
    assert error.code() is grpc.StatusCode.PERMISSION_DENIED


@pytest.mark.parametrize(
    ("body", "compression"),
    [
        pytest.param(bytes(LIMIT + 1), grpc.Compression.NoCompression, id="as sent"),
        pytest.param(bytes(64 * LIMIT), grpc.Compression.Gzip, id="when inflated, gzip"),
        pytest.param(bytes(64 * LIMIT), grpc.Compression.Deflate, id="when inflated, deflate"),
    ],
)
def test_a_message_over_the_limit_exhausts_it_and_is_not_to_be_sent_again(
    caller, body, compression
):
    error = caller.error(body, compression=compression)
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert not {RETRY_INFO, STATUS_DETAILS} & trailing_of(error).keys()


def test_the_process_that_listens_has_the_limits_of_its_settings(settings, context, body_of_one):
    stop = threading.Event()
    limited = replace(
        settings, grpc_port=free_port(), otlp_limits=Limits(wire_bytes=1, inflated_bytes=LIMIT)
    )
    with ThreadPoolExecutor(1) as threads:
        serving = threads.submit(run, limited, stop)
        try:
            with grpc.insecure_channel(f"127.0.0.1:{limited.grpc_port}") as channel:
                caller = Caller(Host(context), channel)
                grpc.channel_ready_future(channel).result(PATIENCE_S)
                # gRPC has one limit: bytes as sent have no limit of their own.
                assert caller.call(body_of_one) == b""
                error = caller.error(bytes(LIMIT + 1))
                assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        finally:
            stop.set()
        serving.result(PATIENCE_S)


def test_too_many_records_exhaust_the_limit_and_are_not_to_be_sent_again(context):
    host = Host(context, limits=Limits(records=3))
    prompts = [
        Prompt(f"p-{number}", [assignment_for(context, "owner-1")[1]], AT) for number in (1, 2)
    ]
    body = logs([event for prompt in prompts for event in prompt.events()]).SerializeToString()
    for caller in before(host):
        error = caller.error(body)
        assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert not status_in(error).details
    assert started(context) == 0


def test_a_store_that_is_away_is_unavailable_for_a_second(body_of_one, context):
    with (
        tempfile.TemporaryDirectory(prefix="gw-") as directory,
        EmbeddedServer.start(Path(directory)) as server,
        connect(Settings(data_dir=server.data_dir)) as client,
    ):
        load_functions(client)
        world = world_in(context_over(client), Mode.SHADOW)
        for caller in before(Host(world.context)):
            one = Prompt("p-1", [assignment_for(world.context, "owner-1")[1]], AT)
            body = logs(one.events()).SerializeToString()
            server.kill()
            error = caller.error(body)
            assert error.code() is grpc.StatusCode.UNAVAILABLE
            (detail,) = status_in(error).details
            retry_info = RetryInfo()
            assert detail.Unpack(retry_info)
            assert retry_info.retry_delay.ToMilliseconds() == 1000
            assert trailing_of(error)[RETRY_INFO] == retry_info.SerializeToString()

            server.ensure_running()
            assert caller.call(body) == b""
            assert started(world.context) == 1


def test_a_port_in_use_is_reported_with_its_setting(context):
    host = Host(context)
    server, port = listen(host.door, host="127.0.0.1", port=0, limits=Limits())
    try:
        with pytest.raises(StartError, match="GUARDWAVE_GRPC_PORT"):
            listen(host.door, host="127.0.0.1", port=port, limits=Limits())
    finally:
        server.stop(0).wait()


def is_taken(caller, body):
    try:
        return caller.call(body) == b""
    except grpc.RpcError as error:
        if error.code() is not grpc.StatusCode.UNAVAILABLE:
            raise
        return False


def test_senders_that_never_finish_do_not_keep_the_threads(context, body_of_one, monkeypatch):
    monkeypatch.setattr(grpc_door, "CONNECTION_AGE_S", 0.2)
    monkeypatch.setattr(grpc_door, "CONNECTION_GRACE_S", 1.5)
    over = threading.Event()

    def nothing() -> Iterator[bytes]:
        over.wait()
        yield from ()

    for caller in before(Host(context)):
        stuck: grpc.StreamUnaryMultiCallable[bytes, bytes] = caller.channel.stream_unary(LOGS)
        calls = [stuck.future(nothing()) for _ in range(THREADS)]
        assert all(call.exception(timeout=PATIENCE_S) is not None for call in calls)
        # Connections are as short-lived as those calls: whose is closed under it asks again.
        assert until(lambda caller=caller: is_taken(caller, body_of_one))
        over.set()
    assert started(context) == 1
