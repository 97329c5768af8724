import pytest

from guardwave.control_plane.core.otlp_request import Encoding
from guardwave.control_plane.ingest.contract.limits import NEWEST_NS, OLDEST_NS
from guardwave.control_plane.ingest.model.records import (
    FlagEvaluation,
    LoopDetected,
    PromptDisruption,
    PromptEnd,
    PromptStart,
    Transition,
)
from guardwave.control_plane.ingest.model.rejections import IgnoreReason, RejectReason
from guardwave.control_plane.ingest.reading import RequestContext, read_logs
from guardwave.reducer.vocabulary import (
    Decision,
    DisruptionKind,
    ExecutionStatus,
    GuardPhase,
    LoopType,
    Mode,
    Outcome,
    ResetReason,
    Route,
    TerminalStatus,
    ToolType,
)
from tests.support.otlp.bodies import (
    END,
    NOW_NS,
    RESOURCE,
    TRANSITION,
    decode_logs,
    log_request,
    read_one,
)

FULL_TRANSITION = {
    **TRANSITION,
    "agent.guard.assignment.id": "a1.one",
    "agent.guard.candidate.ordinal": 2,
    "agent.guard.route": "cron",
    "agent.guard.phase.from": "tracking",
    "agent.guard.phase.to": "warned",
    "agent.guard.decision": "reset",
    "agent.guard.reset.reason": "cancelled",
    "agent.guard.failure_count.bucket": "8+",
    "agent.guard.batch_count.bucket": "3+",
    "agent.guard.batch.complete": True,
    "agent.guard.tool.type": "mcp",
    "agent.guard.terminal.status": "cancelled",
    "agent.guard.execution.status": "not_started",
    "agent.guard.error.type": "tool_timeout",
    "agent.guard.history.preserved": False,
}


def accepted(attributes, **how):
    decoded = read_one(attributes, **how)
    assert decoded.rejected == ()
    (record,) = decoded.records
    return record


def rejected(attributes, **how):
    decoded = read_one(attributes, **how)
    assert decoded.records == ()
    (found,) = decoded.rejected
    return found


def without(attributes, key):
    return {name: value for name, value in attributes.items() if name != key}


def test_a_transition_comes_out_word_for_word():
    record = accepted(FULL_TRANSITION)
    assert isinstance(record, Transition)
    assert (record.guard, record.prompt_id) == ("repeated_tool_failure", "prompt-1")
    assert (record.sequence, record.ordinal) == (1, 2)
    assert record.assignment_ids == ("a1.one",)
    assert (record.route, record.mode) == (Route.CRON, Mode.WARN)
    assert (record.phase_from, record.phase_to) == (GuardPhase.TRACKING, GuardPhase.WARNED)
    assert (record.decision, record.reset_reason) == (Decision.RESET, ResetReason.CANCELLED)
    assert (record.failure_bucket, record.batch_bucket) == ("8+", "3+")
    assert (record.batch_complete, record.history_preserved) == (True, False)
    assert record.tool_type is ToolType.MCP
    assert record.terminal_status is TerminalStatus.CANCELLED
    assert record.execution_status is ExecutionStatus.NOT_STARTED
    assert record.error_type == "tool_timeout"
    assert (record.deny_listed, record.has_body) == ((), False)
    assert record.time_ns == NOW_NS


def test_an_origin_names_its_sender():
    origin = accepted(TRANSITION).origin
    assert (origin.service_name, origin.service_version) == ("agent-runtime", "1.4.2")
    assert (origin.instance_id, origin.has_weak_identity) == ("7b1f0c1e", False)
    assert (origin.environment, origin.contract_version) == ("internal", 1)


def test_a_process_without_instance_id_is_known_by_its_resource():
    bare = without(RESOURCE, "service.instance.id")
    first, again = accepted(TRANSITION, resource=bare), accepted(TRANSITION, resource=bare)
    other = accepted(TRANSITION, resource={**bare, "host.name": "b"})
    assert first.origin.has_weak_identity
    assert first.origin.instance_id == again.origin.instance_id != other.origin.instance_id


def test_a_prompt_start_needs_no_more_than_its_id():
    record = accepted({"agent.guard.prompt.id": "p"}, event="agent.guard.prompt.start")
    assert isinstance(record, PromptStart)
    assert record.route is Route.INTERACTIVE_FOREGROUND


