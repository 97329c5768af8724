"""Recorded requests of SDKs and Collectors decode to what their index lists."""

import io
from collections import Counter

import pytest

from guardwave.control_plane.ingest.decode import protobuf
from guardwave.control_plane.ingest.dialects import wanted_scopes
from guardwave.control_plane.ingest.model.otlp_values import NumberPoint, Temporality
from guardwave.control_plane.ingest.model.records import (
    CounterPoint,
    DurationPoint,
    PromptEnd,
    Transition,
)
from guardwave.control_plane.ingest.model.rejections import IgnoreReason, Rejection, RejectReason
from guardwave.control_plane.ingest.reading import RequestContext, read_logs, read_metrics
from guardwave.control_plane.ingest.wire.body import read_body
from guardwave.reducer.vocabulary import Decision, Mode, Outcome, Route
from tests.support.otlp.bodies import LIMITS, recorded

LOGS = [name for name, found in recorded().items() if found.is_logs]
METRICS = [name for name, found in recorded().items() if not found.is_logs]
DELTAS = {name for name in METRICS if recorded()[name].entry["temporality"] == [Temporality.DELTA]}
GUARD_LOGS = [name for name in LOGS if "stdlib" not in name and "filelog" not in name]


def points_of(name):
    return [
        point
        for batch in recorded()[name].metrics()
        for scope in batch.scopes
        for point in scope.points
    ]


def items_of(name):
    return [
        item for batch in recorded()[name].logs() for scope in batch.scopes for item in scope.items
    ]


def environment_of(name):
    resource = recorded()[name].logs() if name in LOGS else recorded()[name].metrics()
    attributes = resource[-1].attributes
    return attributes.get("deployment.environment.name") or attributes.get(
        "deployment.environment", "internal"
    )


def read(name, environment=None):
    environment = environment or environment_of(name)
    if name in LOGS:
        now_ns = max(item.time_ns for item in items_of(name))
        return read_logs(recorded()[name].logs(), RequestContext(environment, now_ns))
    now_ns = max(point.time_ns for point in points_of(name))
    return read_metrics(recorded()[name].metrics(), RequestContext(environment, now_ns))


@pytest.mark.parametrize("name", LOGS + METRICS)
def test_the_body_comes_off_the_wire(name):
    found = recorded()[name]
    is_chunked = found.entry["chunked"]
    body = read_body(
        io.BytesIO(found.wire_body),
        content_length=None if is_chunked else len(found.wire_body),
        content_encoding=str(found.entry["content_encoding"]),
        limits=LIMITS,
    )
    assert body == found.body
    assert len(body) == found.entry["body_bytes"]


@pytest.mark.parametrize("name", LOGS)
def test_every_log_record_comes_out_with_its_event_name(name):
    entry = recorded()[name].entry
    items = items_of(name)
    assert not any(isinstance(item, Rejection) for item in items)
    assert len(items) == entry["records"]
    assert Counter(item.event_name for item in items) == entry["event_names"]
    assert len(recorded()[name].logs()) == entry.get("resources", 1)


@pytest.mark.parametrize("name", METRICS)
def test_every_point_comes_out_with_its_temporality(name):
    entry = recorded()[name].entry
    points = points_of(name)
    assert not any(isinstance(point, Rejection) for point in points)
    assert len(points) == entry["points"]
    assert sorted({point.temporality for point in points}) == entry["temporality"]
    assert len(recorded()[name].metrics()) == entry["resources"]
    transitions = [point for point in points if point.metric == "agent.guard.transitions"]
    assert all(isinstance(point, NumberPoint) and point.is_monotonic for point in transitions)
    assert sum(point.value or 0 for point in transitions) == entry["transitions_total"]


@pytest.mark.parametrize("name", GUARD_LOGS)
def test_every_guard_event_becomes_a_record(name):
    decoded = read(name)
    kinds = Counter(type(record) for record in decoded.records)
    entry = recorded()[name].entry["event_names"]
    assert decoded.rejected == ()
    assert kinds == {
        Transition: entry["agent.guard.transition"],
        PromptEnd: entry["agent.guard.prompt.end"],
    }


@pytest.mark.parametrize(
    ("name", "count"),
    [("logs_pb_stdlib_0.pb", 1), ("otelcol_filelog_0.pb.gz", 5), ("otelcol_filelog_1.pb.gz", 5)],
)
def test_the_logs_of_other_scopes_are_counted_and_ignored(name, count):
    batches = recorded()[name].logs()
    decoded = read_logs(batches, RequestContext("internal", 0))
    assert (decoded.records, decoded.rejected) == ((), ())
    assert decoded.ignored_by_reason == {IgnoreReason.OTHER_SCOPE: count}


@pytest.mark.parametrize(
    "name",
    # the two left out are quarantined, and of two environments: they have tests of their own
    sorted(DELTAS - {"metrics_pb_no_environment_0.pb", "rotel_fwd_2.pb.gz"}),
)
def test_the_volume_of_delta_counters_agrees(name):
    decoded = read(name)
    entry = recorded()[name].entry
    assert decoded.rejected == ()
    assert len(decoded.records) == entry["points"]
    transitions = [
        record.value
        for record in decoded.records
        if isinstance(record, CounterPoint) and record.metric == "agent.guard.transitions"
    ]
    assert sum(transitions) == entry["transitions_total"]
    assert len({record.identity for record in decoded.records}) == len(decoded.records)


