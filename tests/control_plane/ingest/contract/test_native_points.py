import pytest

from guardwave.control_plane.core.otlp_request import Encoding
from guardwave.control_plane.ingest.model.records import CounterPoint
from guardwave.control_plane.ingest.model.rejections import IgnoreReason, RejectReason
from guardwave.control_plane.ingest.reading import RequestContext, read_metrics
from guardwave.reducer.vocabulary import Mode
from tests.support.otlp.bodies import NOW_NS, counter_request, decode_metrics

LABELS = {
    "agent.guard.name": "identical_call",
    "agent.guard.mode": "warn",
    "agent.guard.route": "acp_foreground",
    "agent.guard.decision": "tracked",
}


def read(request, *, now_ns=NOW_NS):
    batches = decode_metrics(request.SerializeToString(), Encoding.PROTOBUF)
    return read_metrics(batches, RequestContext("internal", now_ns))


def counted(attributes=LABELS, **how):
    decoded = read(counter_request(attributes, **{"as_int": 3, **how}))
    assert decoded.rejected == ()
    (record,) = decoded.records
    assert isinstance(record, CounterPoint)
    return record


def rejected(attributes=LABELS, **how):
    decoded = read(counter_request(attributes, **{"as_int": 3, **how}))
    assert decoded.records == ()
    (found,) = decoded.rejected
    return found


def test_a_delta_point_is_a_count_with_labels_of_closed_sets():
    record = counted()
    assert (record.metric, record.guard) == ("agent.guard.transitions", "identical_call")
    assert (record.mode, record.value) == (Mode.WARN, 3)
    assert record.labels == (("decision", "tracked"), ("route", "interactive_foreground"))
    assert (record.start_ns, record.time_ns) == (NOW_NS - 1, NOW_NS)


def test_a_whole_double_counts_like_an_integer():
    plain, double = counted(as_int=12), counted(as_int=None, as_double=12.0)
    assert plain.value == double.value == 12
    assert plain.identity == double.identity


def test_a_cumulative_point_is_one_of_another_stream_than_a_delta():
    cumulative, delta = counted(temporality=2), counted()
    assert (cumulative.is_cumulative, delta.is_cumulative) == (True, False)
    assert cumulative.value == 3
    assert cumulative.stream != delta.stream


def test_the_points_of_a_stream_share_its_identity_whatever_their_value_and_time():
    assert counted(as_int=4).stream == counted(time_unix_nano=NOW_NS - 1).stream
    assert counted({**LABELS, "region": "eu"}).stream != counted().stream


def test_a_zero_is_a_count():
    assert counted(as_int=0).value == 0


@pytest.mark.parametrize(
    "value",
    [
        pytest.param({"as_int": -1}, id="negative"),
        pytest.param({"as_double": 1.5, "as_int": None}, id="fraction"),
        pytest.param({"as_double": float("nan"), "as_int": None}, id="NaN"),
        pytest.param({"as_double": float("inf"), "as_int": None}, id="infinite"),
        pytest.param({"as_int": 2**53}, id="impossible"),
    ],
)
def test_an_impossible_count_is_rejected_and_its_range_is_told(value):
    found = rejected(**value)
    assert found.reason is RejectReason.BAD_VALUE
    assert found.detail.endswith("; send a whole number from 0 to 9007199254740991")


def test_a_point_that_starts_after_its_time_is_told_of_its_clock():
    found = rejected(start_time_unix_nano=NOW_NS + 1)
    assert found.reason is RejectReason.BAD_INTERVAL
    assert found.detail == (
        "agent.guard.transitions starts after its time; "
        "set the start to the time of the point before, by the same clock"
    )


@pytest.mark.parametrize(
    ("metric", "unit", "shown"),
    [
        ("agent.guard.tokens", "ktoken", "the unit 'ktoken', not {token}"),
        ("agent.guard.tokens", "{transition}", "a string of 12 characters, not {token}"),
        ("agent.guard.transitions", "s", "the unit 's', not {transition}"),
        ("agent.guard.turns", "1000", "the unit '1000', not {turn}"),
    ],
)
def test_a_counter_of_another_unit_is_rejected_with_the_unit_that_is_meant(metric, unit, shown):
    found = rejected(metric=metric, unit=unit)
    assert found.reason is RejectReason.WRONG_UNIT
    assert found.detail.startswith(f"{metric} has the unit ")
    assert f"{shown}; measure in the unit that the telemetry contract names" in found.detail


