"""Where events and counts leave the host: nothing that happens there comes back as an error."""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar

from opentelemetry import metrics
from opentelemetry._logs import Logger, LoggerProvider, NoOpLogger, get_logger
from opentelemetry.metrics import Counter, Meter, MeterProvider, NoOpMeter

from reducer import contract

Attributes: TypeAlias = Mapping[str, str | bool | int | float | Sequence[str]]
Labels: TypeAlias = Mapping[str, str]

Given = ParamSpec("Given")

# For an SDK that is not set to exponential buckets: agent prompts take seconds to an hour.
_DURATION_BOUNDS_SECONDS = (
    *(0.5, 1.0, 2.0, 3.0, 5.0, 7.5, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 90.0),
    *(120.0, 180.0, 300.0, 450.0, 600.0, 900.0, 1800.0, 3600.0),
)


class Instruments:
    """The counters and the histogram of the contract, of one meter."""

    def __init__(self, meter: Meter) -> None:
        self.transitions = meter.create_counter(contract.TRANSITIONS_METRIC, "{transition}")
        self.executions = meter.create_counter(contract.EXECUTIONS_METRIC, "{call}")
        self.prompts = meter.create_counter(contract.PROMPTS_METRIC, "{prompt}")
        self.tokens = meter.create_counter(contract.TOKENS_METRIC, "{token}")
        self.turns = meter.create_counter(contract.TURNS_METRIC, "{turn}")
        self.disruptions = meter.create_counter(contract.DISRUPTIONS_METRIC, "{prompt}")
        self.violations = meter.create_counter(contract.VIOLATIONS_METRIC, "{violation}")
        self.duration = meter.create_histogram(
            contract.DURATION_METRIC,
            "s",
            explicit_bucket_boundaries_advisory=_DURATION_BOUNDS_SECONDS,
        )


class Sink:
    """The SDK behind the API, with every call guarded; `failures` counts what it refused.

    It holds no lock: under threads `failures` may miss a few, and is zero only if there were none.
    """

    def __init__(
        self,
        logger_provider: LoggerProvider | None,
        meter_provider: MeterProvider | None,
        now_ns: Callable[[], int],
    ) -> None:
        self.failures = 0
        self._now_ns = now_ns
        self._logger = self._open_logger(logger_provider)
        self.instruments = self._open_instruments(meter_provider)

    def emit(self, event_name: str, attributes: Attributes) -> None:
        """Hand one event to the SDK, with the time of now."""
        try:
            now_ns = self._now_ns()
            self._logger.emit(
                timestamp=now_ns,
                observed_timestamp=now_ns,
                event_name=event_name,
                attributes=attributes,
            )
        except Exception:  # noqa: BLE001  # an exporter of the host's must not end a prompt
            self.failures += 1

    def add(self, counter: Counter, amount: int, labels: Labels) -> None:
        """Add to a counter."""
        try:
            counter.add(amount, labels)
        except Exception:  # noqa: BLE001  # as above
            self.failures += 1

    def took(self, seconds: float, labels: Labels) -> None:
        """Record how long a prompt took."""
        try:
            self.instruments.duration.record(seconds, labels)
        except Exception:  # noqa: BLE001  # as above
            self.failures += 1

    def _open_logger(self, provider: LoggerProvider | None) -> Logger:
        try:
            return get_logger(contract.SCOPE, contract.SCOPE_VERSION, logger_provider=provider)
        except Exception:  # noqa: BLE001  # nor keep the host from starting
            self.failures += 1
            return NoOpLogger(contract.SCOPE, contract.SCOPE_VERSION)

    def _open_instruments(self, provider: MeterProvider | None) -> Instruments:
        try:
            return Instruments(
                metrics.get_meter(contract.SCOPE, contract.SCOPE_VERSION, meter_provider=provider)
            )
        except Exception:  # noqa: BLE001  # as above
            self.failures += 1
            return Instruments(NoOpMeter(contract.SCOPE, contract.SCOPE_VERSION))


class Reporter(Protocol):
    """What reports through a sink."""

    _sink: Sink


AnyReporter = TypeVar("AnyReporter", bound=Reporter)


def never_raising(
    method: Callable[Concatenate[AnyReporter, Given], None],
) -> Callable[Concatenate[AnyReporter, Given], None]:
    """Wrap a reporter's method: what goes wrong in it is counted in `failures` and goes no further.

    A host's code may pass what no type checker has seen; an agent's turn must not end for it.
    """

    @wraps(method)
    def counting(reporter: AnyReporter, /, *args: Given.args, **kwargs: Given.kwargs) -> None:
        try:
            method(reporter, *args, **kwargs)
        except Exception:  # noqa: BLE001  # as above
            reporter._sink.failures += 1  # noqa: SLF001  # a method of the reporter's own

    return counting
