import json

import pytest
from click.testing import CliRunner

from guardwave.control_plane.cli import main


def failures(session: str, count: int, **fields: object) -> dict[str, object]:
    """Return a receipt of one settled batch: `count` failures of one tool with one error type."""
    observations = [
        {
            "call_id": f"c{number}",
            "tool": "fetch",
            "tool_type": "native",
            "status": "error",
            "execution_status": "error",
            "error_type": "timeout",
        }
        for number in range(count)
    ]
    return {"session": session, "observations": observations, **fields}


@pytest.fixture
def replay(tmp_path):
    def command(*receipts: object, args: tuple[str, ...] = (), text: str | None = None):
        path = tmp_path / "receipts.ndjson"
        lines = "\n".join(json.dumps(receipt) for receipt in receipts) if text is None else text
        path.write_text(lines)
        return CliRunner().invoke(main, ["replay-guard", str(path), *args])

    return command


STREAK = [failures("s1", 4), failures("s1", 4), failures("s1", 1)]


def test_decisions_are_counted_in_a_table(replay):
    result = replay(*STREAK)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [
        "repeated-failure: 3 receipts of 1 sessions",
        "  action         none                             3",
        "  decision       tracked                          1",
        "  decision       would_stop                       1",
        "  decision       would_warn                       1",
    ]


def test_decisions_are_counted_as_json(replay):
    result = replay(*STREAK, args=("--mode", "enforce", "-o", "json"))
    assert json.loads(result.stdout) == {
        "guard": "repeated-failure",
        "receipts": 3,
        "sessions": 1,
        "counts": {
            "action": {"none": 1, "remind": 1, "stop": 1},
            "decision": {"stop": 1, "tracked": 1, "warn": 1},
        },
    }


def test_every_answer_is_printed_with_its_line(replay):
    result = replay(*STREAK, args=("-o", "ndjson", "--mode", "warn"))
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(answer["line"], answer["decision"]) for answer in answers] == [
        (1, "tracked"),
        (2, "warn"),
        (3, "would_stop"),
    ]


def test_sessions_keep_apart(replay):
    result = replay(failures("s1", 4), failures("s2", 4), args=("-o", "json"))
    summary = json.loads(result.stdout)
    assert (summary["sessions"], summary["counts"]["decision"]) == (2, {"tracked": 2})


def test_a_new_prompt_of_a_session_starts_the_guard_anew(replay):
    receipts = [failures("s1", 4, prompt="p1"), failures("s1", 4, prompt="p2")]
    result = replay(*receipts, args=("-o", "json"))
    assert json.loads(result.stdout)["counts"]["decision"] == {"tracked": 2}


def test_calls_of_a_response_are_counted_by_their_action(replay):
    call = {"id": "x", "tool": "sh", "args": {"cmd": "ls"}}
    receipt = {"session": "s1", "event": "response", "calls": [call]}
    result = replay(receipt, receipt, args=("--guard", "duplicate-call-id", "-o", "json"))
    assert json.loads(result.stdout)["counts"] == {
        "call action": {"execute": 1, "synthetic": 1},
        "turn_outcome": {"continue": 2},
    }


def test_settings_of_the_guard_are_taken(replay):
    call = {"call_id": "k", "tool": "sh", "args": {}}
    receipts = [{"session": "s1", "calls": [call, {**call, "call_id": "l"}]}]
    args = ("--guard", "identical-call", "--config", '{"threshold": 2}', "-o", "json")
    summary = json.loads(replay(*receipts, args=args).stdout)
    assert summary["counts"]["failure"] == {"tool_loop_detected": 1}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("{", "receipts.ndjson:1: ", id="no JSON"),
        pytest.param("[1]", "the line is no JSON object", id="no object"),
        pytest.param('{"observations": []}', "session is missing", id="no session"),
        pytest.param('\n\n{"session": 7}', "receipts.ndjson:3: session is missing", id="line 3"),
        pytest.param('{"session": "s", "complete": "yes"}', "complete", id="a wrong field"),
        pytest.param("[" * 100_000, "receipts.ndjson:1: ", id="a nesting bomb"),
    ],
)
def test_an_unreadable_receipt_is_reported_by_line_and_field(replay, text, words):
    result = replay(text=text)
    assert result.exit_code == 1
    assert words in result.stderr


def test_a_line_without_end_is_refused(replay):
    result = replay(text='{"session": "' + "s" * (8 * 1024 * 1024) + '"}')
    assert result.exit_code == 1
    assert "split the receipt" in result.stderr


@pytest.mark.parametrize(
    ("args", "words"),
    [
        pytest.param(("--config", "{"), "not JSON", id="a broken configuration"),
        pytest.param(("--config", "[]"), "not a JSON object", id="a list as configuration"),
        pytest.param(
            ("--guard", "side-effect", "--mode", "warn"), "in enforce; leave it out", id="a mode"
        ),
    ],
)
def test_a_wrong_option_is_reported(replay, args, words):
    result = replay(*STREAK, args=args)
    assert result.exit_code == 2
    assert words in result.stderr
