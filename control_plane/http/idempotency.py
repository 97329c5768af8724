"""`Idempotency-Key`: a POST sent twice acts once and is answered the same."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

import orjson
from flask import Response, request

from control_plane.commands.once import KeyedRequest, Once, once
from control_plane.http import requests

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"

_KEPT_HEADERS = ("ETag", "Location", "Content-Type")

Arguments = ParamSpec("Arguments")


def idempotent(view: Callable[Arguments, Response]) -> Callable[Arguments, Response]:
    """Let a POST view below an environment act once for each key.

    What a key looks like, and whether one is required, is said by the headers the view declares.
    """

    @wraps(view)
    def answer_once(*args: Arguments.args, **named: Arguments.kwargs) -> Response:
        key = _key()
        if key is None:
            return view(*args, **named)
        answer = once(requests.context(), _keyed(key), lambda: _frozen(view(*args, **named)))
        return _thawed(answer)

    return answer_once


def _key() -> str | None:
    # The draft's syntax is a quoted string (RFC 8941); a bare one is taken too, as most senders do.
    given = request.headers.get(HEADER)
    return None if given is None else given.strip('"')


def _keyed(key: str) -> KeyedRequest:
    environment = (request.view_args or {})["environment"]
    scope = (requests.identity().token_id, request.method, request.path)
    payload = request.query_string + b"\n" + request.get_data(cache=True)
    return KeyedRequest(environment, key, scope, payload)


def _frozen(response: Response) -> Once:
    kept = {name: response.headers[name] for name in _KEPT_HEADERS if name in response.headers}
    return Once(response.status_code, orjson.dumps(kept).decode(), response.get_data())


def _thawed(answer: Once) -> Response:
    response = Response(answer.body, answer.status, headers=orjson.loads(answer.headers))
    response.autocorrect_location_header = False
    if answer.is_replayed:
        response.headers[REPLAYED] = "true"
    return response
