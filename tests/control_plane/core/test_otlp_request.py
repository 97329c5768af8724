"""OTLP requests: the paths that are OTLP, the request at the door, and the same through Flask."""

import io

import pytest
from flask import Flask
from werkzeug.test import Client

from guardwave.control_plane.core.otlp_request import OtlpAnswer, request_of, signal_of
from guardwave.control_plane.http.api.otlp import EXTENSION, otlp_blueprint


@pytest.mark.parametrize(
    ("path", "prefix", "signal"),
    [
        pytest.param("/v1/logs", "", "logs", id="logs"),
        pytest.param("/v1/metrics/", "", "metrics", id="trailing slash"),
        pytest.param("/v1/traces", "/otlp", "traces", id="without the prefix"),
        pytest.param("/otlp/v1/traces/", "/otlp", "traces", id="with the prefix"),
        pytest.param("/otlp/v1/logs", "", None, id="a prefix that is not set"),
        pytest.param("/v1/profiles", "", None, id="another signal"),
        pytest.param("/v1/logs/more", "", None, id="below a signal"),
        pytest.param("/v1/", "", None, id="no signal"),
        pytest.param("/v2/logs", "", None, id="another version"),
    ],
)
def test_otlp_paths_are_recognised(path, prefix, signal):
    assert signal_of(path, prefix) == signal


@pytest.mark.parametrize(
    ("said", "length"),
    [
        pytest.param("17", 17, id="a number"),
        pytest.param("", None, id="none"),
        pytest.param("-1", None, id="negative"),
        pytest.param("1_0", None, id="not digits"),
        pytest.param("\u0661", None, id="digits of another script"),
    ],
)
def test_only_a_plain_length_is_believed(said, length):
    environ = {"wsgi.input": io.BytesIO(), "CONTENT_LENGTH": said}
    assert request_of(environ, "logs").content_length == length


@pytest.fixture
def received():
    """The requests that reached the door."""
    return []


@pytest.fixture
def client(received):
    """Flask with the routes alone, before a door that keeps what it is given."""

    def door(request):
        received.append((request, request.stream.read(100)))
        return OtlpAnswer(503, "application/x-protobuf", b"\x08\x0e", (("Retry-After", "1"),))

    app = Flask("otlp")
    app.config["MAX_CONTENT_LENGTH"] = 4
    app.register_blueprint(otlp_blueprint("/otlp"))
    app.extensions[EXTENSION] = door
    return Client(app)


@pytest.mark.parametrize("path", ["/v1/logs", "/v1/logs/", "/otlp/v1/logs", "/otlp/v1/logs/"])
def test_flask_passes_the_whole_request_on_and_the_answer_back(client, received, path):
    answer = client.post(
        path,
        data=b"longer than pages may send",
        content_type="application/x-protobuf",
        headers={"Content-Encoding": "gzip", "Authorization": "Bearer x"},
    )
    assert (answer.status_code, answer.data) == (503, b"\x08\x0e")
    assert answer.headers["Retry-After"] == "1"
    assert answer.content_type == "application/x-protobuf"
    [(request, body)] = received
    assert body == b"longer than pages may send"
    assert (request.signal, request.content_type) == ("logs", "application/x-protobuf")
    assert (request.content_encoding, request.authorization) == ("gzip", "Bearer x")
    assert request.content_length == len(body)


def test_other_paths_and_methods_do_not_reach_the_door(client, received):
    assert client.post("/v1/profiles", data=b"").status_code == 404
    assert client.get("/v1/logs").status_code == 405
    assert received == []
