"""Whether telemetry arrives as it should: what was taken in, what was not, and from whom."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from control_plane.commands.changes import load_environment
from control_plane.context import Context
from control_plane.queries.days import floor_of
from control_plane.state import Rollback
from control_plane.stores.evidence_events import UNTRUSTED_VIOLATION, UNVOUCHED_VIOLATION
from control_plane.stores.intake_health import SourceCounts, TreatedRecords
from reducer.rollout.days import COMPARED_DAYS, day_notes, why_incomplete
from reducer.rollout.state import EvidenceSource
from reducer.vocabulary import Mode

# A clock that is right is ahead by what two clocks differ, and behind by an export's interval.
AHEAD_S, BEHIND_S = 30, 900
DAYS_SHOWN = 14


@dataclass(frozen=True, slots=True)
class IntakeCounts:
    """Counters of intake since it began.

    `refused`, `quarantined` and `ignored` are by reason, the two kinds of violation by invariant:
    those that no trusted producer, and those that no assignment id vouches for, change nothing.
    `streams` counts, of streams of metric points, each `reset`, `gap`, `conflict` of two writers,
    `fall` without a new start, `unknown_start` and `forgotten` point; `overflow` what was counted
    under `other`. `unreliable_prompts` are those whose host cannot tell failures apart.
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

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> "IntakeCounts":
        """Return the counters of their stored names."""

        def by_word(kind: str) -> dict[str, int]:
            prefix = f"{kind}:"
            return {
                name.removeprefix(prefix): many
                for name, many in sorted(counts.items())
                if name.startswith(prefix) and many
            }

        return cls(
            accepted=counts.get("accepted", 0),
            duplicate=counts.get("duplicate", 0),
            refused=by_word("refused"),
            quarantined=by_word("quarantined"),
            ignored=by_word("ignored"),
            streams=by_word("streams"),
            overflow=by_word("overflow"),
            untrusted_violations=by_word(UNTRUSTED_VIOLATION),
            unvouched_violations=by_word(UNVOUCHED_VIOLATION),
            unreliable_prompts=counts.get("unreliable_prompts", 0),
            dropped_attributes=counts.get("dropped_attributes", 0),
        )


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

    `notes` say what counters do not tell exactly of it, complete or not.
    """

    day: date
    reason: str | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class IntakeHealth:
    """The telemetry of one environment, `sources` by producer and version."""

    environment: str
    counts: IntakeCounts
    last_record_at: datetime | None
    sources: tuple[SourceHealth, ...]
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
        sources=tuple(_source(each) for each in context.intake.sources(environment)),
        still_enforcing=_still_enforcing(context.intake.treated(environment), rollbacks),
        days=environment_days(context, environment),
    )


def environment_days(
    context: Context, environment: str, source: EvidenceSource = EvidenceSource.EVENTS
) -> tuple[DayHealth, ...]:
    """Return the last 14 days that are over, newest last, whatever waves they lie in."""
    today = context.clock.now().date()
    back = range(DAYS_SHOWN + COMPARED_DAYS, 0, -1)
    looked_at = [today - timedelta(days=at) for at in back]
    sealed = {
        each.day: each for each in context.evidence.sealed_days(environment, looked_at, source)
    }
    floor = floor_of(context, environment, source)
    return tuple(
        DayHealth(
            day,
            why_incomplete(
                sealed.get(day),
                [each for each in sealed.values() if each.day < day],
                coverage_floor=floor,
            ),
            day_notes(sealed[day]) if day in sealed else (),
        )
        for day in looked_at[-DAYS_SHOWN:]
    )


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
