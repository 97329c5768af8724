"""Chunked bodies: no framing makes the door fail, however its pieces arrive."""

from collections.abc import Sequence

import orjson
import pytest
from gunicorn.config import Config
from gunicorn.http.message import Request
from gunicorn.http.parser import RequestParser
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from guardwave.control_plane.core.otlp_request import OtlpAnswer, OtlpRequest
from guardwave.control_plane.data_plane.credential_cache import CredentialCache
from guardwave.control_plane.ingest.door import Door
from guardwave.control_plane.ingest.intake import Intake
from guardwave.control_plane.rollouts.access import create_token
from guardwave.control_plane.server.web_worker import watch_chunks
from guardwave.reducer.vocabulary import Mode, Role
from tests.support.worlds import ENVIRONMENT, context_over, world_in

HEAD = b"POST /v1/logs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
FRAMES = st.sampled_from(
    [b"0", b"2", b"-2", b"zz", b"ffffffffffffffffffffff", b";", b"=", b"\r\n", b"\r", b"\n", b"{}"]
)
FUZZING = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture
def door(store):
    context = world_in(context_over(store), Mode.SHADOW).context
    token = create_token(context, role=Role.INGEST, environment=ENVIRONMENT, is_trusted=True)
    return Door(Intake(context), CredentialCache(context)), token


def request_of_pieces(pieces: Sequence[bytes]) -> Request:
    """Return the request that gunicorn makes of what comes in pieces."""
    request = next(RequestParser(Config(), iter([HEAD, *pieces]), ("127.0.0.1", 1)))
    watch_chunks(request)
    return request


def answer_of(door: tuple[Door, str], request: Request) -> OtlpAnswer:
    receive, token = door
    assert request.body is not None
    return receive(
        OtlpRequest(
            signal="logs",
            content_type="application/json",
            content_encoding=None,
            content_length=None,
            stream=request.body,
            authorization=f"Bearer {token}",
        )
    )


@FUZZING
@given(st.lists(st.one_of(FRAMES, st.binary(min_size=1, max_size=12)), max_size=12))
@example([b"2\r\n{", b"}\r", b"\n0\r\n\r\n"])
@example([b"2\r\n{}\r\n0\r\nA: b\r\n\r\n"])
def test_any_chunks_are_answered_in_the_protocol(door, pieces):
    answer = answer_of(door, request_of_pieces(pieces))
    assert answer.status in {200, 400}, answer.body
    assert answer.content_type == "application/json"


@pytest.mark.parametrize(
    "frames",
    [
        pytest.param(b"zz\r\n{}\r\n0\r\n\r\n", id="a size in other words"),
        pytest.param(b"-2\r\n{}\r\n0\r\n\r\n", id="a size below zero"),
        pytest.param(b"2\r\n{}XX0\r\n\r\n", id="more than the size"),
        pytest.param(b"2\r\n{}\r\n0\r\nx\x00: y\r\n\r\n", id="a trailer that is none"),
        pytest.param(b"2\r\n{}\r\n0\r\n", id="no end of the trailers"),
    ],
)
def test_malformed_chunks_are_a_bad_body_after_which_nothing_more_is_read(door, frames):
    request = request_of_pieces([frames])
    answer = answer_of(door, request)
    assert answer.status == 400
    assert "not framed as HTTP has it" in orjson.loads(answer.body)["message"]
    assert request.should_close()


def test_well_formed_chunks_keep_the_connection(door):
    request = request_of_pieces([b"2;a=b\r\n{}\r\n0\r\nA: b\r\n\r\n"])
    assert answer_of(door, request).status == 200
    assert not request.should_close()
