from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardwave.reducer.rollout.invariants import (
    ONLY_IF_DECLARED,
    TransitionFacts,
    immediate_violations,
    is_deny_listed,
    is_overlong,
)
from guardwave.reducer.vocabulary import (
    Decision,
    ExecutionStatus,
    Invariant,
    Mode,
    ResetReason,
    TerminalStatus,
)

ALL = frozenset(Invariant)
GOOD = TransitionFacts(
    decision=Decision.WARNED,
    mode=Mode.WARN,
    assigned_mode=Mode.WARN,
    terminal_status=TerminalStatus.ERROR,
    execution_status=ExecutionStatus.ERROR,
    batch_complete=True,
)
RESET = replace(GOOD, decision=Decision.RESET, reset_reason=ResetReason.CANCELLED)
FACTS = st.builds(
    TransitionFacts,
    decision=st.sampled_from(Decision),
    mode=st.sampled_from(Mode),
    assigned_mode=st.none() | st.sampled_from(Mode),
    reset_reason=st.none() | st.sampled_from(ResetReason),
    terminal_status=st.none() | st.sampled_from(TerminalStatus),
    execution_status=st.none() | st.sampled_from(ExecutionStatus),
    batch_complete=st.none() | st.booleans(),
    deny_listed=st.just(()) | st.just(("user.id",)),
    has_body=st.booleans(),
)


def broken(facts, declares=ALL):
    return set(immediate_violations(facts, declares=declares))


def test_a_good_transition_breaks_nothing():
    assert broken(GOOD) == set()


@pytest.mark.parametrize(
    ("facts", "invariants"),
    [
        pytest.param(
            replace(RESET, reset_reason=ResetReason.CONTRACT_VIOLATION),
            {Invariant.CONTRACT_VIOLATION},
            id="the host reports a broken contract",
        ),
        pytest.param(
            replace(RESET, terminal_status="success", execution_status="error"),
            {Invariant.CONTRACT_VIOLATION},
            id="success of a failed execution",
        ),
        pytest.param(
            replace(RESET, terminal_status="success", execution_status="cancelled"),
            {Invariant.CONTRACT_VIOLATION},
            id="success of a cancelled execution",
        ),
        pytest.param(
            replace(RESET, terminal_status="success", execution_status="not_started"),
            set(),
            id="success of an execution that never began",
        ),
        pytest.param(
            replace(GOOD, terminal_status="cancelled"),
            {Invariant.CANCELLED_COUNTED},
            id="a cancelled call is counted",
        ),
        pytest.param(
            replace(RESET, terminal_status="cancelled", execution_status="cancelled"),
            set(),
            id="a cancelled call resets",
        ),
        pytest.param(
            replace(GOOD, execution_status="not_started"),
            {Invariant.INELIGIBLE_COUNTED},
            id="a call that never ran is counted",
        ),
        pytest.param(
            replace(GOOD, execution_status="cancelled", terminal_status="cancelled"),
            {Invariant.CANCELLED_COUNTED, Invariant.INELIGIBLE_COUNTED},
            id="a call that was cancelled while it ran is counted",
        ),
        pytest.param(
            replace(GOOD, execution_status=None, terminal_status=None),
            set(),
            id="a record without a status is no violation",
        ),
        pytest.param(
            replace(GOOD, batch_complete=False),
            {Invariant.INCOMPLETE_BATCH_DECISION},
            id="a decision on an incomplete batch",
        ),
        pytest.param(replace(RESET, batch_complete=False), set(), id="an incomplete batch resets"),
        pytest.param(replace(GOOD, batch_complete=None), set(), id="completeness is not reported"),
        pytest.param(
            replace(GOOD, mode=Mode.ENFORCE), {Invariant.MODE_MISMATCH}, id="a higher mode"
        ),
        pytest.param(replace(GOOD, mode=Mode.SHADOW), set(), id="a lower mode"),
        pytest.param(
            replace(GOOD, mode=Mode.ENFORCE, assigned_mode=None), set(), id="no assignment id"
        ),
        pytest.param(replace(GOOD, has_body=True), {Invariant.SENSITIVE_FIELD}, id="a body"),
        pytest.param(
            replace(GOOD, deny_listed=("user.id",)),
            {Invariant.SENSITIVE_FIELD},
            id="a field that must never be sent",
        ),
    ],
)
def test_each_immediate_invariant(facts, invariants):
    assert broken(facts) == invariants


@given(FACTS)
def test_a_guard_that_declares_nothing_breaks_only_what_holds_for_all(facts):
    assert broken(facts, frozenset()) == broken(facts) - ONLY_IF_DECLARED


@given(FACTS)
def test_a_reset_never_counts_anything(facts):
    reset = replace(facts, decision=Decision.RESET)
    assert not broken(reset) & ONLY_IF_DECLARED


@pytest.mark.parametrize(
    "key",
    [
        "arguments",
        "gen_ai.tool.call.arguments",
        "toolArguments",
        "tool-results",
        "error.text",
        "exception.message",
        "errorMessage",
        "exception.stacktrace",
        "url.path",
        "mcp.server.name",
        "enduser.id",
        "user",
        "PRIVATE_KEY",
        "privateKey",
        "k" * 129,
    ],
)
def test_a_key_that_names_content_or_a_person_is_denied(key):
    assert is_deny_listed(key)


@pytest.mark.parametrize(
    "key",
    ["thread.name", "severity", "message", "user_agent.original", "pathological", "key", ""],
)
def test_any_other_key_is_not_denied(key):
    assert not is_deny_listed(key)


def test_a_user_beside_a_user_agent_is_still_a_user():
    assert is_deny_listed("user_agent.user.id")


@given(st.text(max_size=200))
def test_a_string_is_overlong_by_its_bytes(text):
    assert is_overlong(text.encode("utf-8", "replace").decode()) is (
        len(text.encode("utf-8", "replace")) > 128
    )
