"""Failing telemetry: without an SDK, or with a broken one, the host notices nothing."""

import pytest
from opentelemetry._logs import LoggerProvider as LoggerProviderApi
from opentelemetry.metrics import Counter, Histogram, NoOpMeter
from opentelemetry.metrics import MeterProvider as MeterProviderApi
from opentelemetry.sdk._logs import LoggerProvider, LogRecordProcessor
from opentelemetry.sdk._logs.export import LogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from guardwave.control_plane.client import Assignments, GuardTelemetry, PromptEnd
from guardwave.reducer.contract import PROMPT_END, SEQUENCE, TRANSITION, TRANSITIONS
from guardwave.reducer.vocabulary import (
    DisruptionKind,
    ExecutionStatus,
    Invariant,
    LoopType,
    Mode,
    Outcome,
)
from tests.control_plane.client.telemetry_doors import ASSIGNED, DUPLICATE, STOP, TRACKED, Door


class Broken(RuntimeError):
    """What a broken exporter raises."""


class RaisingProcessor(LogRecordProcessor):
    """A processor of the host's that fails on every record, in the thread that emits it."""

    def on_emit(self, log_record):
        raise Broken

    def shutdown(self):
        pass

    def force_flush(self, timeout_millis=30_000):
        return True


class FailingOnThird(LogRecordProcessor):
    """A processor that loses one record."""

    def __init__(self):
        self.seen = 0
        self.kept = []

    def on_emit(self, log_record):
        self.seen += 1
        if self.seen == 3:
            raise Broken
        self.kept.append(log_record.log_record)

    def shutdown(self):
        pass

    def force_flush(self, timeout_millis=30_000):
        return True


class RaisingExporter(LogRecordExporter):
    """An exporter that fails on every batch."""

    def export(self, batch):
        raise Broken

    def shutdown(self):
        pass

    def force_flush(self, timeout_millis=30_000):
        return True


class NoLoggers(LoggerProviderApi):
    """A provider that can't make a logger."""

    def get_logger(self, *_, **__):
        raise Broken


class NoMeters(MeterProviderApi):
    """A provider that can't make a meter."""

    def get_meter(self, *_, **__):
        raise Broken


class RaisingInstrument(Counter, Histogram):
    """An instrument that fails on every measurement."""

    def __init__(self):
        pass

    def add(self, amount, attributes=None, context=None):
        raise Broken

    def record(self, amount, attributes=None, context=None):
        raise Broken


class RaisingMeters(MeterProviderApi):
    """A provider whose instruments fail on every measurement."""

    def get_meter(self, *_, **__):
        return RaisingMeter("agent.guard")


class RaisingMeter(NoOpMeter):
    """A meter that makes such instruments."""

    def create_counter(self, *_, **__):
        return RaisingInstrument()

    def create_histogram(self, *_, **__):
        return RaisingInstrument()


def report_whole_prompt(telemetry):
    """Call every method there is."""
    telemetry.evaluated(ASSIGNED[0])
    prompt = telemetry.prompt(assignments=ASSIGNED)
    prompt.started()
    prompt.decided([TRACKED, STOP], is_history_preserved=False)
    prompt.executed(ExecutionStatus.SUCCESS)
    prompt.violated(DUPLICATE, Invariant.EXISTING_GUARD_CHANGED)
    prompt.loop_detected(LoopType.SIDE_EFFECT_DUPLICATE)
    end = PromptEnd(Outcome.FAILED, duration_seconds=1.0, turns=1, input_tokens=1, output_tokens=1)
    prompt.ended(end)
    prompt.disrupted(DisruptionKind.DISCONNECT, offset_seconds=1.0)


def logs_with(processor):
    provider = LoggerProvider(shutdown_on_exit=False)
    provider.add_log_record_processor(processor)
    return provider


def test_without_an_sdk_every_call_does_nothing():
    telemetry = GuardTelemetry()
    report_whole_prompt(telemetry)
    assert telemetry.failures == 0


