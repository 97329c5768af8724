import pytest

from guardwave.reducer.conformance.duplicate_call_id import Machine
from guardwave.reducer.conformance.vectors import run
from tests.support.shipped_vectors import shipped_params

CALL = {"id": "s0", "tool": "run_shell", "args": {"cmd": "a"}}


@pytest.mark.parametrize("vector", shipped_params("duplicate-call-id"))
def test_the_guard_decides_as_in_the_vector(vector):
    assert run(vector, Machine) is None


def test_a_step_without_an_event_is_a_response_and_null_is_no_id():
    machine = Machine({})
    assert machine.step({"calls": [{**CALL, "id": None}]})["calls"] == [
        {"raw_id": None, "action": "execute", "call_id": "call_gen_1"}
    ]


def test_the_breaker_names_its_loop_each_time_it_opens():
    machine = Machine({"suffix": "-again-"})
    named = [machine.step({"calls": [CALL]})["calls"] for _ in range(2)]
    assert named[1] == [{"raw_id": "s0", "action": "synthetic", "call_id": "s0-again-2"}]
    for _ in range(2):
        output = machine.step({"calls": [CALL]})
        assert output["breaker"] is True
        assert output["loop_type"] == "global_tool_call_duplicate"


@pytest.mark.parametrize(
    ("config", "words"),
    [
        pytest.param({"route": "pigeon"}, "/config/route: is 'pigeon'; give one of", id="a route"),
        pytest.param({"suffix": 1}, "/config/suffix: must be a text", id="a suffix of no text"),
        pytest.param({"suffix": ""}, "suffix is ''; give a text", id="an empty suffix"),
        pytest.param({"generated_prefix": 1}, "/config/generated_prefix: must be", id="a prefix"),
    ],
)
def test_a_configuration_of_another_kind_is_refused(config, words):
    with pytest.raises(ValueError, match=words):
        Machine(config)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        pytest.param({"event": "nap"}, "/event: 'nap' is no event", id="an unknown event"),
        pytest.param({"calls": {}}, "/calls: must be a list", id="an object of calls"),
        pytest.param({"calls": [7]}, "/calls/0: must be an object", id="a call that is a number"),
        pytest.param({"calls": [{"tool": 1}]}, "/calls/0/tool: must be a text", id="a tool"),
        pytest.param({"calls": [{"id": 1, "tool": "t"}]}, "/calls/0/id: must be", id="an id"),
        pytest.param(
            {"event": "batch", "responses": [[], [7]]}, "/responses/1/0: must be", id="a response"
        ),
        pytest.param(
            {"event": "seed_history", "entries": [CALL, {**CALL, "answered": 1}]},
            "/entries/1/answered: must be true or false",
            id="1 for true",
        ),
    ],
)
def test_an_input_of_another_kind_is_refused(given, words):
    with pytest.raises(ValueError, match=words):
        Machine({}).step(given)
