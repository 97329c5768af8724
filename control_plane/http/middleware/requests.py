"""Request checks: id, bearer token, media types, query parameters and JSON body."""

import re
import uuid
from dataclasses import replace
from functools import cache
from typing import get_type_hints

import orjson
from flask import Response, current_app, g, request
from pydantic import BaseModel
from werkzeug.exceptions import RequestEntityTooLarge

from guardwave.control_plane.core.errors import (
    BadRequest,
    BodyTooLarge,
    Forbidden,
    InvalidField,
    NotAcceptable,
    NotSignedIn,
    UnsupportedMediaType,
)
from guardwave.control_plane.core.etags import check_precondition
from guardwave.control_plane.core.state import Actor
from guardwave.control_plane.rollouts.access import Identity, actor_of, is_permitted, sign_in
from guardwave.control_plane.rollouts.context import Context
from guardwave.reducer.vocabulary import Role

MAX_BODY_BYTES = 1 << 20
MAX_DEPTH = 16
NO_ETAG = '""'
JSON = "application/json"
NDJSON = "application/x-ndjson"
# Endpoints that stream lines.
NDJSON_ENDPOINTS = frozenset({"api.evidence.read_evidence"})
OPEN_ENDPOINTS = frozenset({"api.document.openapi"})
# No formality stops a rollback: see `check_body`.
ROLLBACK_ENDPOINT = "api.rollbacks.roll_back"

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_BODY_METHODS = frozenset({"POST", "PUT"})


def context() -> Context:
    """Return the context that the app factory wired in."""
    wired: Context = current_app.extensions["guardwave"]
    return wired


def name_request() -> None:
    """Use the caller's request id if it is well formed, or make one."""
    given = request.headers.get("X-Request-Id", "")
    g.request_id = given if _REQUEST_ID.fullmatch(given) else str(uuid.uuid4())


def echo_request_id(response: Response) -> Response:
    """Send the request id back with the answer."""
    response.headers["X-Request-Id"] = g.request_id
    return response


def keep_private(response: Response) -> Response:
    """Forbid caches to store the answer and browsers to guess its type."""
    response.headers.setdefault("Cache-Control", "no-store")
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


def check_caller() -> None:
    """Identify the caller by its bearer token; the pages' session cookie does not count here.

    Raises:
        NotSignedIn: no bearer token, or one that is unknown or revoked.
    """
    if request.endpoint in OPEN_ENDPOINTS:
        return
    scheme, _, text = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        raise NotSignedIn("send a token: Authorization: Bearer gw_<id>_<secret>")
    caller = sign_in(context(), text)
    if caller is None:
        raise NotSignedIn(
            "the bearer token is unknown or revoked; `guardwave token create --role ROLE "
            "--environment NAME` makes one"
        )
    g.identity = caller


def check_accept() -> None:
    """Reject a client that does not accept the answer's media type.

    Raises:
        NotAcceptable: no media type in `Accept` matches that of the answer.
    """
    accepts = request.accept_mimetypes
    answered = NDJSON if request.endpoint in NDJSON_ENDPOINTS else JSON
    if accepts and not accepts[answered] and request.endpoint != ROLLBACK_ENDPOINT:
        raise NotAcceptable(f"answers are {answered}; accept that, or */*")


def check_query() -> None:
    """Reject query parameters that the view does not know: `?dryrun=true` must not write.

    Raises:
        InvalidField: names the first unknown parameter.
    """
    known = _known_parameters(str(request.endpoint))
    for name in request.args:
        if name not in known:
            listed = ", ".join(sorted(known)) or "none"
            raise InvalidField(
                f"the query parameter {name[:64]!r} is not known here; known: {listed}",
                pointer=f"/{name[:64]}",
            )


@cache
def _known_parameters(endpoint: str) -> frozenset[str]:
    view = current_app.view_functions[endpoint]
    query = get_type_hints(view).get("query")
    if not (isinstance(query, type) and issubclass(query, BaseModel)):
        return frozenset()
    return frozenset(field.alias or name for name, field in query.model_fields.items())


def check_body() -> None:
    """Check that the body of a write is a JSON object, and keep it for the view.

    A rollback takes its object under any content type; its only status for a bad body is 400.

    Raises:
        BodyTooLarge, UnsupportedMediaType, BadRequest, InvalidField: the body cannot be used.
    """
    if request.method not in _BODY_METHODS:
        return
    is_rollback = request.endpoint == ROLLBACK_ENDPOINT
    if not is_rollback:
        _check_media_type()
    try:
        orjson.loads(_body())
    except BodyTooLarge as error:
        raise BadRequest(str(error)) if is_rollback else error from None
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the body is not JSON: {error}") from None
    # The extension reads what Flask has parsed; it would take a body it cannot parse for null.
    body = request.get_json(force=True)
    if not isinstance(body, dict):
        raise InvalidField("the body is a JSON object, not another JSON value", pointer="")
    if _is_deeper(body, MAX_DEPTH):
        raise BadRequest(f"the body is nested more than {MAX_DEPTH} levels deep")


def _check_media_type() -> None:
    if request.mimetype != JSON:
        given = request.mimetype[:64] or "no Content-Type"
        raise UnsupportedMediaType(f"send Content-Type: {JSON}, not {given}")
    encoding = request.headers.get("Content-Encoding", "identity")
    if encoding != "identity":
        raise UnsupportedMediaType(f"send the body as it is, not with encoding {encoding[:64]!r}")


def _body() -> bytes:
    request.max_content_length = MAX_BODY_BYTES
    try:
        return request.get_data(cache=True)
    except RequestEntityTooLarge:
        raise BodyTooLarge(
            f"the body is over {MAX_BODY_BYTES} bytes; send it in smaller parts"
        ) from None


def _is_deeper(value: object, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_is_deeper(member, levels - 1) for member in inner)


def identity() -> Identity:
    """Return the caller that `check_caller` found."""
    caller: Identity = g.identity
    return caller


def require(role: Role, environment: str | None) -> Actor:
    """Return the caller as an actor if its token has the role in this environment.

    Raises:
        Forbidden: it does not; the message names its role and the one needed.
    """
    who = identity()
    if not is_permitted(who, role, environment):
        raise Forbidden(
            f"the token {who.token_id} is {who.role} of {who.environment or 'every environment'}; "
            f"this needs {role} of {environment or 'every environment'}"
        )
    return replace(actor_of(who), request_id=g.request_id)


def honour_if_match(given: str | None, current: str | None) -> None:
    """Check a sent `If-Match` against the present ETag, None when nothing exists yet.

    Raises:
        PreconditionFailed, BadRequest: see `check_precondition`.
    """
    # No answer ever had the empty ETag.
    check_precondition(given, current or NO_ETAG, is_required=False)
