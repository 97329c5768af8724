"""Rejected items: each counts once in health, in any body and however often it comes."""

import itertools
from collections.abc import Callable, Sequence
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)

from guardwave.control_plane.core.clock import to_ns
from guardwave.control_plane.core.otlp_request import Encoding
from guardwave.control_plane.ingest.model.otlp_values import Value
from tests.support.hosts import Prompt, Request, logs, partial_of
from tests.support.otlp.bodies import counter_request
from tests.support.worlds import ENVIRONMENT, NOW

AT = NOW - timedelta(hours=2)
TWICE = (Encoding.PROTOBUF, Encoding.PROTOBUF)
IN_BOTH = (Encoding.PROTOBUF, Encoding.JSON)
_salts = itertools.count()
KINDS = ("refused", "quarantined", "duplicate", "overflow")


def told_of(context) -> dict[str, int]:
    """Return what health counts of items that are rejected, quarantined or repeated."""
    counted = context.evidence.health(ENVIRONMENT)
    return {
        name: many for name, many in counted.items() if many and name.partition(":")[0] in KINDS
    }


def starts(*names: str, at=AT, **options) -> ExportLogsServiceRequest:
    """Return starts of prompts that are rejected, if for nothing else, for a forged id."""
    return logs([Prompt(name, ["a1.forged"], at).start() for name in names], **options)


def without_time() -> ExportLogsServiceRequest:
    request = starts("p-1", "p-2")
    for record in request.resource_logs[0].scope_logs[0].log_records:
        record.time_unix_nano = 0
    return request


def of_repeated_keys() -> ExportLogsServiceRequest:
    request = starts("p-1", "p-2")
    for record in request.resource_logs[0].scope_logs[0].log_records:
        record.attributes.append(record.attributes[0])
    return request


def old_counts() -> ExportMetricsServiceRequest:
    then = to_ns(NOW - timedelta(hours=60))
    request = counter_request({}, start_time_unix_nano=then - 1, time_unix_nano=then, as_int=1)
    metric = request.resource_metrics[0].scope_metrics[0].metrics[0]
    metric.sum.data_points.add(start_time_unix_nano=then, time_unix_nano=then + 1, as_int=1)
    return request


def gauges() -> ExportMetricsServiceRequest:
    request = old_counts()
    metric = request.resource_metrics[0].scope_metrics[0].metrics[0]
    points = list(metric.sum.data_points)
    metric.gauge.data_points.extend(points)
    return request


@pytest.mark.parametrize(
    ("reason", "bodies", "request_of"),
    [
        pytest.param("forged_assignment", IN_BOTH, lambda: starts("p-1", "p-2"), id="forged ids"),
        pytest.param(
            "late",
            IN_BOTH,
            lambda: starts("p-1", "p-2", at=NOW - timedelta(hours=60)),
            id="old records",
        ),
        pytest.param(
            "future",
            IN_BOTH,
            lambda: starts("p-1", "p-2", at=NOW + timedelta(hours=1)),
            id="records of the future",
        ),
        pytest.param(
            "environment_mismatch",
            IN_BOTH,
            lambda: starts("p-1", "p-2", environment="elsewhere"),
            id="records of another environment",
        ),
        pytest.param("late", IN_BOTH, old_counts, id="old points"),
        pytest.param("wrong_instrument", TWICE, gauges, id="points of a gauge"),
        pytest.param("no_time", TWICE, without_time, id="records without a time"),
        pytest.param("unreadable", TWICE, of_repeated_keys, id="records that cannot be read"),
    ],
)
def test_a_rejected_body_that_is_sent_again_is_rejected_again_and_counted_once(
    context,
    host,
    reason: str,
    bodies: Sequence[Encoding],
    request_of: Callable[[], Request],
):
    request = request_of()
    signal = "logs" if isinstance(request, ExportLogsServiceRequest) else "metrics"
    for encoding in bodies:
        rejected, message = partial_of(host.send(request, encoding), signal)
        assert (rejected, message.partition(":")[0]) == (2, reason)
    assert told_of(context) == {"refused": 2, f"refused:{reason}": 2, "duplicate": 2}
    (source,) = context.intake.sources(ENVIRONMENT)
    assert source.counts[f"refused:{reason}"] == source.counts["duplicate"] == 2


def test_quarantined_records_that_a_collector_puts_into_other_bodies_count_once(context, host):
    names = ("p-1", "p-2", "p-3")
    host.send(starts(*names[:2], version=""))
    host.send(starts(*names[1:], version=""))
    host.send(starts(*names, version=""))
    assert told_of(context) == {
        "quarantined": 3,
        "quarantined:version_missing": 3,
        "duplicate": 4,
    }
    today = NOW.date()
    context.evidence.seal(ENVIRONMENT, today, at=NOW, longest_outage_seconds=0.0)
    (day,) = context.evidence.sealed_days(ENVIRONMENT, [today])
    assert (day.records, day.conforming) == (3, 0)


def test_a_rejected_record_is_the_same_after_a_collector_sets_its_observed_time(context, host):
    request = starts("p-1")
    host.send(request)
    (record,) = request.resource_logs[0].scope_logs[0].log_records
    record.observed_time_unix_nano = to_ns(NOW)
    host.send(request)
    assert told_of(context)["refused"] == 1


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"service.instance.id": "host-2"}, id="of another process"),
        pytest.param({"service.version": "9.9.9"}, id="of another version"),
    ],
)
def test_equal_rejected_records_of_two_senders_are_two(context, host, changed: dict[str, Value]):
    host.send(starts("p-1"))
    host.send(starts("p-1", resource=changed))
    assert told_of(context) == {"refused": 2, "refused:forged_assignment": 2}


def test_a_record_that_is_rejected_for_another_reason_counts_for_each(context, host, calendar):
    early = starts("p-1", at=NOW + timedelta(hours=1))
    host.send(early)
    calendar.now = NOW + timedelta(hours=1)
    host.send(early)
    assert told_of(context) == {
        "refused": 2,
        "refused:future": 1,
        "refused:forged_assignment": 1,
    }


@pytest.mark.parametrize(
    ("later", "counted"),
    [
        pytest.param(timedelta(minutes=1), 1, id="a minute later"),
        pytest.param(timedelta(days=1), 1, id="a day later"),
        pytest.param(timedelta(days=2), 2, id="two days later, when it is forgotten"),
    ],
)
def test_a_rejected_item_is_remembered_on_its_day_and_the_next(
    context, host, calendar, later, counted
):
    request = starts("p-1", version="")
    host.send(request)
    calendar.now = NOW + later
    host.send(request)
    assert told_of(context)["quarantined"] == counted


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    bodies=st.lists(
        st.lists(st.tuples(st.booleans(), st.sampled_from("abcdefgh")), min_size=1, max_size=6),
        min_size=1,
        max_size=6,
    )
)
def test_each_rejected_record_counts_once_in_any_bodies(context, host, bodies):
    before, salt = told_of(context), next(_salts)
    for body in bodies:
        for is_late in (False, True):
            at = NOW - timedelta(hours=60) if is_late else AT
            host.send(starts(*(f"{salt}-{name}" for late, name in body if late is is_late), at=at))
    sent = [record for body in bodies for record in body]
    late = sum(is_late for is_late, _ in set(sent))
    added = {name: many - before.get(name, 0) for name, many in told_of(context).items()}
    assert {name: many for name, many in added.items() if many} == {
        name: many
        for name, many in {
            "refused": len(set(sent)),
            "refused:late": late,
            "refused:forged_assignment": len(set(sent)) - late,
            "duplicate": len(sent) - len(set(sent)),
        }.items()
        if many
    }
