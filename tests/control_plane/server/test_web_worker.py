"""Web worker: senders that are slow or do not speak HTTP."""

import contextlib
import gzip
import select
import socket
import subprocess
import sys
from collections.abc import Mapping
from urllib.parse import urlsplit

import pytest
import redis
import urllib3

from guardwave.control_plane.rollouts.access import create_token
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.stores.environments import EnvironmentStore
from guardwave.reducer.vocabulary import Mode, Role
from tests.support.hosts import Host
from tests.support.web_workers import PATIENCE_S, free_port, is_ready, until, web_worker
from tests.support.worlds import ENVIRONMENT, GUARD, VERSION, context_over, world_in

CANARY = "CANARYOWNER77"


@pytest.fixture(autouse=True)
def served_store(store: redis.Redis) -> None:
    """A worker gets ready only on a store that somebody has served from."""
    EnvironmentStore(store).store_id()


def connect(address: str) -> socket.socket:
    place = urlsplit(address)
    return socket.create_connection((place.hostname, place.port), timeout=PATIENCE_S)


def answer_to(address: str, request: bytes) -> str:
    with connect(address) as client:
        client.sendall(request)
        return until_closed(client)


def until_closed(client: socket.socket) -> str:
    parts = []
    with contextlib.suppress(ConnectionResetError):
        while part := client.recv(4096):
            parts.append(part)
    return b"".join(parts).decode()


def test_forty_senders_of_half_a_header_do_not_stop_the_others(store_server):
    with web_worker(store_server, GUARDWAVE_REQUEST_SECONDS="1") as address:
        slow = [connect(address) for _ in range(40)]
        for client in slow:
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ")

        assert until(lambda: is_ready(address))

        for client in slow:
            client.close()


SLOW: Mapping[str, bytes] = {
    "nothing": b"",
    "one byte": b"P",
    "half a head": b"GET /readyz HTTP/1.1\r\nHost: x\r\nX-Slow: ",
    "half a body without a token": (
        b"POST /v1/logs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Content-Length: 1000\r\n\r\n{"
    ),
    "half a body of the API": (
        b"POST /api/v1/environments/e/owners HTTP/1.1\r\nHost: x\r\n"
        b"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
    ),
}


CHUNKED, OF_A_LENGTH = "Transfer-Encoding: chunked", "Content-Length: 1000"


def half_a_body(path: str, token: str, framing: str = CHUNKED) -> bytes:
    """Return a request of a sender that may send, up to the middle of its body."""
    begun = "1\r\n{\r\n" if framing == CHUNKED else "{"
    return (
        f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\n{framing}\r\n\r\n{begun}"
    ).encode()


def tokens(context: Context) -> Mapping[str, str]:
    """Return, for an address of telemetry and one of the API, a token that may post there."""
    operator = create_token(context, role=Role.OPERATOR, environment=ENVIRONMENT, is_trusted=False)
    return {
        "/v1/logs": Host(context).token,
        f"/api/v1/environments/{ENVIRONMENT}/owners": operator,
    }


def test_two_hundred_slow_senders_of_a_kind_do_not_stop_the_others(store_server, store):
    context = world_in(context_over(store), Mode.SHADOW).context
    half_read = {path: half_a_body(path, token) for path, token in tokens(context).items()}
    token = create_token(context, role=Role.RUNTIME, environment=ENVIRONMENT, is_trusted=False)
    path = f"api/v1/environments/{ENVIRONMENT}/guards/{GUARD}/assignments/owner-1"
    with web_worker(store_server) as address:
        asked = f"{address}/{path}?service.version={VERSION}"
        for kind, request in {**SLOW, **half_read}.items():
            with contextlib.ExitStack() as held:
                slow = [
                    held.enter_context(contextlib.closing(connect(address))) for _ in range(200)
                ]
                for client in slow:
                    client.sendall(request)
                for url, credential in [(f"{address}/readyz", ""), (asked, token)] * 2:
                    headers = {"Authorization": f"Bearer {credential}"} if credential else {}
                    answer = urllib3.request(
                        "GET", url, headers=headers, timeout=PATIENCE_S, retries=False
                    )
                    assert answer.status == 200, kind
                if kind in half_read:
                    readable, _, _ = select.select(slow, [], [], PATIENCE_S)
                    refusal = readable[0].recv(4096).decode()
                    assert refusal.startswith("HTTP/1.1 503 ")
                    assert "Retry-After: 1" in refusal
                    assert "too many bodies are arriving slowly" in refusal


