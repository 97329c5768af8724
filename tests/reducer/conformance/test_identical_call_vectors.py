import pytest

from guardwave.reducer.conformance.identical_call import Machine
from guardwave.reducer.conformance.vectors import run
from tests.support.shipped_vectors import shipped_params


def turn(call_id: str, **more: object) -> dict[str, object]:
    return {"calls": [{"call_id": call_id, "tool": "fetch", "args": {"url": "u"}}], **more}


@pytest.mark.parametrize("vector", shipped_params("identical-call"))
def test_the_guard_decides_as_in_the_vector(vector):
    assert run(vector, Machine) is None


def test_every_field_of_the_schema_is_there_for_a_turn():
    assert Machine({}).step(turn("k1")) == {
        "turn_mode": "normal",
        "cause": None,
        "tool_choice": None,
        "decision": "dispatch",
        "failure": None,
        "dispatched": ["k1"],
        "next_turn_mode": "normal",
        "max_count": 1,
        "resets_used": 0,
    }


def test_null_stands_for_no_budget_and_no_evidence():
    machine = Machine({"threshold": 3})
    machine.step(turn("k1", budget=None, evidence={"k1": "p"}))
    assert machine.step(turn("k2", evidence={"k2": None}))["resets_used"] == 0


def test_evidence_from_before_a_pause_counts_when_the_batch_completes():
    machine = Machine({})
    machine.step(turn("k1", evidence={"k1": "p"}))
    paused = machine.step(turn("k2", evidence={"k2": "q"}, awaits_approval=True))
    assert (paused["decision"], paused["dispatched"], paused["resets_used"]) == ("suspended", [], 0)
    machine.step({"event": "reload"})
    resumed = machine.step({"event": "resume"})
    assert (resumed["dispatched"], resumed["max_count"], resumed["resets_used"]) == (["k2"], 1, 1)


def test_a_new_run_forgets_the_evidence_of_a_paused_batch():
    machine = Machine({})
    machine.step(turn("k1", evidence={"k1": "p"}, awaits_approval=True))
    machine.step({"event": "new_run"})
    machine.step(turn("k1", awaits_approval=True))
    machine.step({"event": "resume"})
    assert machine.step(turn("k2", evidence={"k2": "q"}))["resets_used"] == 0


def test_a_call_that_waits_for_approval_does_not_pass_the_limit():
    machine = Machine({"threshold": 2})
    call = {"call_id": "k1", "tool": "fetch"}
    output = machine.step({"calls": [call, call], "awaits_approval": True})
    assert (output["decision"], output["failure"]) == ("fail", "tool_loop_detected")


def test_a_retried_turn_of_the_reserve_stays_without_tools():
    machine = Machine({})
    failed = machine.step({"budget": "reserve", "model_error": True})
    assert (failed["decision"], failed["next_turn_mode"]) == ("retry", "synthesis_only")
    retried = machine.step(turn("k1"))
    assert (retried["cause"], retried["failure"]) == ("budget", "budget_exceeded")


@pytest.mark.parametrize(
    ("config", "words"),
    [
        pytest.param({"threshold": 1}, "threshold is 1; give a whole number from 2", id="1"),
        pytest.param({"threshold": True}, "/config/threshold: must be a whole", id="true"),
        pytest.param({"max_evidence_resets": -1}, "max_evidence_resets is -1", id="minus one"),
    ],
)
def test_a_configuration_of_another_kind_is_refused(config, words):
    with pytest.raises(ValueError, match=words):
        Machine(config)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        pytest.param({"event": "nap"}, "/event: 'nap' is no event", id="an unknown event"),
        pytest.param({"calls": [7]}, "/calls/0: must be an object", id="a call that is a number"),
        pytest.param({"calls": [{"tool": 1}]}, "/calls/0/tool: must be a text", id="a tool"),
        pytest.param({"budget": "some"}, "/budget: 'some' is none of none, reserve", id="a budget"),
        pytest.param({"evidence": {"k": 1}}, "/evidence/k: must be a text", id="evidence"),
        pytest.param(
            {"awaits_approval": 1}, "/awaits_approval: must be true or false", id="1 for true"
        ),
        pytest.param(
            {"model_error": 1}, "/model_error: must be true or false", id="1 for an error"
        ),
    ],
)
def test_an_input_of_another_kind_is_refused(given, words):
    with pytest.raises(ValueError, match=words):
        Machine({}).step(given)
