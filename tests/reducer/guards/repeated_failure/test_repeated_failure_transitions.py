import pytest

from guardwave.reducer.guards.repeated_failure import RepeatedFailure, reduce
from guardwave.reducer.guards.transition import BatchBucket, FailureBucket, Transition
from guardwave.reducer.vocabulary import (
    Decision,
    ExecutionStatus,
    GuardPhase,
    Mode,
    ResetReason,
    Route,
    TerminalStatus,
    ToolType,
)
from tests.support.guards.batches import after, batch, failures, observe


def transition_of(state, event):
    (transition,) = reduce(state, event).transitions
    return transition


def test_a_counting_decision_reports_the_new_state_and_its_failure():
    assert transition_of(after(failures(4)), failures(4)) == Transition(
        guard="repeated_tool_failure",
        route=Route.INTERACTIVE_FOREGROUND,
        mode=Mode.ENFORCE,
        phase_from=GuardPhase.TRACKING,
        phase_to=GuardPhase.WARNED,
        decision=Decision.WARNED,
        failure_count=FailureBucket.LIMIT,
        batch_count=BatchBucket.TWO,
        candidate_ordinal=1,
        is_batch_complete=True,
        tool_type=ToolType.NATIVE,
        terminal_status=TerminalStatus.ERROR,
        execution_status=ExecutionStatus.ERROR,
        error_type="timeout",
    )


def test_a_reset_reports_the_state_before_it_and_no_failure():
    assert transition_of(after(failures(5)), batch(observe("cancelled"))) == Transition(
        guard="repeated_tool_failure",
        route=Route.INTERACTIVE_FOREGROUND,
        mode=Mode.ENFORCE,
        phase_from=GuardPhase.TRACKING,
        phase_to=GuardPhase.IDLE,
        decision=Decision.RESET,
        reset_reason=ResetReason.CANCELLED,
        failure_count=FailureBucket.MANY,
        batch_count=BatchBucket.ONE,
        candidate_ordinal=1,
        is_batch_complete=True,
    )


def test_a_reset_from_idle_reports_zero():
    unreliable = batch(complete=False, is_input_reliable=False)
    transition = transition_of(RepeatedFailure.start(Mode.WARN), unreliable)
    assert (transition.phase_from, transition.phase_to) == (GuardPhase.IDLE, GuardPhase.IDLE)
    assert (transition.failure_count, transition.batch_count) == ("0", "0")
    assert transition.candidate_ordinal == 0
    assert transition.is_batch_complete is False


def test_an_incomplete_batch_is_reported_as_one():
    assert transition_of(after(failures(1)), batch(complete=False)).is_batch_complete is False


def test_another_key_is_reported_with_its_own_counts_and_ordinal():
    transition = transition_of(after(failures(4), failures(4)), failures(3, error_type="not_found"))
    assert (transition.phase_from, transition.phase_to) == ("warned", "tracking")
    assert (transition.failure_count, transition.batch_count) == ("3-4", "1")
    assert (transition.candidate_ordinal, transition.error_type) == (2, "not_found")


def test_the_configured_mode_is_reported_also_when_enforcement_is_disabled():
    disabled = after(batch(is_input_reliable=False), failures(4), failures(4))
    transition = transition_of(disabled, failures(1))
    assert (transition.mode, transition.decision) == ("enforce", "would_stop")


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        pytest.param(["native", "native"], ToolType.NATIVE, id="all native"),
        pytest.param(["mcp", "mcp"], ToolType.MCP, id="all of a server"),
        pytest.param(["native", "mcp"], None, id="both"),
        pytest.param(["native", None], None, id="one missing"),
        pytest.param(["mcp", "plugin"], None, id="one unknown"),
        pytest.param([None, None], None, id="all missing"),
        pytest.param(["plugin"], None, id="unknown"),
    ],
)
def test_the_tool_type_is_reported_when_the_matching_failures_agree(types, expected):
    others = (
        observe(tool_type="other", duplicate=True),
        observe("success", "success", tool="shell", tool_type="other"),
        observe(tool="disk", tool_type="other"),
        observe("success", "success", tool="disk", tool_type="other"),
    )
    matching = [observe(tool_type=tool_type) for tool_type in types]
    transition = transition_of(RepeatedFailure.start(Mode.SHADOW), batch(*matching, *others))
    assert transition.tool_type is expected


@pytest.mark.parametrize(
    ("error_type", "expected"),
    [
        pytest.param("shell_execute.error-2", "shell_execute.error-2", id="an identifier"),
        pytest.param("no such file: /home/x", None, id="a text"),
        pytest.param("x" * 65, None, id="a long word"),
    ],
)
def test_an_error_type_that_is_no_identifier_counts_and_is_not_reported(error_type, expected):
    step = reduce(RepeatedFailure.start(Mode.SHADOW), failures(1, error_type=error_type))
    assert step.state.failure_count == 1
    assert step.transitions[0].error_type == expected
