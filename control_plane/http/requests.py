"""What every request of the API brings: an id, a bearer token, and JSON that can be read."""

import re
import uuid
from dataclasses import replace
from functools import cache
from typing import get_type_hints

import orjson
from flask import Response, current_app, g, request
from pydantic import BaseModel
from werkzeug.exceptions import RequestEntityTooLarge

from control_plane.access import Identity, actor_of, may, sign_in
from control_plane.context import Context
from control_plane.errors import (
    BadRequest,
    BodyTooLarge,
    Forbidden,
    InvalidField,
    NotAcceptable,
    NotSignedIn,
    UnsupportedMediaType,
)
from control_plane.etags import check_precondition
from control_plane.state import Actor
from reducer.vocabulary import Role

MAX_BODY_BYTES = 1 << 20
MAX_DEPTH = 16
NO_ETAG = '""'
JSON = "application/json"
NDJSON = "application/x-ndjson"
# What is streamed line by line.
NDJSON_ENDPOINTS = frozenset({"api.evidence.read_evidence"})
OPEN_ENDPOINTS = frozenset({"api.document.openapi"})
# A rollback is refused for no formality: see `check_body`.
ROLLBACK_ENDPOINT = "api.rollbacks.roll_back"

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_BODY_METHODS = frozenset({"POST", "PUT"})


def context() -> Context:
    """Return what the app factory wired together."""
    wired: Context = current_app.extensions["guardwave"]
    return wired


def name_request() -> None:
    """Take the caller's request id, if it is a sane one, or make one."""
    given = request.headers.get("X-Request-Id", "")
    g.request_id = given if _REQUEST_ID.fullmatch(given) else str(uuid.uuid4())


def echo_request_id(response: Response) -> Response:
    """Let every answer say which request it answers."""
    response.headers["X-Request-Id"] = g.request_id
    return response


def keep_private(response: Response) -> Response:
    """Keep answers of the API out of caches, and browsers from guessing their type."""
    response.headers.setdefault("Cache-Control", "no-store")
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


def check_caller() -> None:
    """Find out who calls; the session cookie of the pages is no credential here.

    Raises:
        NotSignedIn: no bearer token, or one that is unknown or revoked.
    """
    if request.endpoint in OPEN_ENDPOINTS:
        return
    scheme, _, text = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        raise NotSignedIn("send a token: Authorization: Bearer gw_<id>_<secret>")
    found = sign_in(context(), text)
    if found is None:
        raise NotSignedIn(
            "the bearer token is unknown or revoked; `guardwave token create --role ROLE "
            "--environment NAME` makes one"
        )
    g.identity = found


def check_accept() -> None:
    """Refuse a client that does not take what is answered.

    Raises:
        NotAcceptable: no media type in `Accept` matches that of the answer.
    """
    accepts = request.accept_mimetypes
    made = NDJSON if request.endpoint in NDJSON_ENDPOINTS else JSON
    if accepts and not accepts[made] and request.endpoint != ROLLBACK_ENDPOINT:
        raise NotAcceptable(f"answers are {made}; accept that, or */*")


def check_query() -> None:
    """Refuse query parameters that the view does not know: `?dryrun=true` must not write.

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
    """Read the body of a write once, so that views find a JSON object.

    A rollback takes its object under any content type, and is refused with 400 or not at all.

    Raises:
        BodyTooLarge, UnsupportedMediaType, BadRequest, InvalidField: why it cannot be read.
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
    # Parsed again, and kept, for the extension: it takes a body it cannot parse for null.
    found = request.get_json(force=True)
    if not isinstance(found, dict):
        raise InvalidField("the body is a JSON object, not another JSON value", pointer="")
    if _is_deeper(found, MAX_DEPTH):
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
    return levels == 0 or any(_is_deeper(each, levels - 1) for each in inner)


def identity() -> Identity:
    """Return who calls."""
    found: Identity = g.identity
    return found


def require(role: Role, environment: str | None) -> Actor:
    """Return the caller as an actor if its token has the role in this environment.

    Raises:
        Forbidden: it has not; says what it has and what is needed.
    """
    who = identity()
    if not may(who, role, environment):
        raise Forbidden(
            f"the token {who.token_id} is {who.role} of {who.environment or 'every environment'}; "
            f"this needs {role} of {environment or 'every environment'}"
        )
    return replace(actor_of(who), request_id=g.request_id)


def honour_if_match(given: str | None, current: str | None) -> None:
    """Check `If-Match`, when it is sent, against the present ETag; None: there is nothing yet.

    Raises:
        PreconditionFailed, BadRequest: see `check_precondition`.
    """
    # The ETag of nothing: none that was ever answered equals it.
    check_precondition(given, current or NO_ETAG, is_required=False)
