"""`guardwave serve --grpc`: one command, both doors, and no process left after Ctrl-C."""

import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from tests.end_to_end.serving import Served, polls
from tests.support.web_workers import PATIENCE_S, free_port

ENVIRONMENT = "internal"
EXPORT = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"

pytestmark = pytest.mark.xdist_group("served")


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with tempfile.TemporaryDirectory(prefix="gw-") as directory:
        variables = {"GUARDWAVE_GRPC_PORT": str(free_port()), "GUARDWAVE_WORKERS": "1"}
        server = Served(Path(directory), options=("--grpc",), variables=variables)
        try:
            server.start()
            yield server
        finally:
            server.end()


def test_grpc_is_served_beside_http_and_ends_with_it(served):
    port = served.variables["GUARDWAVE_GRPC_PORT"]
    line = f"guardwave takes OTLP over gRPC on http://127.0.0.1:{port}\n"
    assert any(line in served.log for _ in polls()), served.log
    token = served.token("--role", "ingest", "--environment", ENVIRONMENT)
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        export: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(EXPORT)
        with pytest.raises(grpc.RpcError) as refused:
            export(b"", timeout=PATIENCE_S)
        assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
        with pytest.raises(grpc.RpcError) as refused:
            export(b"", metadata=(("authorization", f"Bearer {token}"),), timeout=PATIENCE_S)
        assert refused.value.code() is grpc.StatusCode.NOT_FOUND
    assert served.interrupt() == 0
    assert served.processes() == ()


def test_a_grpc_port_that_is_taken_stops_the_start_with_its_setting():
    with (
        tempfile.TemporaryDirectory(prefix="gw-") as directory,
        socket.create_server(("127.0.0.1", 0)) as taken,
    ):
        port = str(taken.getsockname()[1])
        server = Served(
            Path(directory), options=("--grpc",), variables={"GUARDWAVE_GRPC_PORT": port}
        )
        with pytest.raises(AssertionError, match="GUARDWAVE_GRPC_PORT"):
            server.start()