def test_a_processor_that_raises_on_every_record_stops_nobody():
    telemetry = GuardTelemetry(logger_provider=logs_with(RaisingProcessor()))
    report_whole_prompt(telemetry)
    assert telemetry.failures == 7


def test_an_exporter_that_raises_stops_nobody(caplog):
    telemetry = GuardTelemetry(
        logger_provider=logs_with(SimpleLogRecordProcessor(RaisingExporter()))
    )
    report_whole_prompt(telemetry)
    assert "Broken" in caplog.text


@pytest.mark.parametrize(
    ("providers", "failures"),
    [
        pytest.param({"logger_provider": NoLoggers()}, 1, id="no logger can be made"),
        pytest.param({"meter_provider": NoMeters()}, 1, id="no meter can be made"),
        pytest.param(
            {"meter_provider": RaisingMeters()},
            2 * 7 + 2 + 1,
            id="every measurement fails",
        ),
        pytest.param(
            {
                "logger_provider": NoLoggers(),
                "meter_provider": RaisingMeters(),
            },
            1 + 2 * 7 + 2 + 1,
            id="nothing works",
        ),
    ],
)
def test_whatever_breaks_is_counted_and_stops_nobody(providers, failures):
    telemetry = GuardTelemetry(**providers)
    report_whole_prompt(telemetry)
    assert telemetry.failures == failures


def test_a_clock_that_raises_stops_nobody():
    def broken():
        raise Broken

    telemetry = GuardTelemetry(now_ns=broken)
    report_whole_prompt(telemetry)
    assert telemetry.failures == 7


def test_a_record_that_is_lost_leaves_a_gap_that_the_end_admits():
    processor = FailingOnThird()
    telemetry = GuardTelemetry(logger_provider=logs_with(processor))
    prompt = telemetry.prompt(assignments=ASSIGNED)
    prompt.decided([TRACKED, TRACKED, TRACKED, STOP])
    prompt.ended(PromptEnd(Outcome.COMPLETED))
    reported = [
        (record.event_name, record.attributes.get(SEQUENCE), record.attributes.get(TRANSITIONS))
        for record in processor.kept
    ]
    assert reported == [
        (TRANSITION, 1, None),
        (TRANSITION, 2, None),
        (TRANSITION, 4, None),
        (PROMPT_END, None, 4),
    ]


def test_after_the_sdk_was_shut_down_nothing_raises():
    door = Door()
    door.close()
    report_whole_prompt(door.telemetry)
    assert door.events() == []


def test_counters_without_a_reader_that_listens_cost_nothing():
    telemetry = GuardTelemetry(
        meter_provider=MeterProvider(
            metric_readers=[InMemoryMetricReader()], shutdown_on_exit=False
        )
    )
    report_whole_prompt(telemetry)
    assert telemetry.failures == 0


def test_an_interrupt_is_not_swallowed():
    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        GuardTelemetry(now_ns=interrupted).prompt(assignments=ASSIGNED).started()


def test_resolving_a_mode_reports_its_evaluation_and_never_fails_for_it():
    door = Door()
    asked = Assignments(
        "http://127.0.0.1:1", "gw_x_y", "internal", service_version="1", telemetry=door.telemetry
    )
    assert asked.resolve(DUPLICATE, "workspace-1").mode is Mode.SHADOW
    ((name, attributes),) = door.events()
    assert (name, attributes["feature_flag.result.variant"]) == (
        "feature_flag.evaluation",
        "shadow",
    )
    broken = Assignments(
        "http://127.0.0.1:1",
        "gw_x_y",
        "internal",
        service_version="1",
        telemetry=GuardTelemetry(logger_provider=logs_with(RaisingProcessor())),
    )
    assert broken.resolve(DUPLICATE, "workspace-1").mode is Mode.SHADOW
    asked.close()
    broken.close()
    door.close()