def test_a_prompt_end_reports_what_the_prompt_cost():
    record = accepted(
        {
            **END,
            "agent.guard.prompt.turns": 3,
            "agent.guard.prompt.tool_calls": 4,
            "agent.guard.prompt.transitions": 5,
            "gen_ai.usage.input_tokens": 6,
            "gen_ai.usage.output_tokens": 7,
            "agent.guard.calls_after_would_stop": 8,
        },
        event="agent.guard.prompt.end",
    )
    assert isinstance(record, PromptEnd)
    assert (record.outcome, record.duration_seconds) == (Outcome.COMPLETED, 1.5)
    assert (record.turns, record.tool_calls, record.transitions) == (3, 4, 5)
    assert (record.input_tokens, record.output_tokens) == (6, 7)
    assert record.calls_after_would_stop == 8


def test_the_name_of_the_contract_wins_over_the_older_one():
    both = {"gen_ai.usage.input_tokens": 6, "agent.guard.usage.input_tokens": 9}
    record = accepted({**END, **both}, event="agent.guard.prompt.end")
    assert record.input_tokens == 6
    assert record.output_tokens is None


@pytest.mark.parametrize(
    ("completed", "outcome"), [(True, Outcome.COMPLETED), (False, Outcome.FAILED)]
)
def test_the_older_completed_flag_is_an_outcome(completed, outcome):
    attributes = {"agent.guard.prompt.id": "p", "agent.guard.prompt.completed": completed}
    assert accepted(attributes, event="agent.guard.prompt.end").outcome is outcome


def test_a_disruption_has_kind_and_offset():
    attributes = {
        "agent.guard.prompt.id": "p",
        "agent.guard.disruption.kind": "retry",
        "agent.guard.disruption.offset": 600,
    }
    record = accepted(attributes, event="agent.guard.prompt.disruption")
    assert isinstance(record, PromptDisruption)
    assert (record.kind, record.offset_seconds) == (DisruptionKind.RETRY, 600.0)
    late = {**attributes, "agent.guard.disruption.offset": 600.5}
    assert "from 0 to 600" in rejected(late, event="agent.guard.prompt.disruption").detail


def test_a_detected_loop_names_its_type():
    attributes = {"agent.guard.prompt.id": "p", "agent.guard.loop.type": "identical_tool_call"}
    record = accepted(attributes, event="agent.guard.loop_detected")
    assert isinstance(record, LoopDetected)
    assert (record.loop_type, record.guard) == (LoopType.IDENTICAL_TOOL_CALL, None)


def test_a_flag_evaluation_of_a_guard_is_counted_and_another_flag_ignored():
    attributes = {
        "feature_flag.key": "agent.guard.identical_call",
        "feature_flag.result.variant": "warn",
        "feature_flag.context.id": "PSEUDONYM",
    }
    record = accepted(attributes, event="feature_flag.evaluation")
    assert record == FlagEvaluation(
        origin=record.origin, time_ns=NOW_NS, guard="identical_call", mode=Mode.WARN
    )
    other = read_one({"feature_flag.key": "new-checkout"}, event="feature_flag.evaluation")
    assert other.ignored_by_reason == {IgnoreReason.OTHER_FLAG: 1}


def test_older_sdks_send_the_event_name_as_an_attribute():
    named = {**TRANSITION, "event.name": "agent.guard.transition"}
    assert isinstance(accepted(named, event=""), Transition)


@pytest.mark.parametrize("event", ["", "agent.guard.transitions", "app.started"])
def test_an_unknown_event_is_counted_and_ignored(event):
    decoded = read_one(TRANSITION, event=event)
    assert (decoded.records, decoded.rejected) == ((), ())
    assert decoded.ignored_by_reason == {IgnoreReason.UNKNOWN_EVENT: 1}


def test_another_scope_is_ignored_whatever_it_holds():
    decoded = read_one({"stack": "x" * 500}, scope=("app", "1"), resource={})
    assert decoded.ignored_by_reason == {IgnoreReason.OTHER_SCOPE: 1}
    assert (decoded.records, decoded.rejected) == ((), ())


