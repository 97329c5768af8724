"""Where events and counts leave the host: nothing that happens there comes back as an error."""

import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar

from opentelemetry import metrics
from opentelemetry._logs import Logger, LoggerProvider, NoOpLogger, get_logger
from opentelemetry.metrics import Counter, Meter, MeterProvider, NoOpMeter

from control_plane.client.words import Unfit
from reducer import contract

Attributes: TypeAlias = Mapping[str, str | bool | int | float | Sequence[str]]
Labels: TypeAlias = Mapping[str, str]

Given = ParamSpec("Given")

# For an SDK that is not set to exponential buckets: agent prompts take seconds to an hour.
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
    """The SDK behind the API, with every call guarded; `failures` counts what was dropped.

    Why is logged once for each field and each door of the SDK, as a warning. It holds no lock:
    under threads `failures` may miss a few, and is zero only if there were none.
    """

    def __init__(
        self,
        logger_provider: LoggerProvider | None,
        meter_provider: MeterProvider | None,
        now_ns: Callable[[], int],
    ) -> None:
        self.failures = 0
        self._told: set[str] = set()
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
        except Exception as error:  # noqa: BLE001  # an exporter of the host's must not end a prompt
            self._broken("an event", error)

    def add(self, counter: Counter, amount: int, labels: Labels) -> None:
        """Add to a counter."""
        try:
            counter.add(amount, labels)
        except Exception as error:  # noqa: BLE001  # as above
            self._broken("a counter", error)

    def took(self, seconds: float, labels: Labels) -> None:
        """Record how long a prompt took."""
        try:
            self.instruments.duration.record(seconds, labels)
        except Exception as error:  # noqa: BLE001  # as above
            self._broken("a duration", error)

    def drop(self, field: str, why: str) -> None:
        """Count something that is not reported, and say why: once, or a log would be full of it."""
        self.failures += 1
        if field in self._told:
            return
        # Before it is logged: a log may lead to this very SDK.
        self._told.add(field)
        with contextlib.suppress(Exception):
            _log.warning(
                "not reported: %s (said once; GuardTelemetry.failures counts each time)", why
            )

    def refuse(self, unfit: Unfit) -> None:
        """Drop a value of the host's."""
        self.drop(unfit.field, str(unfit))

    def _broken(self, door: str, error: Exception) -> None:
        # Its text is the host's: an exporter may repeat what it could not send.
        why = (
            f"the OpenTelemetry SDK raised {type(error).__name__} for {door}; see how it is set up"
        )
        self.drop(f"SDK: {door}", why)

    def _open_logger(self, provider: LoggerProvider | None) -> Logger:
        try:
            return get_logger(contract.SCOPE, contract.SCOPE_VERSION, logger_provider=provider)
        except Exception as error:  # noqa: BLE001  # nor keep the host from starting
            self._broken("its logger", error)
            return NoOpLogger(contract.SCOPE, contract.SCOPE_VERSION)

    def _open_instruments(self, provider: MeterProvider | None) -> Instruments:
        try:
            return Instruments(
                metrics.get_meter(contract.SCOPE, contract.SCOPE_VERSION, meter_provider=provider)
            )
        except Exception as error:  # noqa: BLE001  # as above
            self._broken("its instruments", error)
            return Instruments(NoOpMeter(contract.SCOPE, contract.SCOPE_VERSION))


class Reporter(Protocol):
    """What reports through a sink."""

    _sink: Sink


AnyReporter = TypeVar("AnyReporter", bound=Reporter)


def never_raising(
    method: Callable[Concatenate[AnyReporter, Given], None],
) -> Callable[Concatenate[AnyReporter, Given], None]:
    """Wrap a reporter's method: what goes wrong in it is counted and logged, and goes no further.

    A host's code may pass what no type checker has seen; an agent's turn must not end for it.
    """

    @wraps(method)
    def counting(reporter: AnyReporter, /, *args: Given.args, **kwargs: Given.kwargs) -> None:
        try:
            method(reporter, *args, **kwargs)
        except Unfit as unfit:
            reporter._sink.refuse(unfit)  # noqa: SLF001  # a method of the reporter's own
        except Exception as error:  # noqa: BLE001  # as above
            name = method.__qualname__
            why = f"{name} failed with {type(error).__name__}; see what it is given"
            reporter._sink.drop(name, why)  # noqa: SLF001  # as above

    return counting
