import pytest

from guardwave.reducer.conformance.repeated_failure import Machine
from guardwave.reducer.conformance.vectors import run
from tests.support.shipped_vectors import shipped_params


@pytest.mark.parametrize("vector", shipped_params("repeated-failure"))
def test_the_guard_decides_as_in_the_vector(vector):
    assert run(vector, Machine) is None


def test_a_route_that_is_no_text_is_refused():
    with pytest.raises(ValueError, match="/config/route: must be a text"):
        Machine({"route": 7})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        pytest.param({"event": "nap"}, "/event: 'nap' is none of batch", id="an unknown event"),
        pytest.param({"complete": 1}, "/complete: must be true or false", id="1 for true"),
        pytest.param({"observations": [7]}, "/observations/0: must be an object", id="a number"),
        pytest.param(
            {"observations": [{"tool": 7}]}, "/observations/0/tool: must be a text", id="a tool"
        ),
    ],
)
def test_an_input_of_another_kind_is_refused(given, words):
    with pytest.raises(ValueError, match=words):
        Machine({}).step(given)
