"""Pre-router: a WSGI application before Flask, for assignments and OTLP without Flask's cost.

It answers successful assignments and all of OTLP. Everything else goes on to Flask, whose routes
call the same functions; an assignment that fails goes there with its error. So errors have one
form, and no answer depends on the pre-router.
"""

import os
import re
from collections.abc import Iterable
from http import HTTPStatus
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from guardwave.control_plane.core.errors import GuardwaveError
from guardwave.control_plane.core.otlp_request import OtlpDoor, request_of, signal_of
from guardwave.control_plane.data_plane import DataPlane
from guardwave.control_plane.data_plane.assignments import answer_assignment
from guardwave.control_plane.http.api.assignments import (
    PREROUTER_ERROR,
    assignment_request,
    headers_of,
    status_of,
)

_ASSIGNMENT = re.compile(
    r"/api/v1/environments/([^/]+)/guards/([^/]+)/assignments/([^/]+)", re.ASCII
)
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_STATUS_LINES = {status.value: f"{status.value} {status.phrase}" for status in HTTPStatus}


class PreRouter:
    """The WSGI application of a web worker."""

    def __init__(
        self, app: WSGIApplication, plane: DataPlane, otlp: OtlpDoor, *, otlp_prefix: str = ""
    ) -> None:
        self._app = app
        self._plane = plane
        self._otlp = otlp
        self._otlp_prefix = otlp_prefix

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        path = environ["PATH_INFO"]
        method = environ["REQUEST_METHOD"]
        if method == "GET":
            match = _ASSIGNMENT.fullmatch(path)
            if match is not None:
                return self._answer_assignment(match, environ, start_response)
        elif method == "POST":
            signal = signal_of(path, self._otlp_prefix)
            if signal is not None:
                return self._receive(signal, environ, start_response)
        return self._app(environ, start_response)

    def start(self) -> None:
        """Read the store, and follow its changes in this process."""
        self._plane.refresher.ensure_running()

    def _answer_assignment(
        self, match: re.Match[str], environ: WSGIEnvironment, start_response: StartResponse
    ) -> Iterable[bytes]:
        environment, guard, owner = match.groups()
        try:
            answer = answer_assignment(
                self._plane, assignment_request(environ, environment, guard, owner)
            )
        except GuardwaveError as error:
            environ[PREROUTER_ERROR] = error
            return self._app(environ, start_response)
        request_id = ("X-Request-Id", _request_id(environ))
        start_response(_STATUS_LINES[status_of(answer)], [*headers_of(answer), request_id])
        return [] if answer.is_unchanged else [answer.body]

    def _receive(
        self, signal: str, environ: WSGIEnvironment, start_response: StartResponse
    ) -> Iterable[bytes]:
        self._plane.refresher.ensure_running()
        answer = self._otlp(request_of(environ, signal))
        headers = [
            ("Content-Type", answer.content_type),
            ("Content-Length", str(len(answer.body))),
            ("X-Request-Id", _request_id(environ)),
            *answer.headers,
        ]
        start_response(_STATUS_LINES[answer.status], headers)
        return [answer.body]


def _request_id(environ: WSGIEnvironment) -> str:
    given = environ.get("HTTP_X_REQUEST_ID", "")
    return given if _REQUEST_ID.fullmatch(given) else os.urandom(8).hex()
