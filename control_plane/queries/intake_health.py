"""Whether telemetry arrives as it should: what was taken in, what was not, and from whom."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import orjson

from control_plane.commands.changes import load_environment
from control_plane.context import Context
from control_plane.queries.days import floors_of
from control_plane.queries.intake_counts import IntakeCounts
from control_plane.state import Rollback
from control_plane.stores.intake_health import InstanceCounts, SourceCounts, TreatedRecords
from control_plane.stores.sealed_days import PromptCounts
from reducer.rollout.days import COMPARED_DAYS, DayNote, day_notes, why_incomplete
from reducer.rollout.state import EvidenceSource
from reducer.vocabulary import Mode

# A clock that is right is ahead by what two clocks differ, and behind by an export's interval.
AHEAD_S, BEHIND_S = 30, 900
DAYS_SHOWN, VERSIONS_SHOWN = 14, 32


@dataclass(frozen=True, slots=True)
class SourceHealth:
    """What came from one producer with one version; an empty version says that none was named.

    `ahead_seconds` says how far the newest record of the last request lay ahead of the clock here,
    negative behind it; None when nothing was accepted.
    """

    producer: str
    version: str
    counts: IntakeCounts
    last_record_at: datetime | None
    ahead_seconds: int | None

    @property
    def is_skewed(self) -> bool:
        """Whether its clock seems to be wrong, within what is accepted."""
        ahead = self.ahead_seconds
        return ahead is not None and not -BEHIND_S <= ahead <= AHEAD_S


@dataclass(frozen=True, slots=True)
class StillEnforcing:
    """Records that came after a rollback under ids from before it: processes not yet ended."""

    guard: str
    mode: Mode
    generation: int
    records: int
    last_at: datetime


@dataclass(frozen=True, slots=True)
class DayHealth:
    """One UTC day of the environment; `reason` says why it is not complete (yet).

    `notes` say what is not exact of it, complete or not. `prompts` are what counters and events
    tell of its prompts, by version, of at most 32 versions those with the most.
    """

    day: date
    reason: str | None
    notes: tuple[DayNote, ...] = ()
    prompts: tuple[PromptCounts, ...] = ()


@dataclass(frozen=True, slots=True)
class IntakeHealth:
    """The telemetry of one environment, `sources` by producer and version.

    `instances` are some of the processes that something is wrong with, worst first; what all
    processes got wrong is in the counts. `days` are the last 14 that are over, or as many as the
    environment has seen.
    """

    environment: str
    counts: IntakeCounts
    last_record_at: datetime | None
    sources: tuple[SourceHealth, ...]
    instances: tuple[InstanceCounts, ...]
    still_enforcing: tuple[StillEnforcing, ...]
    days: tuple[DayHealth, ...]


def intake_health(context: Context, environment: str) -> IntakeHealth:
    """Return how the environment's telemetry is.

    Raises:
        NotFound: no such environment.
    """
    load_environment(context, environment)
    counted = context.evidence.health(environment)
    rollbacks = context.incidents.rollbacks(environment)
    return IntakeHealth(
        environment=environment,
        counts=IntakeCounts.of(counted),
        last_record_at=_moment(counted.get("last_record_s", 0)),
        sources=_sources(context, environment),
        instances=context.intake.instances(environment),
        still_enforcing=_still_enforcing(context.intake.treated(environment), rollbacks),
        days=environment_days(context, environment),
    )


def sources_of(context: Context, environment: str) -> tuple[SourceHealth, ...]:
    """Return what came from each producer with each version.

    Raises:
        NotFound: no such environment.
    """
    load_environment(context, environment)
    return _sources(context, environment)


def _sources(context: Context, environment: str) -> tuple[SourceHealth, ...]:
    return tuple(_source(each) for each in context.intake.sources(environment))


def environment_days(
    context: Context, environment: str, source: EvidenceSource = EvidenceSource.EVENTS
) -> tuple[DayHealth, ...]:
    """Return the last 14 days that are over, newest last, whatever waves they lie in.

    There are fewer while the environment is younger than that.
    """
    today = context.clock.now().date()
    back = range(DAYS_SHOWN + COMPARED_DAYS, 0, -1)
    looked_at = [today - timedelta(days=at) for at in back]
    first = _first_day(context, environment)
    held = context.evidence.held_days(environment, looked_at)
    sealed = {each.day: each for each in held.sealed(source)}
    floors = floors_of(context, environment, source)
    shown = [day for day in looked_at[-DAYS_SHOWN:] if day >= first]
    return tuple(
        DayHealth(
            day,
            why_incomplete(
                sealed.get(day),
                [each for each in sealed.values() if each.day < day],
                floors=floors,
            ),
            day_notes(sealed[day]) if day in sealed else (),
            _most(held.prompt_counts(day)),
        )
        for day in shown
    )


def _most(prompts: Sequence[PromptCounts]) -> tuple[PromptCounts, ...]:
    ordered = sorted(prompts, key=_size, reverse=True)
    return tuple(sorted(ordered[:VERSIONS_SHOWN]))


def _size(prompts: PromptCounts) -> int:
    return max(prompts.by_events or 0, prompts.by_counters or 0)


def _first_day(context: Context, environment: str) -> date:
    """Return the day on which the environment was created; imported evidence may be older."""
    entries = context.environments.audit_after(environment, after=None, count=1)
    created = (datetime.fromisoformat(orjson.loads(entry.text)["at"]) for _, entry in entries)
    began = (moment.date() for moment in created)
    return min((*began, *context.evidence.days(environment)), default=date.min)


def _source(found: SourceCounts) -> SourceHealth:
    return SourceHealth(
        producer=found.producer,
        version=found.version,
        counts=IntakeCounts.of(Counter(found.counts)),
        last_record_at=_moment(found.counts.get("last_record_s", 0)),
        ahead_seconds=found.counts.get("ahead_s"),
    )


def _still_enforcing(
    treated: Sequence[TreatedRecords], rollbacks: Sequence[Rollback]
) -> tuple[StillEnforcing, ...]:
    """Return the records that came after the newest lowering of their guard, from before it."""
    newest = {
        each.guard: (rollback.at, each.generation)
        for rollback in reversed(rollbacks)
        for each in rollback.lowerings
    }
    found: list[StillEnforcing] = []
    for each in treated:
        lowered = newest.get(each.guard)
        last_at = _moment(each.last_second)
        if lowered is None or last_at is None:
            continue
        at, generation = lowered
        if each.generation < generation and last_at > at:
            told = (each.guard, each.mode, each.generation, each.records, last_at)
            found.append(StillEnforcing(*told))
    return tuple(found)


def _moment(second: int) -> datetime | None:
    return datetime.fromtimestamp(second, UTC) if second else None
