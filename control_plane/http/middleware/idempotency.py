"""Idempotency keys: a POST sent twice acts once and gets the same answer."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

import orjson
from flask import Response, request

from guardwave.control_plane.commands.idempotency import KeyedAnswer, KeyedRequest, replay_or_act
from guardwave.control_plane.http.middleware import requests

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"

_KEPT_HEADERS = ("ETag", "Location", "Content-Type")

Arguments = ParamSpec("Arguments")


def idempotent(view: Callable[Arguments, Response]) -> Callable[Arguments, Response]:
    """Let a POST view below an environment act once for each key.

    The headers that the view declares state a key's form and whether it is required.
    """

    @wraps(view)
    def answer_once(*args: Arguments.args, **named: Arguments.kwargs) -> Response:
        key = _request_key()
        if key is None:
            return view(*args, **named)
        answer = replay_or_act(
            requests.context(), _keyed_request(key), lambda: _to_stored(view(*args, **named))
        )
        return _to_response(answer)

    return answer_once


def _request_key() -> str | None:
    # The draft asks for a quoted string (RFC 8941), but most senders send a bare one.
    given = request.headers.get(HEADER)
    return None if given is None else given.strip('"')


def _keyed_request(key: str) -> KeyedRequest:
    environment = (request.view_args or {})["environment"]
    scope = (requests.identity().token_id, request.method, request.path)
    payload = request.query_string + b"\n" + request.get_data(cache=True)
    return KeyedRequest(environment, key, scope, payload)


def _to_stored(response: Response) -> KeyedAnswer:
    kept = {name: response.headers[name] for name in _KEPT_HEADERS if name in response.headers}
    return KeyedAnswer(response.status_code, orjson.dumps(kept).decode(), response.get_data())


def _to_response(answer: KeyedAnswer) -> Response:
    response = Response(answer.body, answer.status, headers=orjson.loads(answer.headers))
    response.autocorrect_location_header = False
    if answer.is_replayed:
        response.headers[REPLAYED] = "true"
    return response