def test_a_sender_that_is_cut_off_gets_503_and_one_that_hangs_up_400(store_server, store):
    context = world_in(context_over(store), Mode.SHADOW).context
    asked = [
        half_a_body(path, token, framing)
        for path, token in tokens(context).items()
        for framing in (CHUNKED, OF_A_LENGTH)
    ]
    with (
        web_worker(store_server, GUARDWAVE_REQUEST_SECONDS="1") as address,
        contextlib.ExitStack() as held,
    ):
        # Fewer than the places for waiting: none is refused for another's sake.
        slow = [held.enter_context(contextlib.closing(connect(address))) for _ in asked]
        for client, request in zip(slow, asked, strict=True):
            client.sendall(request)
        for client in slow:
            refusal = until_closed(client)
            assert refusal.startswith("HTTP/1.1 503 ")
            assert "Retry-After: 1" in refusal
            assert "in the time that a request may take" in refusal

        for request in asked:
            with connect(address) as client:
                client.sendall(request)
                client.shutdown(socket.SHUT_WR)
                assert until_closed(client).startswith("HTTP/1.1 400 ")


BROKEN_CHUNKS: Mapping[str, bytes] = {
    "a size in other words": b"zz\r\n{}\r\n0\r\n\r\n",
    "a size below zero": b"-2\r\n{}\r\n0\r\n\r\n",
    "no size": b"\r\n{}\r\n0\r\n\r\n",
    "more than the size": b"2\r\n{}XX\r\n0\r\n\r\n",
    "an extension that is none": b"2;=\r\n{}\r\n0\r\n\r\n",
    "a trailer that is none": b"2\r\n{}\r\n0\r\nno colon\r\n\r\n",
    "a size without an end": b"0" * 9000,
}


def test_a_body_of_malformed_chunks_is_a_bad_request_and_ends_the_connection(
    store_server, store, capfd
):
    context = world_in(context_over(store), Mode.SHADOW).context
    with web_worker(store_server) as address:
        for path, token in tokens(context).items():
            head = half_a_body(path, token).removesuffix(b"1\r\n{\r\n")
            for kind, body in BROKEN_CHUNKS.items():
                answer = answer_to(address, head + body + b"GET /healthz HTTP/1.1\r\n\r\n")
                assert answer.startswith("HTTP/1.1 400 "), (path, kind)
                assert answer.count("HTTP/1.1 ") == 1, (path, kind)
                assert "Connection: close" in answer, (path, kind)
                assert "send a Content-Length" in answer, (path, kind)

        # Refused or answered before the body is read: that answer stands alone.
        for path, status in (("/v1/logs", 401), ("/healthz", 405)):
            head = half_a_body(path, "nobody").removesuffix(b"1\r\n{\r\n")
            answer = answer_to(address, head + BROKEN_CHUNKS["no size"])
            assert answer.startswith(f"HTTP/1.1 {status} ")
            assert answer.count("HTTP/1.1 ") == 1

    assert "Traceback" not in "".join(capfd.readouterr())