@pytest.mark.parametrize("key", sorted(TRANSITION))
def test_a_transition_without_what_it_needs_is_rejected(key):
    found = rejected(without(TRANSITION, key))
    assert found.reason is RejectReason.BAD_ATTRIBUTE
    assert found.detail.startswith(f"{key} is missing")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        pytest.param("agent.guard.decision", "stop", "not one of reset, tracked", id="word"),
        pytest.param("agent.guard.decision", 1, "is 1, not one of reset", id="number as word"),
        pytest.param("agent.guard.mode", "enforced", "off, shadow, warn, enforce", id="mode"),
        pytest.param("agent.guard.route", "web", "not one of interactive_foreground", id="route"),
        pytest.param("agent.guard.failure_count.bucket", "8", "not one of 0, 1-2", id="bucket"),
        pytest.param("agent.guard.name", "Bad-Name", "an identifier", id="guard name"),
        pytest.param("agent.guard.name", "g" * 49, "an identifier", id="long guard name"),
        pytest.param("agent.guard.sequence", True, "a whole number", id="boolean as number"),
        pytest.param("agent.guard.sequence", 1.5, "a whole number", id="fraction"),
        pytest.param("agent.guard.sequence", "1", "a whole number", id="string as number"),
        pytest.param("agent.guard.sequence", -1, "a whole number from 0", id="negative"),
        pytest.param("agent.guard.sequence", 2**31, "a whole number from 0", id="impossible"),
        pytest.param("agent.guard.sequence", float("nan"), "a whole number", id="NaN"),
        pytest.param("agent.guard.batch.complete", "true", "true or false", id="flag as string"),
        pytest.param("agent.guard.error.type", "no such file", "an identifier", id="error text"),
        pytest.param("agent.guard.prompt.id", "", "1 to 128 bytes", id="empty prompt id"),
        pytest.param("agent.guard.assignment.id", 7, "an array of strings", id="id as number"),
        pytest.param("agent.guard.assignment.id", "x" * 129, "at most 128", id="long id"),
        pytest.param("agent.guard.assignment.id", "~" * 4096, "at most 16 ids", id="only joints"),
        pytest.param("agent.guard.assignment.id", ("x",) * 17, "at most 16 ids", id="many ids"),
    ],
)
def test_a_bad_attribute_is_rejected_by_field_value_and_remedy(key, value, message):
    found = rejected({**TRANSITION, key: value})
    assert found.reason is RejectReason.BAD_ATTRIBUTE
    assert found.detail.startswith(f"{key} is ")
    assert message in found.detail
    assert found.detail.endswith(RejectReason.BAD_ATTRIBUTE.remedy)


@pytest.mark.parametrize(
    "key", sorted(key for key, value in TRANSITION.items() if isinstance(value, str))
)
@pytest.mark.parametrize("value", ["x" * 129, "é" * 65], ids=["in characters", "in bytes"])
def test_a_value_that_is_too_long_is_not_reported_as_missing(key, value):
    found = rejected({**TRANSITION, key: value})
    assert found.reason is RejectReason.BAD_ATTRIBUTE
    assert found.detail.startswith(f"{key} is a string of over 128 bytes; ")


def test_an_outcome_that_is_too_long_is_reported_as_such():
    end = {**END, "agent.guard.prompt.outcome": "x" * 129}
    found = rejected(end, event="agent.guard.prompt.end")
    assert "outcome is a string of over 128 bytes" in found.detail


def test_no_host_may_report_a_prompt_as_lost():
    end = {**END, "agent.guard.prompt.outcome": "lost"}
    found = rejected(end, event="agent.guard.prompt.end")
    assert found.reason is RejectReason.BAD_ATTRIBUTE
    assert found.detail.startswith("agent.guard.prompt.outcome is 'lost', not one of completed, ")


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), -1.0, -0.001, 86_401.0, True, "1.5", ()]
)
def test_an_impossible_duration_is_rejected(value):
    found = rejected({**END, "agent.guard.prompt.duration": value}, event="agent.guard.prompt.end")
    assert "agent.guard.prompt.duration" in found.detail


def test_a_whole_double_is_accepted_as_a_count():
    assert accepted({**TRANSITION, "agent.guard.sequence": 3.0}).sequence == 3


@pytest.mark.parametrize("word", ["interactive", "acp_foreground", "interactive_foreground"])
def test_the_spellings_of_the_foreground_are_one_route(word):
    assert accepted({**TRANSITION, "agent.guard.route": word}).route is (
        Route.INTERACTIVE_FOREGROUND
    )


@pytest.mark.parametrize(
    ("on_record", "on_resource", "found"),
    [
        pytest.param(None, "r1", ("r1",), id="from the resource"),
        pytest.param(None, "r1~r2", ("r1", "r2"), id="several on the resource"),
        pytest.param(None, ("r1", "r2"), ("r1", "r2"), id="an array on the resource"),
        pytest.param("e1", "r1", ("e1",), id="the record wins"),
        pytest.param(("e1", "e2"), "r1", ("e1", "e2"), id="an array on the record"),
        pytest.param(None, None, (), id="none at all"),
    ],
)
def test_assignment_ids_are_on_the_record_or_on_the_resource(on_record, on_resource, found):
    key = "agent.guard.assignment.id"
    attributes = TRANSITION if on_record is None else {**TRANSITION, key: on_record}
    resource = RESOURCE if on_resource is None else {**RESOURCE, key: on_resource}
    assert accepted(attributes, resource=resource).assignment_ids == found


