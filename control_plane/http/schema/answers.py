"""Answers: their base classes, pages and problems, and how a resource sends them."""

import zlib
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Generic, Literal, TypeVar
from urllib.parse import urlencode

from flask import Response, request
from flask_openapi.blueprint import APIBlueprint
from flask_openapi.types import ResponseDict
from pydantic import BaseModel, ConfigDict, Field

from guardwave.control_plane.http.middleware import MEDIA_TYPE
from guardwave.control_plane.queries.conditions import ConditionView
from guardwave.reducer.rollout.days import NoteMark

PREFIX = "/api/v1"
SECURITY_SCHEME = "token"

Item = TypeVar("Item", bound=BaseModel)


class Answer(BaseModel):
    """A JSON object that the API answers."""

    model_config = ConfigDict(frozen=True)


class ReadAnswer(Answer):
    """An answer with the fields of a value that a query returns."""

    model_config = ConfigDict(frozen=True, from_attributes=True)


class Condition(Answer):
    """One thing that is or is not so. `last_transition` is null when nobody knows since when."""

    type: str
    status: Literal["true", "false"]
    reason: str
    message: str
    last_transition: datetime | None


class DayNoteAnswer(ReadAnswer):
    """One thing that is not exact of a day: counts across midnight, of no attributes or event."""

    mark: NoteMark
    sentence: str


class Page(Answer, Generic[Item]):
    """One part of a collection. `next` is the address of the following part, null at the end."""

    items: list[Item]
    next: str | None


class ProblemField(Answer):
    """One refused member."""

    pointer: str = Field(description="JSON pointer (RFC 6901)")
    detail: str


class Problem(BaseModel):
    """An error (RFC 9457). `type` is an address that says what the problem means."""

    model_config = ConfigDict(extra="allow")
    type: str
    title: str
    status: int
    detail: str
    instance: str = Field(description="The request id, as in X-Request-Id.")
    errors: list[ProblemField] | None = None
    current_etag: str | None = None
    verdict: str | None = None
    retry_after_s: int | None = None
    links: dict[str, str] | None = None


def conditions(found: tuple[ConditionView, ...]) -> list[Condition]:
    """Return the answers for conditions."""
    return [
        Condition(
            type=condition.type,
            status="true" if condition.holds else "false",
            reason=condition.reason,
            message=condition.message,
            last_transition=condition.since,
        )
        for condition in found
    ]


def page(items: list[Item], following: str | None, *, parameter: str = "cursor") -> Page[Item]:
    """Return one page of a collection; `following` is the cursor of the next page."""
    if following is None:
        return Page(items=items, next=None)
    kept = {name: text for name, text in request.args.items() if name != parameter}
    return Page(items=items, next=f"{request.path}?{urlencode({**kept, parameter: following})}")


def respond(
    answer: Answer,
    *,
    status: int = 200,
    etag: str | None = None,
    location: str | None = None,
) -> Response:
    """Return the answer as JSON."""
    response = Response(answer.model_dump_json(), status, mimetype="application/json")
    if etag is not None:
        response.headers["ETag"] = etag
    if location is not None:
        # A path only: the caller may have come through a proxy whose address we do not know.
        response.autocorrect_location_header = False
        response.headers["Location"] = location
    return response


def gunzip(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Decompress a gzip stream part by part."""
    stream = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    for part in parts:
        yield stream.decompress(part)
    yield stream.flush()


def problems(*statuses: int) -> ResponseDict:
    """Return the description of these error statuses in the OpenAPI document."""
    schema = {"$ref": f"#/components/schemas/{Problem.__name__}"}
    return {status: {"content": {MEDIA_TYPE: {"schema": schema}}} for status in statuses}


# Errors that reads can answer, and those that writes can answer besides.
READ_ERRORS = problems(400, 401, 403, 404, 406, 500, 503)
WRITE_ERRORS = problems(409, 412, 413, 415, 422, 428)


def resource(name: str, description: str) -> APIBlueprint:
    """Return the blueprint of one resource, to be nested below `/api/v1`."""
    return APIBlueprint(
        name,
        __name__,
        abp_tags=[{"name": name, "description": description}],
        abp_security=[{SECURITY_SCHEME: []}],
        abp_responses=READ_ERRORS,
        operation_id_callback=_operation_id,
    )


def _operation_id(*, bp_name: str, name: str, **_place: str) -> str:
    """Return a short id; views are named uniquely within their resource."""
    return f"{bp_name}.{name}"


def environment_address(environment: str) -> str:
    """Return the address of an environment."""
    return f"{PREFIX}/environments/{environment}"


def rollout_address(environment: str, guard: str) -> str:
    """Return the address of a rollout."""
    return f"{environment_address(environment)}/guards/{guard}"