@pytest.mark.parametrize("unit", ["", "1", "{transition}"])
def test_a_counter_of_no_unit_or_of_ones_counts_like_one_of_its_own(unit):
    assert counted(unit=unit).value == 3


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        pytest.param({"temporality": 0}, RejectReason.UNSPECIFIED_TEMPORALITY, id="unset"),
        pytest.param({"temporality": 9}, RejectReason.UNSPECIFIED_TEMPORALITY, id="unknown"),
        pytest.param({"is_monotonic": False}, RejectReason.NOT_MONOTONIC, id="up and down"),
        pytest.param(
            {"time_unix_nano": 0, "start_time_unix_nano": 0}, RejectReason.NO_TIME, id="no time"
        ),
        pytest.param(
            {"metric": "agent.guard.prompt.duration"}, RejectReason.WRONG_INSTRUMENT, id="no sum"
        ),
    ],
)
def test_a_point_that_is_no_delta_of_a_counter_is_rejected(how, reason):
    assert rejected(**how).reason is reason


@pytest.mark.parametrize(
    ("attributes", "shown"),
    [
        pytest.param({"agent.guard.mode": None}, "agent.guard.mode is missing", id="no mode"),
        pytest.param({"agent.guard.name": None}, "agent.guard.name is missing", id="no guard"),
        pytest.param({"agent.guard.mode": "loud"}, "not one of off, shadow", id="unknown mode"),
        pytest.param({"agent.guard.decision": "stop"}, "not one of reset", id="unknown word"),
        pytest.param({"agent.guard.mode": "x" * 129}, "over 128 bytes", id="a mode too long"),
    ],
)
def test_a_point_with_a_bad_label_is_rejected(attributes, shown):
    found = rejected({**LABELS, **attributes})
    assert found.reason is RejectReason.BAD_ATTRIBUTE
    assert shown in found.detail


def test_cancelled_executions_are_never_counted():
    found = rejected(
        {**LABELS, "agent.guard.execution.status": "cancelled"},
        metric="agent.guard.tool.executions",
    )
    assert "not one of success, error" in found.detail


@pytest.mark.parametrize("truth", [True, "true"])
def test_a_point_of_a_sdk_that_left_its_attributes_out_is_counted(truth):
    decoded = read(counter_request({"otel.metric.overflow": truth}, as_int=7))
    assert (decoded.rejected, decoded.dropped_attributes) == ((), 0)
    (record,) = decoded.records
    assert isinstance(record, CounterPoint)
    assert record.is_overflow
    assert (record.value, record.guard, record.mode, record.labels) == (7, None, None, ())


def test_a_point_within_the_limits_of_its_sdk_still_names_its_guard():
    found = rejected({"otel.metric.overflow": False})
    assert found.detail.startswith("agent.guard.name is missing")
    assert not counted({**LABELS, "otel.metric.overflow": False}).is_overflow


def test_a_host_of_before_the_contract_may_leave_the_guard_unnamed():
    unnamed = {key: value for key, value in LABELS.items() if key != "agent.guard.name"}
    assert counted(unnamed, scope=("agent.guard", "0.1.0")).guard is None


NAMED = {"agent.guard.name": "identical_call", "agent.guard.mode": "warn"}
ENDED = {"agent.guard.prompt.stage": "end", "agent.guard.prompt.outcome": "completed"}


@pytest.mark.parametrize(
    ("metric", "labels"),
    [
        ("agent.guard.prompts", {"agent.guard.prompt.stage": "start"}),
        ("agent.guard.prompts", ENDED),
        ("agent.guard.disruptions", {"agent.guard.disruption.kind": "retry"}),
        ("agent.guard.violations", {"agent.guard.invariant": "cancelled_counted"}),
        ("agent.guard.tool.executions", {"agent.guard.execution.status": "error"}),
        ("agent.guard.tokens", {}),
        ("agent.guard.turns", {}),
    ],
)
def test_each_counter_has_its_own_labels(metric, labels):
    expected = {key.removeprefix("agent.guard."): word for key, word in labels.items()}
    assert dict(counted({**NAMED, **labels}, metric=metric).labels) == expected
    # those of another counter are dropped
    assert dict(counted({**LABELS, **labels}, metric=metric).labels) == expected