@pytest.mark.parametrize(
    ("resource", "reason"),
    [
        pytest.param({"deployment.environment.name": None}, "environment_missing", id="none"),
        pytest.param({"deployment.environment.name": ""}, "environment_missing", id="empty"),
        pytest.param({"deployment.environment.name": 7}, "environment_missing", id="no string"),
        pytest.param({"deployment.environment": "x"}, "environment_conflict", id="conflict"),
        pytest.param({"deployment.environment.name": "x"}, "environment_mismatch", id="other"),
        pytest.param({"service.version": None}, "version_missing", id="no version"),
        pytest.param({"service.version": "1" * 129}, "bad_attribute", id="endless version"),
    ],
)
def test_a_resource_must_say_what_it_is_of(resource, reason):
    found = rejected(TRANSITION, resource={**RESOURCE, **resource})
    assert found.reason == reason
    assert found.detail.endswith(found.reason.remedy)
    assert found.reason.is_quarantine is (reason not in {"environment_mismatch", "bad_attribute"})


def test_both_spellings_of_the_environment_may_agree():
    resource = {**RESOURCE, "deployment.environment": "internal"}
    assert accepted(TRANSITION, resource=resource).origin.environment == "internal"


@pytest.mark.parametrize("version", ["", "2", "v1"])
def test_an_unknown_contract_version_is_rejected(version):
    found = rejected(TRANSITION, scope=("agent.guard", version))
    assert found.reason is RejectReason.CONTRACT_UNKNOWN


@pytest.mark.parametrize(
    ("time_ns", "reason"),
    [
        pytest.param(NOW_NS - OLDEST_NS, None, id="48 hours ago"),
        pytest.param(NOW_NS - OLDEST_NS - 1, RejectReason.LATE, id="a nanosecond too late"),
        pytest.param(NOW_NS + NEWEST_NS, None, id="5 minutes ahead"),
        pytest.param(NOW_NS + NEWEST_NS + 1, RejectReason.FUTURE, id="a nanosecond too early"),
        pytest.param(2**64 - 1, RejectReason.FUTURE, id="the end of time"),
        pytest.param(1, RejectReason.LATE, id="1970"),
    ],
)
def test_the_accept_window_has_exact_edges(time_ns, reason):
    decoded = read_one(TRANSITION, time_unix_nano=time_ns)
    assert [found.reason for found in decoded.rejected] == ([] if reason is None else [reason])
    assert len(decoded.records) == (reason is None)


def test_a_late_record_is_told_how_late():
    found = rejected(TRANSITION, time_unix_nano=NOW_NS - 50 * 3600 * 10**9)
    assert found.detail.startswith("the time is 50.0 hours ago; send within 48 hours")


def test_the_observed_time_stands_in_for_a_missing_time():
    record = accepted(TRANSITION, time_unix_nano=0, observed_time_unix_nano=NOW_NS - 5)
    assert record.time_ns == NOW_NS - 5
    found = rejected(TRANSITION, time_unix_nano=0)
    assert found.reason is RejectReason.NO_TIME


def test_the_clock_of_the_environment_is_applied_before_the_window():
    def far_ahead(time_ns):
        return time_ns + 365 * OLDEST_NS

    batches = decode_logs(log_request(TRANSITION).SerializeToString(), Encoding.PROTOBUF)
    decoded = read_logs(batches, RequestContext("internal", far_ahead(NOW_NS), far_ahead))
    assert [record.time_ns for record in decoded.records] == [far_ahead(NOW_NS)]


def test_one_bad_record_does_not_cost_the_others():
    request = log_request(TRANSITION)
    request.MergeFrom(log_request({**TRANSITION, "agent.guard.mode": "loud"}))
    request.MergeFrom(log_request({**TRANSITION, "agent.guard.sequence": 2}))
    batches = decode_logs(request.SerializeToString(), Encoding.PROTOBUF)
    decoded = read_logs(batches, RequestContext("internal", NOW_NS))
    found = [record.sequence for record in decoded.records if isinstance(record, Transition)]
    assert found == [1, 2]
    assert [found.reason for found in decoded.rejected] == [RejectReason.BAD_ATTRIBUTE]
