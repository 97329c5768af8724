"""Telemetry sink: events and counts for the SDK, whose errors never reach the host's code."""

import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar

from opentelemetry import metrics
from opentelemetry._logs import Logger, LoggerProvider, NoOpLogger, get_logger
from opentelemetry.metrics import Counter, Meter, MeterProvider, NoOpMeter

from guardwave.control_plane.client.attributes import InvalidValue
from guardwave.reducer import contract

Attributes: TypeAlias = Mapping[str, str | bool | int | float | Sequence[str]]
Labels: TypeAlias = Mapping[str, str]

Arguments = ParamSpec("Arguments")

# For an SDK without exponential buckets; prompts of agents take from seconds to an hour.
_DURATION_BOUNDS_SECONDS = (
    *(0.5, 1.0, 2.0, 3.0, 5.0, 7.5, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 90.0),
    *(120.0, 180.0, 300.0, 450.0, 600.0, 900.0, 1800.0, 3600.0),
)

_log = logging.getLogger(__name__)


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
    """Guarded calls of the SDK; `failures` counts the events, counts and values it dropped.

    The reason is logged as a warning, once for each field and each part of the SDK. There is no
    lock: with threads `failures` may miss a few, but it is zero only if there were none.
    """

    def __init__(
        self,
        logger_provider: LoggerProvider | None,
        meter_provider: MeterProvider | None,
        now_ns: Callable[[], int],
    ) -> None:
        self.failures = 0
        self._logged_fields: set[str] = set()
        self._now_ns = now_ns
        self._logger = self._open_logger(logger_provider)
        self.instruments = self._open_instruments(meter_provider)

    def emit(self, event_name: str, attributes: Attributes) -> None:
        """Pass one event to the SDK, with the present time."""
        try:
            now_ns = self._now_ns()
            self._logger.emit(
                timestamp=now_ns,
                observed_timestamp=now_ns,
                event_name=event_name,
                attributes=attributes,
            )
        except Exception as error:  # noqa: BLE001  # an exporter of the host's must not end a prompt
            self._drop_for_sdk_error("an event", error)

    def add(self, counter: Counter, amount: int, labels: Labels) -> None:
        """Add to a counter."""
        try:
            counter.add(amount, labels)
        except Exception as error:  # noqa: BLE001  # as above
            self._drop_for_sdk_error("a counter", error)

    def record_duration(self, seconds: float, labels: Labels) -> None:
        """Record how long a prompt took."""
        try:
            self.instruments.duration.record(seconds, labels)
        except Exception as error:  # noqa: BLE001  # as above
            self._drop_for_sdk_error("a duration", error)

    def drop(self, field: str, why: str) -> None:
        """Count a dropped value, and log the reason the first time for this field."""
        self.failures += 1
        if field in self._logged_fields:
            return
        # Noted before logging: the log handler may itself report through this sink.
        self._logged_fields.add(field)
        with contextlib.suppress(Exception):
            _log.warning(
                "not reported: %s (logged once; GuardTelemetry.failures counts each time)", why
            )

    def drop_invalid(self, error: InvalidValue) -> None:
        """Drop a value of the host."""
        self.drop(error.field, str(error))

    def _drop_for_sdk_error(self, part: str, error: Exception) -> None:
        # Without the error's text: an exporter may repeat the content that it could not send.
        why = (
            f"the OpenTelemetry SDK raised {type(error).__name__} for {part}; see how it is set up"
        )
        self.drop(f"SDK: {part}", why)

    def _open_logger(self, provider: LoggerProvider | None) -> Logger:
        try:
            return get_logger(contract.SCOPE, contract.SCOPE_VERSION, logger_provider=provider)
        except Exception as error:  # noqa: BLE001  # nor keep the host from starting
            self._drop_for_sdk_error("its logger", error)
            return NoOpLogger(contract.SCOPE, contract.SCOPE_VERSION)

    def _open_instruments(self, provider: MeterProvider | None) -> Instruments:
        try:
            return Instruments(
                metrics.get_meter(contract.SCOPE, contract.SCOPE_VERSION, meter_provider=provider)
            )
        except Exception as error:  # noqa: BLE001  # as above
            self._drop_for_sdk_error("its instruments", error)
            return Instruments(NoOpMeter(contract.SCOPE, contract.SCOPE_VERSION))


class Reporter(Protocol):
    """An object that reports through a sink."""

    _sink: Sink


AnyReporter = TypeVar("AnyReporter", bound=Reporter)


def swallow_errors(
    method: Callable[Concatenate[AnyReporter, Arguments], None],
) -> Callable[Concatenate[AnyReporter, Arguments], None]:
    """Wrap a reporter's method: its errors are counted and logged, and not raised.

    A host's code may pass values that no type checker has seen; they must not end an agent's turn.
    """

    @wraps(method)
    def wrapper(
        reporter: AnyReporter, /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> None:
        try:
            method(reporter, *args, **kwargs)
        except InvalidValue as error:
            reporter._sink.drop_invalid(error)  # noqa: SLF001  # wraps a method of the reporter
        except Exception as error:  # noqa: BLE001  # as above
            name = method.__qualname__
            why = f"{name} failed with {type(error).__name__}; see what it is given"
            reporter._sink.drop(name, why)  # noqa: SLF001  # as above

    return wrapper