@pytest.mark.parametrize("name", sorted(set(METRICS) - DELTAS))
def test_cumulative_points_are_points_of_streams(name):
    decoded = read(name)
    assert decoded.rejected == ()
    assert len(decoded.records) == recorded()[name].entry["points"]
    assert {record.is_cumulative for record in decoded.records} == {True}
    assert len({record.stream for record in decoded.records}) == len(decoded.records)


def test_a_body_of_two_environments_counts_for_the_one_of_its_token():
    decoded = read("rotel_fwd_2.pb.gz", "public")
    assert {record.origin.environment for record in decoded.records} == {"public"}
    assert [item.reason for item in decoded.rejected] == [RejectReason.ENVIRONMENT_MISMATCH] * 21
    transitions = [r for r in decoded.records if r.metric == "agent.guard.transitions"]
    assert sum(record.value for record in transitions) == 36
    assert decoded.ignored_by_reason == {IgnoreReason.NO_DATA: 1}


def test_points_that_a_collector_emptied_are_ignored():
    decoded = read("rotel_fwd_2.pb.gz", "internal")
    assert decoded.records == ()
    assert decoded.ignored_by_reason == {IgnoreReason.NO_DATA: 22}


def test_a_resource_without_environment_is_quarantined():
    decoded = read("metrics_pb_no_environment_0.pb", "internal")
    assert decoded.records == ()
    assert len(decoded.rejected) == 24
    assert all(item.reason.is_quarantine for item in decoded.rejected)
    assert "set the resource attribute deployment.environment.name" in decoded.rejected[0].detail


def test_the_older_environment_attribute_is_as_good():
    decoded = read("metrics_pb_legacy_environment_0.pb", "public")
    assert len(decoded.records) == 24


def test_a_prompt_end_of_before_the_contract_is_read_as_contract_1():
    decoded = read("logs_pb_0.pb")
    end = next(record for record in decoded.records if isinstance(record, PromptEnd))
    assert end.origin.contract_version == 1
    assert (end.outcome, end.duration_seconds, end.turns) == (Outcome.COMPLETED, 1.5, 7)
    assert (end.input_tokens, end.output_tokens) == (12000, 800)
    assert (end.tool_calls, end.transitions, end.calls_after_would_stop) == (None, None, None)
    assert end.assignment_ids == ("a1.0000c0ffee00112233.w3.t",)
    assert (end.deny_listed, end.has_body) == ((), False)


def test_a_transition_of_before_the_contract_is_read_as_contract_1():
    decoded = read("logs_json_0.json")
    transition = next(record for record in decoded.records if isinstance(record, Transition))
    assert (transition.guard, transition.mode) == ("repeated_tool_failure", Mode.SHADOW)
    # its host reports 0
    assert (transition.decision, transition.sequence) == (Decision.WARNED, 1)
    assert transition.route is Route.INTERACTIVE_FOREGROUND
    assert (transition.failure_bucket, transition.batch_bucket) == ("8+", "2")
    assert (transition.ordinal, transition.error_type) == (1, "tool_timeout")
    assert (transition.terminal_status, transition.batch_complete) == (None, None)


def test_the_largest_safe_integer_of_javascript_is_kept_exactly():
    decoded = read("js_logs_json_0.json")
    tokens = {r.input_tokens for r in decoded.records if isinstance(r, PromptEnd)}
    assert tokens == {2**53 - 1}


def test_a_body_sent_again_has_the_same_identities():
    first, second = read("retry_503_0.pb"), read("retry_503_1.pb")
    assert [r.identity for r in first.records] == [r.identity for r in second.records]


def test_consecutive_deltas_have_different_identities():
    found = [read(f"metrics_pb_delta_x3_{n}.pb").records for n in range(3)]
    identities = [record.identity for records in found for record in records]
    assert len(set(identities)) == len(identities) == 72


@pytest.mark.parametrize("name", ["metrics_pb_delta_x3_0.pb", "metrics_pb_exphist_delta_0.pb"])
def test_both_kinds_of_duration_histogram_are_volume(name):
    durations = [r for r in read(name).records if isinstance(r, DurationPoint)]
    assert len(durations) == 3
    assert all(record.count > 0 for record in durations)


def test_a_scope_that_nobody_asked_for_is_skipped_undecoded():
    found = recorded()["otelcol_filelog_0.pb.gz"]
    batches = protobuf.decode_logs(found.body, limits=LIMITS, wanted_scopes=wanted_scopes().logs)
    assert [(scope.items, scope.skipped) for scope in batches[0].scopes] == [((), 5)]
    decoded = read_logs(batches, RequestContext("internal", 0))
    assert decoded.ignored_by_reason == {IgnoreReason.OTHER_SCOPE: 5}
