import pytest

from guardwave.reducer.conformance.side_effect import Machine
from guardwave.reducer.conformance.vectors import run
from tests.support.shipped_vectors import shipped_params


@pytest.mark.parametrize("vector", shipped_params("side-effect"))
def test_the_guard_decides_as_in_the_vector(vector):
    assert run(vector, Machine) is None


@pytest.mark.parametrize(
    ("config", "words"),
    [
        pytest.param({"action": "shout"}, "action is 'shout'; it is one of off", id="action"),
        pytest.param({"scope": "world"}, "scope is 'world'; it is one of request", id="scope"),
        pytest.param(
            {"ttl_ms": True}, "/config/ttl_ms: must be a whole number", id="a ttl that is no number"
        ),
        pytest.param({"tools": []}, "/config/tools: must be an object", id="a list of tools"),
        pytest.param({"tools": {"t": 1}}, "/config/tools/t: must be an object", id="a tool"),
        pytest.param(
            {"tools": {"t": {"side_effect": 1}}},
            "/config/tools/t/side_effect: must be true or false",
            id="1 for true",
        ),
        pytest.param(
            {"tools": {"t": {"idempotency": "maybe"}}},
            "/config/tools/t/idempotency: 'maybe' is none of call, args",
            id="an unknown idempotency",
        ),
        pytest.param(
            {"tools": {"t": {"idempotency_window": "year"}}},
            "/config/tools/t/idempotency_window: 'year' is none of run, thread, cross-run",
            id="an unknown window",
        ),
        pytest.param(
            {"tools": {"t": {"idempotency_key_fields": "order"}}},
            "/config/tools/t/idempotency_key_fields: must be a list",
            id="key fields that are no list",
        ),
    ],
)
def test_a_configuration_of_another_kind_is_refused(config, words):
    with pytest.raises(ValueError, match=words):
        Machine(config)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        pytest.param({"event": "nap"}, "/event: 'nap' is none of call", id="an unknown event"),
        pytest.param({"tool": "t"}, "/call_id: is missing", id="a call without id"),
        pytest.param(
            {"call_id": "c", "tool": "t", "outcome": "maybe"}, "/outcome: must be", id="outcome"
        ),
        pytest.param(
            {"event": "parallel", "calls": [7]}, "/calls/0: must be an object", id="a number"
        ),
        pytest.param(
            {"event": "decide", "call_id": "c", "approved": 1}, "/approved: must be", id="1 for yes"
        ),
    ],
)
def test_an_input_of_another_kind_is_refused(given, words):
    with pytest.raises(ValueError, match=words):
        Machine({}).step(given)


def test_null_in_a_declaration_is_the_same_as_nothing():
    machine = Machine({"tools": {"t": {"side_effect": None, "idempotent": True}}})
    machine.step({"call_id": "c1", "tool": "t"})
    assert machine.step({"call_id": "c2", "tool": "t"})["decision"] == "execute"


def test_an_answer_finds_the_request_in_which_the_question_was_put():
    machine = Machine({})
    for call_id in ("c1", "c2"):
        machine.step({"call_id": call_id, "tool": "t", "request": "r7"})
    answer = {"event": "decide", "call_id": "c2", "approved": True, "outcome": "error"}
    assert machine.step(answer)["record"] == "failed"
    assert machine.step(answer) == {
        "decision": "replay",
        "executed": False,
        "asks": False,
        "incident": False,
        "first_call_id": None,
        "record": "failed",
        "scope_used": "request",
    }


@pytest.mark.parametrize(
    ("thread", "scope"),
    [pytest.param("t", "thread", id="a thread"), pytest.param(None, "request", id="none")],
)
def test_an_answer_is_about_the_place_in_which_the_question_was_put(thread, scope):
    machine = Machine({"scope": "thread"})
    for call_id in ("c1", "c2"):
        machine.step({"call_id": call_id, "tool": "t", "thread": thread})
    answer = {"event": "decide", "call_id": "c2", "approved": True}
    assert machine.step(answer)["scope_used"] == scope
