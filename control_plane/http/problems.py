"""Errors as problem documents (RFC 9457), made here and nowhere else."""

import logging
from collections.abc import Callable

import orjson
from flask import Flask, Response, g, request
from werkzeug.exceptions import ClientDisconnected, HTTPException, MethodNotAllowed
from werkzeug.wrappers import Response as BaseResponse

from control_plane import errors
from control_plane.errors import GuardwaveError, trace_of
from control_plane.http import otlp, problem_types
from control_plane.http.access_log import masked_path
from control_plane.otlp_door import BrokenChunks, SlowBody

MEDIA_TYPE = "application/problem+json"
API_PATHS = ("/api/", "/v1/", "/ofrep/", "/problems/", "/healthz", "/readyz", "/metrics")

# Renders an error for people: status, title, detail.
Page = Callable[[int, str, str], Response]
# Whether the client takes a page; most programs take anything and mean JSON.
AsksForPage = Callable[[], bool]

_log = logging.getLogger(__name__)

_BY_STATUS: dict[int, type[GuardwaveError]] = {
    400: errors.BadRequest,
    404: errors.NotFound,
    406: errors.NotAcceptable,
    413: errors.BodyTooLarge,
    415: errors.UnsupportedMediaType,
}


def problem(error: GuardwaveError) -> Response:
    """Return the error as a problem document, with the headers that belong to its status."""
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
    """Let the app answer every error: programs get a problem document, people a page."""

    def wants_page() -> bool:
        return asks_for_page() and not f"{request.path}/".startswith(API_PATHS)

    def on_purpose(error: GuardwaveError) -> Response:
        if wants_page():
            return _with_headers(page(error.status, error.title, str(error)), error)
        return problem(error)

    def of_http(error: HTTPException) -> BaseResponse:
        unread = _unread_body(error)
        if unread is not None:
            return on_purpose(unread)
        status = error.code
        if status is None or status < 400:
            return error.get_response()
        if otlp.is_for_telemetry():
            return otlp.refusal(status, _detail(error, status))
        if wants_page():
            return page(status, error.name, error.description or "")
        return _http_problem(error, status)

    def unexpected(error: Exception) -> Response:
        _log_fault(error)
        detail = f"something went wrong on the server; its log says more under {g.request_id}"
        return on_purpose(GuardwaveError(detail))

    app.register_error_handler(GuardwaveError, on_purpose)
    app.register_error_handler(HTTPException, of_http)
    app.register_error_handler(Exception, unexpected)
    app.register_blueprint(problem_types.blueprint)


def _unread_body(error: HTTPException) -> GuardwaveError | None:
    # Werkzeug takes every fault of reading a body for a client that hung up
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
    detail = f"{request.method[:20]} is not allowed on {_shown_path()}; allowed are {allowed}"
    response = problem(errors.MethodNotAllowed(detail))
    response.headers["Allow"] = allowed
    return response


def _detail(error: HTTPException, status: int) -> str:
    if status == 404:
        return f"there is no {_shown_path()}; /api/v1/openapi.json lists what there is"
    if status == 413:
        limit = request.max_content_length or 0
        return f"the body is over {limit} bytes; send it in smaller parts"
    return error.description or error.name


def _shown_path() -> str:
    return repr(masked_path(request.path)[:120])


def _log_fault(error: Exception) -> None:
    path = masked_path(request.path)
    _log.error("request %s: %s %s: %s", g.request_id, request.method, path, trace_of(error))
