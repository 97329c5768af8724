import pytest

from guardwave.reducer.guards.repeated_failure import CallOutcome, FailureKey, Observation
from guardwave.reducer.guards.repeated_failure.outcome import (
    CountedFailure,
    classify,
    classify_batch,
)
from guardwave.reducer.vocabulary import ResetReason, ToolType
from tests.support.guards.batches import observe

SUCCESS, FAILURE = CallOutcome.SUCCESS, CallOutcome.FAILURE
VIOLATION, CANCELLED = CallOutcome.CONTRACT_VIOLATION, CallOutcome.CANCELLED
UNKNOWN, NOT_STARTED = CallOutcome.UNKNOWN, CallOutcome.NOT_STARTED
POST = CallOutcome.POST_EXECUTION_FAILURE
EXECUTIONS = ("success", "not_started", "error", "cancelled", None, "unknown", "timed_out", "Error")
ROWS = {
    "success": (SUCCESS, SUCCESS, VIOLATION, VIOLATION, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN),
    "error": (POST, NOT_STARTED, FAILURE, CANCELLED, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN),
    "cancelled": (CANCELLED,) * 8,
    None: (UNKNOWN,) * 8,
    "aborted": (UNKNOWN,) * 8,
    "": (UNKNOWN,) * 8,
}


@pytest.mark.parametrize(
    ("terminal", "execution", "outcome"),
    [
        pytest.param(terminal, execution, outcome, id=f"{terminal} x {execution}")
        for terminal, row in ROWS.items()
        for execution, outcome in zip(EXECUTIONS, row, strict=True)
    ],
)
def test_the_outcome_table(terminal, execution, outcome):
    assert classify(observe(terminal, execution)) is outcome


@pytest.mark.parametrize(
    "tool",
    [
        pytest.param(None, id="missing"),
        pytest.param("", id="empty"),
        pytest.param(" \t", id="blank"),
        pytest.param("x" * 257, id="of 257 characters"),
    ],
)
@pytest.mark.parametrize("status", ["success", "error"])
def test_a_success_and_a_failure_need_the_name_of_the_tool(status, tool):
    assert classify(observe(status, status, tool=tool)) is UNKNOWN


@pytest.mark.parametrize(
    ("terminal", "execution", "outcome"),
    [
        pytest.param("error", "not_started", NOT_STARTED, id="not started"),
        pytest.param("error", "success", POST, id="post-execution failure"),
        pytest.param("error", "cancelled", CANCELLED, id="cancelled"),
        pytest.param("success", "error", VIOLATION, id="contract violation"),
    ],
)
def test_no_other_class_needs_a_name_or_an_error_type(terminal, execution, outcome):
    assert classify(observe(terminal, execution, tool=None, error_type=None)) is outcome


@pytest.mark.parametrize(
    "error_type",
    [
        pytest.param(None, id="missing"),
        pytest.param("", id="empty"),
        pytest.param("  ", id="blank"),
        pytest.param("unknown", id="the class of unknown errors"),
        pytest.param(" UNKNOWN ", id="the class of unknown errors in another spelling"),
        pytest.param("x" * 257, id="a text of 257 characters"),
    ],
)
def test_a_failure_needs_an_error_class(error_type):
    assert classify(observe(error_type=error_type)) is UNKNOWN


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("x", id="one character"),
        pytest.param("x" * 256, id="256 characters"),
        pytest.param("unknown_host", id="a class that begins like the unknown one"),
    ],
)
def test_every_other_name_and_class_counts(name):
    assert classify(observe(tool=name, error_type=name)) is FAILURE


def test_a_success_needs_no_error_type():
    assert classify(observe("success", "success", error_type=None)) is SUCCESS


def test_a_tool_may_be_called_unknown():
    assert classify(observe(tool="unknown")) is FAILURE


OF_REASON = {
    ResetReason.CONTRACT_VIOLATION: observe("success", "error"),
    ResetReason.CANCELLED: observe("cancelled", None),
    ResetReason.UNKNOWN: observe("error", None),
    ResetReason.NOT_STARTED: observe("error", "not_started"),
    ResetReason.POST_EXECUTION_FAILURE: observe("error", "success"),
}
RANKED = list(OF_REASON)
DISABLING = {ResetReason.CONTRACT_VIOLATION, ResetReason.UNKNOWN}


@pytest.mark.parametrize(
    ("higher", "lower"),
    [
        pytest.param(higher, lower, id=f"{higher} before {lower}")
        for place, higher in enumerate(RANKED)
        for lower in RANKED[place + 1 :]
    ],
)
def test_the_higher_reason_wins_and_either_disables(higher, lower):
    pair = (
        OF_REASON[higher],
        OF_REASON[lower],
        observe(),
        observe("success", "success", tool="other"),
    )
    for order in (pair, tuple(reversed(pair))):
        weighed = classify_batch(order)
        assert weighed.reason is higher
        assert weighed.is_disabling is bool({higher, lower} & DISABLING)


@pytest.mark.parametrize("reason", RANKED)
def test_a_reason_alone_disables_by_its_own(reason):
    weighed = classify_batch([OF_REASON[reason]])
    assert (weighed.reason, weighed.is_disabling) == (reason, reason in DISABLING)


@pytest.mark.parametrize("reason", RANKED)
def test_a_duplicate_gives_no_reason(reason):
    bad = OF_REASON[reason]
    copy = observe(bad.terminal_status, bad.execution_status, duplicate=True)
    assert classify_batch([copy]) == (None, False, (), frozenset())
    assert classify_batch([copy, observe(), copy]) == classify_batch([observe()])


def test_failures_keep_their_key_and_known_tool_type():
    weighed = classify_batch(
        [observe(), observe(tool_type="mcp"), observe(tool_type="plugin"), observe(tool_type=None)]
    )
    key = FailureKey("fetch", "timeout")
    assert weighed.reason is None
    assert weighed.failures == (
        CountedFailure(key, ToolType.NATIVE),
        CountedFailure(key, ToolType.MCP),
        CountedFailure(key, None),
        CountedFailure(key, None),
    )


def test_a_failure_of_a_tool_that_also_succeeded_is_left_out():
    weighed = classify_batch(
        [observe(), observe(tool="shell"), observe("success", "not_started", tool="shell")]
    )
    assert [failure.key.tool for failure in weighed.failures] == ["fetch"]
    assert weighed.succeeded == {"shell"}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        pytest.param({"call_id": 7}, "call_id is of type int; pass a text", id="call id"),
        pytest.param({"tool": b"x"}, "tool is of type bytes; pass a text", id="tool"),
        pytest.param({"tool_type": 1}, "tool_type is of type int", id="tool type"),
        pytest.param({"terminal_status": 1}, "terminal_status is of type int", id="terminal"),
        pytest.param({"execution_status": []}, "execution_status is of type list", id="execution"),
        pytest.param({"error_type": {}}, "error_type is of type dict", id="error type"),
        pytest.param(
            {"is_provider_duplicate": 1},
            "is_provider_duplicate is of type int; pass True or False",
            id="duplicate flag",
        ),
    ],
)
def test_a_field_of_another_type_is_named(fields, words):
    with pytest.raises(ValueError, match=words):
        Observation(**({"call_id": "c", "tool": "t"} | fields))


def test_an_error_of_a_field_shows_no_value():
    with pytest.raises(ValueError, match="error_type is of type list") as refused:
        Observation("c", "t", error_type=["secret result"])  # type: ignore[arg-type]  # on purpose
    assert "secret" not in str(refused.value)