def test_a_body_over_the_limits_that_the_settings_name_is_too_large(store_server, store):
    context = world_in(context_over(store), Mode.SHADOW).context
    headers = {
        "Authorization": f"Bearer {Host(context).token}",
        "Content-Type": "application/json",
        # with a body that was refused unread, the connection ends
        "Connection": "close",
    }
    records = b'{"resourceLogs":[{"scopeLogs":[{"logRecords":[' + b"{}," * 512 + b"{}]}]}]}"
    with web_worker(
        store_server,
        GUARDWAVE_OTLP_WIRE_BYTES="65536",
        GUARDWAVE_OTLP_INFLATED_BYTES="65540",
        GUARDWAVE_OTLP_RECORDS="512",
    ) as address:

        def sent(body: bytes, **further: str) -> tuple[int, str]:
            answer = urllib3.request(
                "POST", f"{address}/v1/logs", body=body, headers={**headers, **further}
            )
            return answer.status, answer.json().get("message", "")

        coding = {"Content-Encoding": "gzip"}
        assert sent(b" " * 65_534 + b"{}") == (200, "")
        status, message = sent(b" " * 65_535 + b"{}")
        assert (status, "over 65536 bytes as sent" in message) == (413, True)
        assert sent(gzip.compress(b" " * 65_538 + b"{}"), **coding) == (200, "")
        status, message = sent(gzip.compress(b" " * 65_539 + b"{}"), **coding)
        assert (status, "over 65540 bytes when decompressed" in message) == (413, True)
        status, message = sent(records)
        assert (status, "512" in message) == (413, True)


def test_a_head_in_pieces_and_heads_sent_together_are_answered(store_server):
    head = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    with web_worker(store_server) as address, connect(address) as client:
        for at in range(len(head)):
            client.sendall(head[at : at + 1])
        assert client.recv(4096).startswith(b"HTTP/1.1 200 ")
        client.sendall(head[:9])
        client.sendall(head[9:] + head + head.replace(b"Host", b"Connection: close\r\nHost"))
        parts = []
        while part := client.recv(4096):
            parts.append(part)
    assert b"".join(parts).count(b"HTTP/1.1 200 ") == 3


def test_a_body_that_never_ends_is_given_up(store_server):
    request = (
        b"POST /v1/logs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Content-Length: 1000\r\n\r\n{"
    )
    with web_worker(store_server, GUARDWAVE_REQUEST_SECONDS="1") as address:
        assert answer_to(address, request).startswith("HTTP/1.1 401")


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        pytest.param(f"GET /owners/{CANARY}\u00e9 HTTP/1.1", 400, id="a path that is not ASCII"),
        pytest.param(f"GET\t/owners/{CANARY} HTTP/1.1", 400, id="a tab"),
        pytest.param(f"GET /owners/{CANARY}", 400, id="no version"),
        pytest.param(f"GET /owners/{CANARY}{'x' * 5000} HTTP/1.1", 414, id="a long line"),
    ],
)
def test_bytes_that_are_not_http_get_an_answer_and_are_neither_repeated_nor_logged(
    store_server, request_line, status, capfd
):
    with web_worker(store_server) as address:
        answer = answer_to(address, f"{request_line}\r\nHost: x\r\n\r\n".encode())

    assert answer.startswith(f"HTTP/1.1 {status} ")
    assert "application/problem+json" in answer
    assert CANARY not in answer
    logged = "".join(capfd.readouterr())
    assert "refused a malformed request" in logged
    assert CANARY not in logged


def test_a_fault_is_a_problem_and_its_log_masks_the_owner(tmp_path):
    (tmp_path / "faulty.py").write_text(
        "def app(environ, start_response): raise KeyError(environ['PATH_INFO'])\n"
    )
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "gunicorn",
        "-k",
        "guardwave.control_plane.server.web_worker.WebWorker",
    ]
    process = subprocess.Popen(
        [
            *command,
            "--no-control-socket",
            "-b",
            f"127.0.0.1:{port}",
            "--chdir",
            tmp_path,
            "faulty:app",
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    address = f"http://127.0.0.1:{port}/api/v1/environments/e/owners/{CANARY}"

    def ask() -> urllib3.BaseHTTPResponse | None:
        with contextlib.suppress(urllib3.exceptions.HTTPError):
            return urllib3.request("GET", address, retries=False)
        return None

    answer = until(ask)
    process.terminate()
    _, logged = process.communicate(timeout=PATIENCE_S)

    assert answer is not None
    assert (answer.status, answer.json()["status"]) == (500, 500)
    assert "KeyError" in logged
    assert CANARY not in logged
