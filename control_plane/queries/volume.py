"""What counters of a rollout's hosts say: transitions by any of their labels, and executions."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from hashlib import sha256

from control_plane.commands.changes import load_rollout
from control_plane.context import Context
from control_plane.queries.evidence import DayRange
from control_plane.stores.evidence_pages import Counted
from reducer import contract
from reducer.vocabulary import ExecutionStatus, Mode

RECENT_DAYS = 14
# What the store adds up under one name when a cell and day have too many counters.
_SHARED = "other"


class Dimension(StrEnum):
    """What transitions can be told apart by."""

    DAY = "day"
    VERSION = "version"
    MODE = "mode"
    ROUTE = "route"
    PHASE_FROM = "phase_from"
    PHASE_TO = "phase_to"
    DECISION = "decision"
    RESET_REASON = "reset_reason"
    FAILURE_COUNT = "failure_count_bucket"
    BATCH_COUNT = "batch_count_bucket"
    TOOL_TYPE = "tool_type"
    TERMINAL_STATUS = "terminal_status"
    EXECUTION_STATUS = "execution_status"


_LABELS = {
    Dimension.ROUTE: "route",
    Dimension.PHASE_FROM: "phase.from",
    Dimension.PHASE_TO: "phase.to",
    Dimension.DECISION: "decision",
    Dimension.RESET_REASON: "reset.reason",
    Dimension.FAILURE_COUNT: "failure_count.bucket",
    Dimension.BATCH_COUNT: "batch_count.bucket",
    Dimension.TOOL_TYPE: "tool.type",
    Dimension.TERMINAL_STATUS: "terminal.status",
    Dimension.EXECUTION_STATUS: "execution.status",
}


@dataclass(frozen=True, slots=True)
class TransitionCount:
    """How many transitions had these values, in the order of the dimensions asked for.

    None is a label that the points do not carry, or a mode that they do not name.
    """

    values: tuple[str | None, ...]
    transitions: int

    @property
    def cursor(self) -> str:
        """A digest of the values, 16 hexadecimal digits."""
        return _cursor(self.values)


@dataclass(frozen=True, slots=True)
class TransitionVolume:
    """Counts in the order of their values; `shared` counts of any kind were told apart no more."""

    counts: tuple[TransitionCount, ...]
    total: int
    shared: int


@dataclass(frozen=True, slots=True)
class ExecutionCount:
    """Tool executions of a day, version and mode. A cancelled one is no execution."""

    day: date
    version: str
    mode: Mode | None
    success: int
    error: int

    @property
    def error_share(self) -> float | None:
        """The execution SLI: failed of all, None of none."""
        executed = self.success + self.error
        return self.error / executed if executed else None

    @property
    def cursor(self) -> str:
        """A digest of day, version and mode, 16 hexadecimal digits."""
        return _cursor((self.day.isoformat(), self.version, self.mode))


def transition_volume(
    context: Context, environment: str, guard: str, *, days: DayRange, by: Sequence[Dimension]
) -> TransitionVolume:
    """Count the transitions of days, the last 14 where none are named, by dimensions.

    Raises:
        NotFound: no such environment or rollout.
        RuleViolated: the days end before they begin.
    """
    counts: Counter[tuple[str | None, ...]] = Counter()
    shared = 0
    for told in _counted(context, environment, guard, days):
        metric, labels = _read(told.counter)
        if metric == contract.TRANSITIONS_METRIC:
            counts[tuple(_value(each, told, labels) for each in by)] += told.total
        elif told.counter == _SHARED:
            shared += told.total
    found = (TransitionCount(*each) for each in counts.items())
    ordered = tuple(sorted(found, key=lambda each: [value or "" for value in each.values]))
    return TransitionVolume(ordered, counts.total(), shared)


def execution_counts(
    context: Context, environment: str, guard: str, *, days: DayRange
) -> tuple[ExecutionCount, ...]:
    """Count tool executions by day, version and mode; days and errors as for transitions."""
    counts: defaultdict[tuple[date, str, Mode | None], Counter[str]] = defaultdict(Counter)
    for told in _counted(context, environment, guard, days):
        metric, labels = _read(told.counter)
        if metric == contract.EXECUTIONS_METRIC:
            of = (told.day, told.cell.version, told.cell.mode)
            counts[of][labels.get("execution.status", "")] += told.total
    found = (
        ExecutionCount(*of, told[ExecutionStatus.SUCCESS], told[ExecutionStatus.ERROR])
        for of, told in counts.items()
    )
    return tuple(sorted(found, key=lambda each: (each.day, each.version, each.mode or "")))


def _counted(context: Context, environment: str, guard: str, days: DayRange) -> Iterator[Counted]:
    load_rollout(context, environment, guard)
    if days == DayRange(None, None):
        today = context.clock.now().date()
        days = DayRange(today - timedelta(days=RECENT_DAYS - 1), None)
    held = days.held(context.evidence.days(environment))
    cells = [
        each
        for each in context.pages.cells(environment)
        if each.cell.guard == guard and each.cell.cohort is None
    ]
    for day in held:
        yield from context.pages.counters(environment, cells, day)


def _read(counter: str) -> tuple[str, dict[str, str]]:
    """Return the metric and the labels of a counter's name, as intake wrote it."""
    metric, _, told = counter.removesuffix("}").partition("{")
    pairs = (pair.partition("=") for pair in told.split(",") if pair)
    return metric, {label: value for label, _, value in pairs}


def _value(dimension: Dimension, told: Counted, labels: dict[str, str]) -> str | None:
    match dimension:
        case Dimension.DAY:
            return told.day.isoformat()
        case Dimension.VERSION:
            return told.cell.version
        case Dimension.MODE:
            return told.cell.mode
        case _:
            return labels.get(_LABELS[dimension])


def _cursor(values: Sequence[str | None]) -> str:
    named = "\x00".join("\x01" if value is None else value for value in values)
    return sha256(named.encode()).hexdigest()[:16]