@pytest.mark.parametrize(
    ("metric", "labels", "missing"),
    [
        ("agent.guard.transitions", {"agent.guard.route": "background"}, "decision"),
        ("agent.guard.prompts", {}, "prompt.stage"),
        ("agent.guard.prompts", {"agent.guard.prompt.outcome": "completed"}, "prompt.stage"),
        ("agent.guard.prompts", {"agent.guard.prompt.stage": "end"}, "prompt.outcome"),
        ("agent.guard.disruptions", {}, "disruption.kind"),
        ("agent.guard.violations", {}, "invariant"),
        ("agent.guard.tool.executions", {}, "execution.status"),
    ],
)
@pytest.mark.parametrize("version", ["1", "0.1.0"])
def test_a_point_that_does_not_say_what_it_counts_is_rejected(metric, labels, missing, version):
    found = rejected({**NAMED, **labels}, metric=metric, scope=("agent.guard", version))
    assert found.reason is RejectReason.BAD_ATTRIBUTE
    assert found.detail.startswith(f"agent.guard.{missing} is missing; send the attribute")


@pytest.mark.parametrize(
    ("metric", "key"),
    [
        ("agent.guard.transitions", "agent.guard.decision"),
        ("agent.guard.prompts", "agent.guard.prompt.outcome"),
        ("agent.guard.violations", "agent.guard.invariant"),
    ],
)
def test_a_word_too_long_to_be_one_is_told_apart_from_a_missing_one(metric, key):
    found = rejected({**NAMED, **ENDED, key: "x" * 129}, metric=metric)
    assert found.detail.startswith(f"{key} is a string of over 128 bytes")


@pytest.mark.parametrize(
    "key",
    [
        "agent.guard.prompt.id",
        "agent.guard.candidate.ordinal",
        "agent.guard.error.type",
        "user.id",
    ],
)
def test_a_label_that_names_a_prompt_or_a_person_is_told(key):
    record = counted({**LABELS, key: "x"})
    assert record.deny_listed == (key,)
    assert key not in dict(record.labels)


def test_an_unknown_label_is_dropped_and_counted():
    decoded = read(counter_request({**LABELS, "region": "eu"}, as_int=3))
    assert decoded.dropped_attributes == 1
    assert decoded.records[0].deny_listed == ()


def test_points_that_differ_in_a_dropped_label_are_two_points():
    assert counted({**LABELS, "region": "eu"}).identity != (
        counted({**LABELS, "region": "us"}).identity
    )


@pytest.mark.parametrize(
    "how",
    [
        pytest.param({"as_int": 4}, id="value"),
        pytest.param({"start_time_unix_nano": NOW_NS - 2}, id="start"),
        pytest.param({"time_unix_nano": NOW_NS + 1}, id="time"),
        pytest.param({"metric": "agent.guard.turns"}, id="metric"),
    ],
)
def test_the_identity_is_the_stream_its_interval_and_its_value(how):
    assert counted().identity == counted().identity
    assert counted(**how).identity != counted().identity


def test_the_order_of_labels_does_not_change_the_identity():
    assert counted(dict(reversed(LABELS.items()))).identity == counted().identity


def test_an_unknown_metric_is_counted_and_ignored():
    decoded = read(counter_request(LABELS, metric="app.requests", as_int=3))
    assert (decoded.records, decoded.rejected) == ((), ())
    assert decoded.ignored_by_reason == {IgnoreReason.UNKNOWN_METRIC: 1}


def test_a_point_without_recorded_value_is_ignored():
    decoded = read(counter_request(LABELS, as_int=3, flags=1))
    assert decoded.ignored_by_reason == {IgnoreReason.NO_DATA: 1}


def test_a_gauge_of_a_counters_name_is_rejected():
    request = counter_request(LABELS, as_int=3)
    metric = request.resource_metrics[0].scope_metrics[0].metrics[0]
    points = list(metric.sum.data_points)
    metric.gauge.data_points.extend(points)
    (found,) = read(request).rejected
    assert found.reason is RejectReason.WRONG_INSTRUMENT
    assert "came as gauge and is a counter" in found.detail


def test_a_histogram_of_a_counters_name_is_rejected():
    request = counter_request(LABELS, as_int=3)
    metric = request.resource_metrics[0].scope_metrics[0].metrics[0]
    metric.histogram.data_points.add(count=1, time_unix_nano=NOW_NS)
    (found,) = read(request).rejected
    assert found.reason is RejectReason.WRONG_INSTRUMENT


def test_an_unset_start_stays_unset_on_another_clock():
    batches = decode_metrics(
        counter_request(LABELS, as_int=1, start_time_unix_nano=0).SerializeToString(),
        Encoding.PROTOBUF,
    )
    decoded = read_metrics(
        batches, RequestContext("internal", NOW_NS + 5, lambda time_ns: time_ns + 5)
    )
    (record,) = decoded.records
    assert isinstance(record, CounterPoint)
    assert (record.start_ns, record.time_ns) == (0, NOW_NS + 5)
