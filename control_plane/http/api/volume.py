"""Volume: transitions by label and tool executions, from the counters of hosts."""

from datetime import date

from flask import Response
from pydantic import Field

from guardwave.control_plane.http.api.rollouts import RULE
from guardwave.control_plane.http.middleware import requests
from guardwave.control_plane.http.schema import (
    Answer,
    ExecutionsQuery,
    Page,
    RolloutPath,
    TransitionsQuery,
    answers,
    problems,
    resource,
    respond,
    slice_after,
)
from guardwave.control_plane.queries.evidence import DayRange
from guardwave.control_plane.queries.volume import Dimension, execution_counts, transition_volume
from guardwave.reducer.vocabulary import Mode, Role

blueprint = resource("volume", "What the counters of hosts say; it is no evidence of owners.")


class TransitionsLine(Answer):
    """How many transitions had these values; null is a label that the points do not carry."""

    of: dict[Dimension, str | None]
    transitions: int


class TransitionsAnswer(Page[TransitionsLine]):
    """One part of the counts. `total` is of all parts.

    `shared` is what a cell with too many counters added up under one name, whatever it was.
    """

    total: int
    shared: int


class ExecutionsLine(Answer):
    """Tool executions of a day, version and mode; `mode` is null where no point named one."""

    day: date
    version: str
    mode: Mode | None
    success: int
    error: int
    error_share: float | None = Field(
        description="The execution SLI: error / (success + error); null without any."
    )


class ExecutionsAnswer(Page[ExecutionsLine]):
    """One part of the counts; `success` and `error` are of all parts."""

    success: int
    error: int


@blueprint.get(f"{RULE}/transitions", responses={200: TransitionsAnswer, **problems(422)})
def list_transitions(path: RolloutPath, query: TransitionsQuery) -> Response:
    """Count transitions by any of their labels, of the last 14 days unless days are named."""
    requests.require(Role.VIEWER, path.environment)
    by = tuple(dict.fromkeys(Dimension(word) for word in query.by.split(",")))
    found = transition_volume(
        requests.context(),
        path.environment,
        path.guard,
        days=DayRange(query.first, query.last),
        by=by,
    )
    shown, following = slice_after(
        found.counts, lambda count: count.cursor, after=query.cursor, limit=query.limit
    )
    lines = [
        TransitionsLine(of=dict(zip(by, count.values, strict=True)), transitions=count.transitions)
        for count in shown
    ]
    page = answers.page(lines, following)
    return respond(
        TransitionsAnswer(items=page.items, next=page.next, total=found.total, shared=found.shared)
    )


@blueprint.get(f"{RULE}/executions", responses={200: ExecutionsAnswer, **problems(422)})
def list_executions(path: RolloutPath, query: ExecutionsQuery) -> Response:
    """Count tool executions, and which share failed, of the last 14 days unless days are named."""
    requests.require(Role.VIEWER, path.environment)
    found = execution_counts(
        requests.context(),
        path.environment,
        path.guard,
        days=DayRange(query.first, query.last),
    )
    shown, following = slice_after(
        found, lambda count: count.cursor, after=query.cursor, limit=query.limit
    )
    lines = [
        ExecutionsLine(
            day=count.day,
            version=count.version,
            mode=count.mode,
            success=count.success,
            error=count.error,
            error_share=count.error_share,
        )
        for count in shown
    ]
    page = answers.page(lines, following)
    return respond(
        ExecutionsAnswer(
            items=page.items,
            next=page.next,
            success=sum(count.success for count in found),
            error=sum(count.error for count in found),
        )
    )
