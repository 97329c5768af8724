"""Counter volumes: the transitions and tool executions that a rollout's hosts counted."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from hashlib import sha256

from guardwave.control_plane.queries.evidence import DayRange
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.rollouts.loading import load_rollout
from guardwave.control_plane.stores.evidence.pages import CounterTotal
from guardwave.reducer import contract
from guardwave.reducer.vocabulary import ExecutionStatus, Mode

RECENT_DAYS = 14
# The name under which the store sums the rest when a stratum and day have too many counters.
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
    """The number of transitions with these values, in the order of the requested dimensions.

    None is a label or a mode that the points lack.
    """

    values: tuple[str | None, ...]
    transitions: int

    @property
    def cursor(self) -> str:
        """A digest of the values, 16 hexadecimal digits."""
        return _cursor(self.values)


@dataclass(frozen=True, slots=True)
class TransitionVolume:
    """Counts in the order of their values; `shared` counts of any kind are no longer separate."""

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
    """Count the transitions of these days, by default the last 14, by dimensions.

    Raises:
        NotFound: no such environment or rollout.
        RuleViolated: the days end before they begin.
    """
    counts: Counter[tuple[str | None, ...]] = Counter()
    shared = 0
    for item in _counter_totals(context, environment, guard, days):
        metric, labels = _parse(item.counter)
        if metric == contract.TRANSITIONS_METRIC:
            counts[tuple(_value(dimension, item, labels) for dimension in by)] += item.total
        elif item.counter == _SHARED:
            shared += item.total
    transitions = (TransitionCount(*entry) for entry in counts.items())
    ordered = tuple(sorted(transitions, key=lambda row: [value or "" for value in row.values]))
    return TransitionVolume(ordered, counts.total(), shared)


def execution_counts(
    context: Context, environment: str, guard: str, *, days: DayRange
) -> tuple[ExecutionCount, ...]:
    """Count tool executions by day, version and mode; days and errors as for transitions."""
    counts: defaultdict[tuple[date, str, Mode | None], Counter[str]] = defaultdict(Counter)
    for item in _counter_totals(context, environment, guard, days):
        metric, labels = _parse(item.counter)
        if metric == contract.EXECUTIONS_METRIC:
            group = (item.day, item.stratum.version, item.stratum.mode)
            counts[group][labels.get("execution.status", "")] += item.total
    executions = (
        ExecutionCount(*group, statuses[ExecutionStatus.SUCCESS], statuses[ExecutionStatus.ERROR])
        for group, statuses in counts.items()
    )
    return tuple(sorted(executions, key=lambda row: (row.day, row.version, row.mode or "")))


def _counter_totals(
    context: Context, environment: str, guard: str, days: DayRange
) -> Iterator[CounterTotal]:
    load_rollout(context, environment, guard)
    if days == DayRange(None, None):
        today = context.clock.now().date()
        days = DayRange(today - timedelta(days=RECENT_DAYS - 1), None)
    selected = days.select(context.evidence.days(environment))
    strata = [
        stratum
        for stratum in context.pages.strata(environment)
        if stratum.stratum.guard == guard and stratum.stratum.cohort is None
    ]
    for day in selected:
        yield from context.pages.counters(environment, strata, day)


def _parse(counter: str) -> tuple[str, dict[str, str]]:
    """Return the metric and the labels in a counter's name, as intake wrote it."""
    metric, _, text = counter.removesuffix("}").partition("{")
    pairs = (pair.partition("=") for pair in text.split(",") if pair)
    return metric, {label: value for label, _, value in pairs}


def _value(dimension: Dimension, item: CounterTotal, labels: dict[str, str]) -> str | None:
    match dimension:
        case Dimension.DAY:
            return item.day.isoformat()
        case Dimension.VERSION:
            return item.stratum.version
        case Dimension.MODE:
            return item.stratum.mode
        case _:
            return labels.get(_LABELS[dimension])


def _cursor(values: Sequence[str | None]) -> str:
    key = "\x00".join("\x01" if value is None else value for value in values)
    return sha256(key.encode()).hexdigest()[:16]
