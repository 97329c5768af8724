"""Telemetry health: what intake accepted, and what hinders a day from being complete."""

from datetime import date, datetime
from hashlib import sha256

from flask import Response
from pydantic import Field

from guardwave.control_plane.http.middleware import requests
from guardwave.control_plane.http.schema import (
    Answer,
    DayNoteAnswer,
    EnvironmentPath,
    Page,
    PageQuery,
    ReadAnswer,
    answers,
    environment_address,
    resource,
    respond,
    slice_after,
)
from guardwave.control_plane.queries import cards
from guardwave.control_plane.queries.intake_health import SourceHealth, intake_health, sources_of
from guardwave.control_plane.queries.page_models import TelemetryState
from guardwave.reducer.vocabulary import Mode, Role

blueprint = resource("telemetry", "What intake took in, what it did not, and from whom.")

RULE = "/environments/<environment>/telemetry"


class IntakeCountsAnswer(ReadAnswer):
    """Counters of intake since it began; a reason or fault that never came is not listed.

    Items are `accepted`, `duplicate`, `refused`, `quarantined` (their Resource names no
    environment or version) or `ignored` (nobody's business). `streams` are faults of streams of
    metric points, `overflow` what went beyond a bound. Violations that no trusted producer, or no
    assignment id, stands behind change nothing. `weak_identity` counts records whose Resource names
    no instance. `remedies` say what to do about items that count for nothing or tell less than they
    could.
    """

    accepted: int
    duplicate: int
    refused: dict[str, int]
    quarantined: dict[str, int]
    ignored: dict[str, int]
    streams: dict[str, int]
    overflow: dict[str, int]
    untrusted_violations: dict[str, int]
    unvouched_violations: dict[str, int]
    unreliable_prompts: int = Field(description="Prompts of hosts that cannot tell failures apart.")
    dropped_attributes: int
    weak_identity: int
    remedies: list[str]


class SourceAnswer(ReadAnswer):
    """What came from one producer, by the id of its token, with one service version.

    An empty version: the items named none. `ahead_seconds` is how far the newest record of the
    last request lay ahead of the clock here, negative behind it; null when nothing was accepted.
    """

    producer: str
    version: str
    counts: IntakeCountsAnswer
    last_record_at: datetime | None
    ahead_seconds: int | None
    is_skewed: bool


class InstanceAnswer(ReadAnswer):
    """A process whose clock may be wrong, or whose deltas have gaps.

    `instance`: the 64-bit BLAKE2b of its `service.instance.id`, hexadecimal.
    """

    instance: str
    producer: str
    version: str
    late: int
    future: int
    gaps: int
    last_at: datetime


class StillEnforcingAnswer(ReadAnswer):
    """Records after a rollback under ids from before it: processes that have not ended."""

    guard: str
    mode: Mode
    generation: int
    records: int
    last_at: datetime


class PromptCountsAnswer(ReadAnswer):
    """The prompts of one day and version, as trusted producers tell of them.

    `by_events` are those that log records tell of, `by_counters` those that `agent.guard.prompts`
    shows, each null when there is none. `untold` are shown and have no event: a log queue or a
    Collector lost them. What is counted across midnight may be of either day: it is none of them.
    """

    version: str
    by_events: int | None
    by_counters: int | None
    untold: int


class DayHealthAnswer(ReadAnswer):
    """A UTC day that is over; `reason` says why it is not complete, null when it is.

    `notes` say what is not exact of it. `prompts` are by version, of at most 32 versions those with
    the most.
    """

    day: date
    reason: str | None
    notes: list[DayNoteAnswer]
    prompts: list[PromptCountsAnswer]


class IntakeHealthAnswer(Answer):
    """The telemetry of one environment.

    `days` are the last 14, whatever waves they lie in, and fewer of a younger environment.
    """

    environment: str
    state: TelemetryState
    last_record_at: datetime | None
    last_record_age_seconds: float | None
    counts: IntakeCountsAnswer
    instances: list[InstanceAnswer]
    still_enforcing: list[StillEnforcingAnswer]
    days: list[DayHealthAnswer]
    links: dict[str, str]


@blueprint.get(RULE, responses={200: IntakeHealthAnswer})
def read_telemetry(path: EnvironmentPath) -> Response:
    """Read how an environment's telemetry is: counts by reason, the last record, the days."""
    requests.require(Role.VIEWER, path.environment)
    context = requests.context()
    health = intake_health(context, path.environment)
    arriving = cards.telemetry(context, path.environment)
    address = environment_address(path.environment)
    return respond(
        IntakeHealthAnswer(
            environment=health.environment,
            state=arriving.state,
            last_record_at=health.last_record_at,
            last_record_age_seconds=arriving.last_record_age_seconds,
            counts=IntakeCountsAnswer.model_validate(health.counts),
            instances=[InstanceAnswer.model_validate(instance) for instance in health.instances],
            still_enforcing=[
                StillEnforcingAnswer.model_validate(host) for host in health.still_enforcing
            ],
            days=[DayHealthAnswer.model_validate(day) for day in health.days],
            links={
                "self": f"{address}/telemetry",
                "sources": f"{address}/telemetry/sources",
                "environment": address,
            },
        )
    )


@blueprint.get(f"{RULE}/sources", responses={200: Page[SourceAnswer]})
def list_sources(path: EnvironmentPath, query: PageQuery) -> Response:
    """List what came from each producer with each version, by both."""
    requests.require(Role.VIEWER, path.environment)
    found = sources_of(requests.context(), path.environment)
    shown, following = slice_after(found, _cursor, after=query.cursor, limit=query.limit)
    items = [SourceAnswer.model_validate(source) for source in shown]
    return respond(answers.page(items, following))


def _cursor(source: SourceHealth) -> str:
    return sha256(f"{source.producer}\x00{source.version}".encode()).hexdigest()[:16]
