"""Intake health: the counts of an environment's telemetry, with remedies, sources and days.

First the counters of intake and their remedies, then the health of sources, processes and days.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import orjson

from guardwave.control_plane.core.reject_reasons import RejectReason
from guardwave.control_plane.core.state import Rollback
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.rollouts.days import floors_of
from guardwave.control_plane.rollouts.loading import load_environment
from guardwave.control_plane.stores.evidence.delta.request import (
    UNTRUSTED_VIOLATION,
    UNVERIFIED_VIOLATION,
)
from guardwave.control_plane.stores.evidence.intake_health import (
    WEAK_IDENTITY,
    InstanceCounts,
    SourceCounts,
    TreatedRecords,
)
from guardwave.control_plane.stores.evidence.sealed_days import PromptCounts
from guardwave.reducer import contract
from guardwave.reducer.rollout.days import COMPARED_DAYS, DayNote, day_notes, why_incomplete
from guardwave.reducer.rollout.state import EvidenceSource
from guardwave.reducer.vocabulary import Mode


@dataclass(frozen=True, slots=True)
class IntakeCounts:
    """Counters of intake since it began.

    `refused`, `quarantined` and `ignored` are by reason. Violations are by invariant; those from
    untrusted producers, and those without a verified assignment id, change nothing.

    `streams` counts events of metric streams: `reset`, `gap`, `conflict` of two writers, `fall`
    without a new start, `unknown_start`, `forgotten` points, points beyond an SDK's cardinality
    limit (`overflow`), and histograms with their own bounds (`explicit_bounds`). `overflow` counts
    what was summed under `other`. `unreliable_prompts` are those whose host cannot distinguish
    failures; `weak_identity` counts records, repeated ones too, whose Resource names no instance.
    """

    accepted: int
    duplicate: int
    refused: Mapping[str, int]
    quarantined: Mapping[str, int]
    ignored: Mapping[str, int]
    streams: Mapping[str, int]
    overflow: Mapping[str, int]
    untrusted_violations: Mapping[str, int]
    unvouched_violations: Mapping[str, int]
    unreliable_prompts: int
    dropped_attributes: int
    weak_identity: int

    @property
    def remedies(self) -> tuple[str, ...]:
        """Sentences: what to do about items that do not count, or report less than they could."""
        remedies = [
            *_of_reasons("quarantined", self.quarantined),
            *_of_reasons("refused", self.refused),
        ]
        if self.weak_identity:
            remedies.append(
                f"{_counted(self.weak_identity, 'record')} came without service.instance.id: set "
                "this resource attribute, another one for each process, or several processes may "
                "count as one stream"
            )
        explicit = self.streams.get("explicit_bounds", 0)
        if explicit:
            remedies.append(
                f"{_counted(explicit, 'point')} of {contract.DURATION_METRIC} came with bounds of "
                "its own, which show nothing of latency: let the SDK aggregate histograms as "
                "base2_exponential_bucket_histogram"
            )
        overflow = self.streams.get("overflow", 0)
        if overflow:
            remedies.append(
                f"{_counted(overflow, 'point')} came without attributes: raise the SDK's "
                "cardinality limit of the agent.guard counters, or use fewer attributes"
            )
        return tuple(remedies)

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> "IntakeCounts":
        """Return the counters from their stored names."""

        def by_reason(kind: str) -> dict[str, int]:
            prefix = f"{kind}:"
            return {
                name.removeprefix(prefix): count
                for name, count in sorted(counts.items())
                if name.startswith(prefix) and count
            }

        return cls(
            accepted=counts.get("accepted", 0),
            duplicate=counts.get("duplicate", 0),
            refused=by_reason("refused"),
            quarantined=by_reason("quarantined"),
            ignored=by_reason("ignored"),
            streams=by_reason("streams"),
            overflow=by_reason("overflow"),
            untrusted_violations=by_reason(UNTRUSTED_VIOLATION),
            unvouched_violations=by_reason(UNVERIFIED_VIOLATION),
            unreliable_prompts=counts.get("unreliable_prompts", 0),
            dropped_attributes=counts.get("dropped_attributes", 0),
            weak_identity=counts.get(WEAK_IDENTITY, 0),
        )


def _of_reasons(outcome: str, counts: Mapping[str, int]) -> list[str]:
    """Return a sentence with the remedy for each reason; causes in a host's set-up come first."""
    return [
        f"{_counted(counts[reason], 'item')} {'was' if counts[reason] == 1 else 'were'} {outcome} "
        f"({reason}): {reason.remedy}"
        for reason in RejectReason
        if reason in counts
    ]


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun if count == 1 else noun + 's'}"


# A right clock may be ahead by the difference of two clocks, and behind by an export's interval.
AHEAD_S, BEHIND_S = 30, 900
DAYS_SHOWN, VERSIONS_SHOWN = 14, 32


