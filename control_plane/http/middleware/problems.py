"""Problem documents (RFC 9457): the one form of every error, and the page of each type."""

import logging
import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources

import orjson
from flask import Blueprint, Flask, Response, g, request
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]  # ships no types
from werkzeug.exceptions import ClientDisconnected, HTTPException, MethodNotAllowed
from werkzeug.wrappers import Response as BaseResponse

from guardwave.control_plane.core import errors
from guardwave.control_plane.core.errors import GuardwaveError, trace_of
from guardwave.control_plane.core.otlp_request import SIGNALS, BrokenChunks, Encoding, SlowBody
from guardwave.control_plane.http.middleware.access_log import masked_path

blueprint = Blueprint("problem_types", __name__)

MEDIA_TYPE = "application/problem+json"
API_PATHS = ("/api/", "/v1/", "/ofrep/", "/problems/", "/healthz", "/readyz", "/metrics")

# Renders an error for people: status, title, detail.
Page = Callable[[int, str, str], Response]
# Whether the client wants a page; most programs accept anything and expect JSON.
AsksForPage = Callable[[], bool]

_log = logging.getLogger(__name__)

_BY_STATUS: dict[int, type[GuardwaveError]] = {
    400: errors.BadRequest,
    404: errors.NotFound,
    406: errors.NotAcceptable,
    413: errors.BodyTooLarge,
    415: errors.UnsupportedMediaType,
}

# google.rpc.Code of faults before a door is reached; any other is UNKNOWN.
_RPC_CODES = {404: 5, 405: 12, 413: 8}
_PATH_ENDS = tuple(f"/v1/{signal}" for signal in SIGNALS)

_SECTION = re.compile(r"^## (?P<code>[a-z-]+)\n(?P<text>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def problem(error: GuardwaveError) -> Response:
    """Return the error as a problem document, with the headers of its status."""
    document = {
        "type": f"/problems/{error.code}",
        "title": error.title,
        "status": error.status,
        "detail": str(error),
        "instance": g.request_id,
        **error.extras,
    }
    response = Response(orjson.dumps(document), error.status, mimetype=MEDIA_TYPE)
    if error.status == 401:
        response.headers["WWW-Authenticate"] = 'Bearer realm="guardwave"'
    return _with_headers(response, error)


def _with_headers(response: Response, error: GuardwaveError) -> Response:
    wait = error.extras.get("retry_after_s")
    if isinstance(wait, int):
        response.headers["Retry-After"] = str(wait)
    return response


def register(app: Flask, page: Page, asks_for_page: AsksForPage) -> None:
    """Make the app answer every error: a problem document for programs, a page for people."""

    def wants_page() -> bool:
        return asks_for_page() and not f"{request.path}/".startswith(API_PATHS)

    def answer_error(error: GuardwaveError) -> Response:
        if wants_page():
            return _with_headers(page(error.status, error.title, str(error)), error)
        return problem(error)

    def answer_http_error(error: HTTPException) -> BaseResponse:
        body_error = _body_error(error)
        if body_error is not None:
            return answer_error(body_error)
        status = error.code
        if status is None or status < 400:
            return error.get_response()
        if _is_for_telemetry():
            return _telemetry_problem(status, _detail(error, status))
        if wants_page():
            return page(status, error.name, error.description or "")
        return _http_problem(error, status)

    def answer_fault(error: Exception) -> Response:
        _log_fault(error)
        detail = f"something went wrong on the server; its log says more under {g.request_id}"
        return answer_error(GuardwaveError(detail))

    app.register_error_handler(GuardwaveError, answer_error)
    app.register_error_handler(HTTPException, answer_http_error)
    app.register_error_handler(Exception, answer_fault)
    app.register_blueprint(blueprint)


def _body_error(error: HTTPException) -> GuardwaveError | None:
    # Werkzeug reports every fault while reading a body as a client that hung up.
    if not isinstance(error, ClientDisconnected):
        return None
    match error.__context__:
        case SlowBody() as cause:
            return errors.BodyTooSlow(f"{cause.strerror}; send it again")
        case BrokenChunks() as cause:
            return errors.BadRequest(f"{cause.strerror}")
        case _:
            return None


def _http_problem(error: HTTPException, status: int) -> Response:
    if isinstance(error, MethodNotAllowed):
        return _method_not_allowed(error)
    kind = _BY_STATUS.get(status, errors.BadRequest if status < 500 else GuardwaveError)
    return problem(kind(_detail(error, status)))


def _method_not_allowed(error: MethodNotAllowed) -> Response:
    allowed = ", ".join(sorted(error.valid_methods or ()))
    detail = f"{request.method[:20]} is not allowed on {_masked_path()}; allowed are {allowed}"
    response = problem(errors.MethodNotAllowed(detail))
    response.headers["Allow"] = allowed
    return response


def _detail(error: HTTPException, status: int) -> str:
    if status == 404:
        return f"there is no {_masked_path()}; /api/v1/openapi.json lists what there is"
    if status == 413:
        limit = request.max_content_length or 0
        return f"the body is over {limit} bytes; send it in smaller parts"
    return error.description or error.name


def _masked_path() -> str:
    return repr(masked_path(request.path)[:120])


def _log_fault(error: Exception) -> None:
    path = masked_path(request.path)
    _log.error("request %s: %s %s: %s", g.request_id, request.method, path, trace_of(error))


def _is_for_telemetry() -> bool:
    """Whether an exporter sent the request, even to a path or by a method that has no door."""
    is_of_api = request.method != "POST" and request.path.startswith("/api/")
    return request.path.removesuffix("/").endswith(_PATH_ENDS) and not is_of_api


def _telemetry_problem(status: int, message: str) -> Response:
    """Return a google.rpc.Status in the request's encoding; exporters read nothing else.

    A 405 names the one allowed method (RFC 9110, 15.5.6).
    """
    answer = _status_answer(status, message)
    if status == 405:
        answer.headers["Allow"] = "POST"
    return answer


def _status_answer(status: int, message: str) -> Response:
    code = _RPC_CODES.get(status, 2)
    if Encoding.of(request.content_type) is Encoding.PROTOBUF:
        body: bytes = Status(code=code, message=message).SerializeToString()
        return Response(body, status, content_type=Encoding.PROTOBUF)
    document = orjson.dumps({"code": code, "message": message})
    return Response(document, status, content_type=Encoding.JSON)


@cache
def sections() -> Mapping[str, str]:
    """Return the text of each problem type by its code, as Markdown."""
    document = (
        resources.files("guardwave.control_plane.http.middleware")
        .joinpath("problems.md")
        .read_text("utf-8")
    )
    return {match["code"]: match["text"].strip() for match in _SECTION.finditer(document)}


@blueprint.get("/problems/<code>")
def explain(code: str) -> Response:
    """Answer in plain text what a problem type means and what to do about it."""
    text = sections().get(code)
    if text is None:
        raise errors.NotFound(
            f"there is no problem type {code[:64]!r}; there are {', '.join(sections())}"
        )
    return Response(f"{code}\n\n{text}\n", mimetype="text/plain")
