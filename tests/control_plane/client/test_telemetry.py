"""Telemetry: guardwave's intake reads exactly what a host reports through the real SDK."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guardwave.control_plane.client import Assignment, PromptEnd
from guardwave.control_plane.ingest.contract import limits
from guardwave.control_plane.ingest.contract.events import EVENTS
from guardwave.control_plane.ingest.contract.points import ALLOWED_ON_POINTS
from guardwave.control_plane.ingest.model.records import DurationPoint
from guardwave.reducer import contract as written
from guardwave.reducer.catalogue import CATALOGUE, GUARD_OF_LOOP
from guardwave.reducer.vocabulary import (
    Decision,
    DisruptionKind,
    ExecutionStatus,
    Invariant,
    LoopType,
    Mode,
    Outcome,
    ResetReason,
    Route,
)
from tests.control_plane.client.telemetry_doors import (
    ASSIGNED,
    DUPLICATE,
    REPEATED,
    STOP,
    TRACKED,
    Door,
)

END = PromptEnd(
    Outcome.GUARD_STOPPED,
    duration_seconds=12.5,
    turns=4,
    tool_calls=9,
    input_tokens=4000,
    output_tokens=200,
    calls_after_would_stop=0,
)


@pytest.fixture
def door():
    opened = Door()
    yield opened
    opened.close()


def test_intake_reads_the_version_that_the_client_writes():
    assert limits.SCOPE_VERSIONS[written.SCOPE_VERSION] == limits.CONTRACT


def test_intake_reads_every_event_and_metric_that_the_client_writes():
    metrics = {value for name, value in vars(written).items() if name.endswith("_METRIC")}
    assert metrics == ALLOWED_ON_POINTS.keys()
    assert {
        *(written.TRANSITION, written.PROMPT_START, written.PROMPT_END),
        *(written.DISRUPTION, written.LOOP_DETECTED, written.FLAG_EVALUATION),
    } == EVENTS.keys()


def test_every_guard_of_the_catalogue_owns_one_loop_type():
    assert sorted(GUARD_OF_LOOP.values()) == sorted(CATALOGUE)


def report_whole_prompt(door):
    prompt = door.telemetry.prompt(assignments=ASSIGNED, prompt_id="prompt-1")
    prompt.started()
    prompt.decided([TRACKED, STOP], is_history_preserved=True)
    prompt.executed(ExecutionStatus.ERROR)
    prompt.loop_detected(LoopType.REPEATED_TOOL_EXECUTION_FAILURE)
    prompt.ended(END)
    prompt.disrupted(DisruptionKind.RETRY, offset_seconds=31)
    return prompt


def test_intake_reads_every_event_of_a_prompt_as_it_was_meant(door):
    report_whole_prompt(door)
    decoded = door.records()
    assert (decoded.rejected, decoded.dropped_attributes) == ((), 0)
    start, tracked, stop, loop, end, disruption = decoded.records
    both = ("a1.repeated", "a1.duplicate")
    assert {record.prompt_id for record in decoded.records} == {"prompt-1"}
    for record in (start, loop, end, disruption):
        assert record.assignment_ids == both
    assert (tracked.assignment_ids, stop.assignment_ids) == (("a1.duplicate",), ("a1.repeated",))
    assert (tracked.sequence, stop.sequence, end.transitions) == (1, 2, 2)
    assert (stop.guard, stop.mode, stop.decision) == (REPEATED, Mode.ENFORCE, Decision.STOPPED)
    assert (stop.phase_from, stop.phase_to, stop.ordinal) == (STOP.phase_from, STOP.phase_to, 2)
    assert (stop.failure_bucket, stop.batch_bucket, stop.batch_complete) == ("8+", "3+", True)
    assert (stop.tool_type, stop.terminal_status, stop.execution_status) == (
        STOP.tool_type,
        STOP.terminal_status,
        STOP.execution_status,
    )
    assert (stop.error_type, stop.history_preserved) == ("timeout", True)
    assert (tracked.history_preserved, tracked.batch_complete, tracked.ordinal) == (None, None, 0)
    assert (loop.guard, loop.loop_type) == (REPEATED, LoopType.REPEATED_TOOL_EXECUTION_FAILURE)
    assert (end.outcome, end.duration_seconds, end.turns) == (Outcome.GUARD_STOPPED, 12.5, 4)
    assert (end.tool_calls, end.input_tokens, end.output_tokens) == (9, 4000, 200)
    assert end.calls_after_would_stop == 0
    assert (disruption.kind, disruption.offset_seconds) == (DisruptionKind.RETRY, 31.0)


def test_intake_reads_one_point_of_every_metric_for_each_guard(door):
    prompt = report_whole_prompt(door)
    prompt.violated(REPEATED, Invariant.EXISTING_GUARD_CHANGED)
    decoded = door.points()
    assert (decoded.rejected, decoded.dropped_attributes) == ((), 0)
    found = sorted(
        (
            record.metric,
            record.guard,
            record.count if isinstance(record, DurationPoint) else record.value,
            () if isinstance(record, DurationPoint) else record.labels,
        )
        for record in decoded.records
    )
    guards = (DUPLICATE, REPEATED)
    common = sorted(
        (metric, guard, value, labels)
        for guard in guards
        for metric, value, labels in (
            ("agent.guard.disruptions", 1, (("disruption.kind", "retry"),)),
            ("agent.guard.prompt.duration", 1, ()),
            (
                "agent.guard.prompts",
                1,
                (("prompt.outcome", "guard_stopped"), ("prompt.stage", "end")),
            ),
            ("agent.guard.prompts", 1, (("prompt.stage", "start"),)),
            ("agent.guard.tokens", 4200, ()),
            ("agent.guard.tool.executions", 1, (("execution.status", "error"),)),
            ("agent.guard.turns", 4, ()),
        )
    )
    by_guard = [point for point in found if point[0] == "agent.guard.transitions"]
    violation = ("agent.guard.violations", REPEATED, 1, (("invariant", "existing_guard_changed"),))
    assert [point for point in found if point not in by_guard] == sorted([*common, violation])
    assert [(point[1], point[2]) for point in by_guard] == [(DUPLICATE, 1), (REPEATED, 1)]
    assert dict(by_guard[1][3]) == {
        "batch_count.bucket": "3+",
        "decision": "stopped",
        "execution.status": "error",
        "failure_count.bucket": "8+",
        "phase.from": "warned",
        "phase.to": "latched",
        "route": "interactive_foreground",
        "terminal.status": "error",
        "tool.type": "mcp",
    }


def test_no_metric_point_identifies_a_prompt(door):
    prompt = report_whole_prompt(door)
    data = door.reader.get_metrics_data()
    assert data is not None
    for metric in data.resource_metrics[0].scope_metrics[0].metrics:
        for point in metric.data.data_points:
            content = {*point.attributes, *map(str, point.attributes.values())}
            assert not content & {
                prompt.id,
                "a1.repeated",
                "timeout",
                written.ORDINAL,
                written.SEQUENCE,
                written.ERROR_TYPE,
            }


def test_a_reset_has_its_reason(door):
    prompt = door.telemetry.prompt(assignments=ASSIGNED)
    reset = dataclasses.replace(
        STOP, decision=Decision.RESET, reset_reason=ResetReason.CANCELLED, error_type=None
    )
    prompt.decided([reset], is_history_preserved=True)
    (record,) = door.records().records
    assert (record.decision, record.reset_reason) == (Decision.RESET, ResetReason.CANCELLED)
    assert (record.error_type, record.history_preserved) == (None, None)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.lists(st.sampled_from([STOP, TRACKED]), max_size=4), max_size=6))
def test_sequence_numbers_are_gapless_over_all_guards_and_the_end_counts_them(batches):
    door = Door()
    prompt = door.telemetry.prompt(assignments=ASSIGNED)
    for batch in batches:
        prompt.decided(batch)
    prompt.ended(PromptEnd(Outcome.COMPLETED))
    *transitions, (_, end) = door.events()
    count = sum(map(len, batches))
    assert [attributes[written.SEQUENCE] for _, attributes in transitions] == list(
        range(1, count + 1)
    )
    assert end[written.TRANSITIONS] == count
    door.close()


@pytest.mark.parametrize("route", [route for route in Route if route != "interactive_foreground"])
def test_a_prompt_off_the_foreground_reports_nothing(door, route):
    prompt = door.telemetry.prompt(assignments=ASSIGNED, route=route)
    prompt.started()
    prompt.decided([STOP])
    prompt.executed(ExecutionStatus.SUCCESS)
    prompt.loop_detected(LoopType.TOTAL_TOOL_CALLS)
    prompt.violated(REPEATED, Invariant.EXISTING_GUARD_CHANGED)
    prompt.ended(END)
    prompt.disrupted(DisruptionKind.RETRY, offset_seconds=1)
    assert door.events() == []
    assert door.points().records == ()


def test_a_guard_that_is_off_reports_nothing_beside_one_that_is_on(door):
    off = Assignment(DUPLICATE, Mode.OFF, assignment_id="a1.duplicate")
    prompt = door.telemetry.prompt(assignments=[ASSIGNED[0], off])
    prompt.started()
    prompt.decided([TRACKED, STOP])
    start, stop = door.records().records
    assert (start.assignment_ids, stop.guard, stop.sequence) == (("a1.repeated",), REPEATED, 1)
    assert {point.guard for point in door.points().records} == {REPEATED}


def test_without_ids_records_carry_none_so_that_the_resource_may(door):
    prompt = door.telemetry.prompt(assignments=[Assignment(REPEATED, Mode.SHADOW)])
    prompt.started()
    ((_, attributes),) = door.events()
    assert written.ASSIGNMENT_ID not in attributes


@pytest.mark.parametrize("status", [ExecutionStatus.CANCELLED, ExecutionStatus.NOT_STARTED])
def test_a_call_that_did_not_run_to_its_end_is_in_no_execution_count(door, status):
    door.telemetry.prompt(assignments=ASSIGNED).executed(status)
    assert door.points().records == ()


def test_senseless_calls_report_nothing(door):
    prompt = door.telemetry.prompt(assignments=ASSIGNED)
    prompt.disrupted(DisruptionKind.RETRY, offset_seconds=1)
    prompt.started()
    prompt.started()
    prompt.ended(END)
    prompt.ended(END)
    prompt.started()
    prompt.decided([STOP])
    prompt.loop_detected(LoopType.IDENTICAL_TOOL_CALL)
    prompt.loop_detected(LoopType.SIDE_EFFECT_DUPLICATE)
    prompt.violated("a_guard_of_nobody", Invariant.EXISTING_GUARD_CHANGED)
    for offset in (-0.1, 600.1, 600.0, 0.0):
        prompt.disrupted(DisruptionKind.DISCONNECT, offset_seconds=offset)
    assert [
        (name, attributes.get(written.DISRUPTION_OFFSET)) for name, attributes in door.events()
    ] == [
        (written.PROMPT_START, None),
        (written.PROMPT_END, None),
        (written.LOOP_DETECTED, None),
        (written.DISRUPTION, 600.0),
    ]


@pytest.mark.parametrize(
    ("loop", "guard"),
    [
        pytest.param(LoopType.TOTAL_TOOL_CALLS, None, id="a limit without a rollout"),
        pytest.param(LoopType.IDENTICAL_TOOL_CALL, "identical_call", id="a guard of the catalogue"),
    ],
)
def test_a_loop_names_its_guard_if_it_has_one(door, loop, guard):
    door.telemetry.prompt(assignments=ASSIGNED).loop_detected(loop)
    (record,) = door.records().records
    assert (record.loop_type, record.guard) == (loop, guard)


@pytest.mark.parametrize(
    ("end", "missing"),
    [
        pytest.param({"duration_seconds": -0.1}, written.DURATION, id="a clock set back"),
        pytest.param({"duration_seconds": 86_400.1}, written.DURATION, id="more than a day"),
        pytest.param({"duration_seconds": float("nan")}, written.DURATION, id="no number"),
        pytest.param({"turns": -1}, written.TURNS, id="negative turns"),
        pytest.param({"turns": 2**31}, written.TURNS, id="too many turns"),
        pytest.param({"tool_calls": 2**31}, written.TOOL_CALLS, id="too many calls"),
        pytest.param({"input_tokens": 2**53}, written.INPUT_TOKENS, id="too many tokens in"),
        pytest.param({"output_tokens": -1}, written.OUTPUT_TOKENS, id="negative tokens out"),
        pytest.param({}, written.CALLS_AFTER_WOULD_STOP, id="never counted"),
    ],
)
def test_a_number_that_cannot_be_is_unknown_and_left_out(door, end, missing):
    prompt = door.telemetry.prompt(assignments=ASSIGNED)
    prompt.ended(PromptEnd(Outcome.FAILED, **end))
    ((_, attributes),) = door.events()
    assert missing not in attributes
    assert door.records().rejected == ()
    assert {point.metric for point in door.points().records} == {written.PROMPTS_METRIC}


def test_the_limits_themselves_are_reported(door):
    prompt = door.telemetry.prompt(assignments=ASSIGNED)
    prompt.ended(
        PromptEnd(
            Outcome.LIMIT,
            duration_seconds=86_400,
            turns=2**31 - 1,
            tool_calls=0,
            input_tokens=0,
            output_tokens=2**53 - 1,
        )
    )
    assert type(door.events()[0][1][written.DURATION]) is float
    (record,) = door.records().records
    assert (record.duration_seconds, record.turns, record.tool_calls) == (86_400.0, 2**31 - 1, 0)
    assert (record.input_tokens, record.output_tokens) == (0, 2**53 - 1)
    assert door.points().rejected == ()


def test_prompts_have_random_ids_unless_one_is_given(door):
    telemetry = door.telemetry
    ids = {telemetry.prompt(assignments=ASSIGNED).id for _ in range(50)}
    assert len(ids) == 50
    assert telemetry.prompt(assignments=ASSIGNED, prompt_id="s########1").id == "s########1"


@pytest.mark.parametrize(
    ("assignment", "context_id", "version"),
    [
        pytest.param(
            Assignment(
                REPEATED,
                Mode.WARN,
                assignment_id=f"a1.{REPEATED}.abcdefghijklmnop.3.warned.warn.9.tag",
                generation=9,
            ),
            "abcdefghijklmnop",
            "9",
            id="answered",
        ),
        pytest.param(Assignment(REPEATED, Mode.WARN), None, None, id="a fallback"),
        pytest.param(
            Assignment(REPEATED, Mode.WARN, assignment_id="a2.x"), None, None, id="another format"
        ),
    ],
)
def test_an_evaluation_names_guard_mode_generation_and_pseudonym(
    door, assignment, context_id, version
):
    door.telemetry.evaluated(assignment)
    ((_, attributes),) = door.events()
    assert attributes.get("feature_flag.context.id") == context_id
    assert attributes.get("feature_flag.version") == version
    (record,) = door.records().records
    assert (record.guard, record.mode) == (REPEATED, Mode.WARN)