@dataclass(frozen=True, slots=True)
class SourceHealth:
    """The telemetry of one producer and version; the version is empty if none was named.

    `ahead_seconds` is how far the newest record of the last request was ahead of this clock,
    negative if behind; None if nothing was accepted.
    """

    producer: str
    version: str
    counts: IntakeCounts
    last_record_at: datetime | None
    ahead_seconds: int | None

    @property
    def is_skewed(self) -> bool:
        """Whether the producer's clock seems wrong, though its records are accepted."""
        ahead = self.ahead_seconds
        return ahead is not None and not -BEHIND_S <= ahead <= AHEAD_S


@dataclass(frozen=True, slots=True)
class StillEnforcing:
    """Records after a rollback with assignment ids from before it, of processes still running."""

    guard: str
    mode: Mode
    generation: int
    records: int
    last_at: datetime


@dataclass(frozen=True, slots=True)
class DayHealth:
    """One UTC day of the environment; `reason` says why it is not complete (yet).

    `notes` name inexact counts of the day, complete or not. `prompts` are the prompts reported by
    counters and events, by version; of more than 32 versions those with the most.
    """

    day: date
    reason: str | None
    notes: tuple[DayNote, ...] = ()
    prompts: tuple[PromptCounts, ...] = ()


@dataclass(frozen=True, slots=True)
class IntakeHealth:
    """The telemetry of one environment, `sources` by producer and version.

    `instances` are some of the faulty processes, worst first; `counts` has the faults of all.
    `days` are the last 14 that are over, or fewer in a younger environment.
    """

    environment: str
    counts: IntakeCounts
    last_record_at: datetime | None
    sources: tuple[SourceHealth, ...]
    instances: tuple[InstanceCounts, ...]
    still_enforcing: tuple[StillEnforcing, ...]
    days: tuple[DayHealth, ...]


def intake_health(context: Context, environment: str) -> IntakeHealth:
    """Return the health of the environment's telemetry.

    Raises:
        NotFound: no such environment.
    """
    load_environment(context, environment)
    counts = context.evidence.health(environment)
    rollbacks = context.incidents.rollbacks(environment)
    return IntakeHealth(
        environment=environment,
        counts=IntakeCounts.of(counts),
        last_record_at=_moment(counts.get("last_record_s", 0)),
        sources=_sources(context, environment),
        instances=context.intake.instances(environment),
        still_enforcing=_still_enforcing(context.intake.treated_records(environment), rollbacks),
        days=environment_days(context, environment),
    )


def sources_of(context: Context, environment: str) -> tuple[SourceHealth, ...]:
    """Return the health of each producer and version.

    Raises:
        NotFound: no such environment.
    """
    load_environment(context, environment)
    return _sources(context, environment)


def _sources(context: Context, environment: str) -> tuple[SourceHealth, ...]:
    return tuple(_source(source) for source in context.intake.sources(environment))


def environment_days(
    context: Context, environment: str, source: EvidenceSource = EvidenceSource.EVENTS
) -> tuple[DayHealth, ...]:
    """Return the last 14 days that are over, of any wave, newest last.

    There are fewer while the environment is younger than that.
    """
    today = context.clock.now().date()
    back = range(DAYS_SHOWN + COMPARED_DAYS, 0, -1)
    candidates = [today - timedelta(days=at) for at in back]
    first = _first_day(context, environment)
    stored_days = context.evidence.stored_days(environment, candidates)
    sealed = {stored.day: stored for stored in stored_days.sealed(source)}
    floors = floors_of(context, environment, source)
    shown = [day for day in candidates[-DAYS_SHOWN:] if day >= first]
    return tuple(
        DayHealth(
            day,
            why_incomplete(
                sealed.get(day),
                [stored for stored in sealed.values() if stored.day < day],
                floors=floors,
            ),
            day_notes(sealed[day]) if day in sealed else (),
            _most(stored_days.prompt_counts(day)),
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
    """Return records of older generations that came after the newest demotion of their guard."""
    newest = {
        lowering.guard: (rollback.at, lowering.generation)
        for rollback in reversed(rollbacks)
        for lowering in rollback.lowerings
    }
    found: list[StillEnforcing] = []
    for counts in treated:
        lowered = newest.get(counts.guard)
        last_at = _moment(counts.last_second)
        if lowered is None or last_at is None:
            continue
        at, generation = lowered
        if counts.generation < generation and last_at > at:
            found.append(
                StillEnforcing(
                    counts.guard, counts.mode, counts.generation, counts.records, last_at
                )
            )
    return tuple(found)


def _moment(second: int) -> datetime | None:
    return datetime.fromtimestamp(second, UTC) if second else None
