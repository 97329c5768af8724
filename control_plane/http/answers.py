"""What every answer of the API is made of."""

import zlib
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Generic, Literal, TypeVar
from urllib.parse import urlencode

from flask import Response, request
from flask_openapi.types import ResponseDict
from pydantic import BaseModel, ConfigDict, Field

from control_plane.http.problems import MEDIA_TYPE
from control_plane.queries.conditions import ConditionView
from reducer.rollout.days import NoteMark

Each = TypeVar("Each", bound=BaseModel)


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


class Page(Answer, Generic[Each]):
    """One part of a collection. `next` is the address of the following part, null at the end."""

    items: list[Each]
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
    """Return conditions as answered."""
    return [
        Condition(
            type=each.type,
            status="true" if each.holds else "false",
            reason=each.reason,
            message=each.message,
            last_transition=each.since,
        )
        for each in found
    ]


def page(items: list[Each], following: str | None, *, parameter: str = "cursor") -> Page[Each]:
    """Return a part of a collection; `following` is the cursor of the part after it."""
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
        # As a path: what the caller reached us by may be a proxy that we know nothing of.
        response.autocorrect_location_header = False
        response.headers["Location"] = location
    return response


def unpacked(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Decompress a gzip stream as it is sent."""
    stream = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    for part in parts:
        yield stream.decompress(part)
    yield stream.flush()


def problems(*statuses: int) -> ResponseDict:
    """Return how the document describes these error statuses."""
    schema = {"$ref": f"#/components/schemas/{Problem.__name__}"}
    return {status: {"content": {MEDIA_TYPE: {"schema": schema}}} for status in statuses}
