import json

import pytest
from click.testing import CliRunner

from guardwave.control_plane.cli import main


def expects(decision: str) -> dict[str, object]:
    """Return a vector of one failure that expects a decision."""
    failure = {
        "call_id": "c1",
        "tool": "fetch",
        "tool_type": "native",
        "status": "error",
        "execution_status": "error",
        "error_type": "timeout",
    }
    step = {"input": {"observations": [failure]}, "expect": {"decision": decision}}
    return {"name": f"{decision} is expected", "basis": "author", "config": {}, "steps": [step]}


@pytest.fixture
def run(tmp_path):
    def command(*vectors: object, text: str | None = None, args: tuple[str, ...] = ()):
        path = tmp_path / "vectors.json"
        path.write_text(json.dumps(vectors) if text is None else text)
        return CliRunner().invoke(main, ["conformance", str(path), *args])

    return command


def test_every_vector_that_ships_passes():
    result = CliRunner().invoke(main, ["conformance"])
    assert result.stdout == "222 passed, 0 failed\n"
    assert result.exit_code == 0


def test_vectors_that_pass_are_counted(run):
    result = run(expects("tracked"), expects("tracked"))
    assert (result.stdout, result.exit_code) == ("2 passed, 0 failed\n", 0)


def test_a_failed_vector_is_reported_by_its_first_field_that_differs(run, tmp_path):
    result = run(expects("stop"), expects("tracked"))
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        (
            f"{tmp_path}/vectors.json: 'stop is expected' at /steps/0/expect/decision: "
            'expected "stop", found "tracked"'
        ),
        "1 passed, 1 failed",
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("{", "is no file of vectors", id="no JSON"),
        pytest.param("[]", "the document is no list of vectors", id="no vector"),
        pytest.param("[" * 100_000, "is no file of vectors", id="a nesting bomb"),
        pytest.param('[{"name": 1, "steps": [{}]}]', "/0/name", id="a field of another type"),
    ],
)
def test_a_file_that_holds_no_vectors_is_refused_with_its_place(run, text, words):
    result = run(text=text)
    assert result.exit_code == 1
    assert words in result.stderr
    assert result.stdout == ""


def test_a_missing_file_is_reported(tmp_path):
    result = CliRunner().invoke(main, ["conformance", str(tmp_path / "none.json")])
    assert result.exit_code == 1
    assert "none.json cannot be read as text" in result.stderr


def test_vectors_are_run_on_the_guard_that_is_asked_for(run):
    result = run(expects("tracked"), args=("--guard", "side-effect"))
    assert result.exit_code == 1
    assert result.stdout.endswith("0 passed, 1 failed\n")


def test_a_broken_vector_is_reported_and_the_others_are_run(run, tmp_path):
    result = run(expects("tracked"), {"name": "cut short"}, expects("tracked"))
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        (
            f"{tmp_path}/vectors.json: '/1' at /1/steps: "
            "expected a vector, found refused: is missing"
        ),
        "2 passed, 1 failed",
    ]
