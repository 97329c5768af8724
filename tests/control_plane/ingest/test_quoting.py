"""What a refusal quotes of a value: words and numbers, and never what may be content."""

import pytest

from control_plane.ingest import contract
from control_plane.ingest.otlp import KeyValues
from tests.control_plane.ingest.bodies import TRANSITION, read_one


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        pytest.param("guessed", "is 'guessed', not", id="a word"),
        pytest.param(
            "/home/ana/notes.txt", "is a string of 19 characters, not", id="what may be a path"
        ),
        pytest.param("it went wrong", "is a string of 13 characters, not", id="a sentence"),
        pytest.param("x" * 41, "is a string of 41 characters, not", id="a long word"),
        pytest.param(7, "is 7, not", id="a number"),
        pytest.param(True, "is True, not", id="a boolean"),
        pytest.param(10**17 + 0.5, "is 1e+17, not", id="a double"),
        pytest.param(b"secret", "is of type bytes, not", id="bytes"),
        pytest.param(("secret",), "is of type tuple, not", id="a list"),
        pytest.param(KeyValues((("k", "secret"),)), "is of type KeyValues, not", id="a map"),
    ],
)
def test_a_refusal_quotes_words_and_numbers_only(value, shown):
    (rejected,) = read_one({**TRANSITION, contract.DECISION: value}).rejected
    assert rejected.detail.startswith(f"{contract.DECISION} {shown} one of reset, tracked")
