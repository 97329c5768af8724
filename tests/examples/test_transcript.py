"""Transcript of the example: messages added together are written all or not at all."""

import os

import pytest

from examples.agent_host.messages import AssistantTurn, RequestedCall, ToolAnswer, UserText
from examples.agent_host.transcript import Transcript, TranscriptError

FIRST = UserText("go")
TURN = AssistantTurn("", (RequestedCall("c1", "fetch", "{}"), RequestedCall("c2", "fetch", "{}")))
ANSWERS = (ToolAnswer("c1", "one"), ToolAnswer("c2", "two"))


def write_transcript(path):
    transcript = Transcript(path)
    transcript.add(FIRST)
    transcript.add(TURN)
    transcript.add(*ANSWERS)
    return transcript


def test_what_was_written_is_read_again(tmp_path):
    path = tmp_path / "transcript.ndjson"
    assert write_transcript(path).messages == Transcript(path).messages == (FIRST, TURN, *ANSWERS)


def test_wherever_a_crash_cuts_the_file_answers_are_there_all_or_none(tmp_path):
    path = tmp_path / "transcript.ndjson"
    write_transcript(path)
    whole = path.read_bytes()
    seen = set()
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        seen.add(Transcript(path).messages)
    assert seen == {(), (FIRST,), (FIRST, TURN), (FIRST, TURN, *ANSWERS)}


def test_after_a_crash_the_transcript_goes_on_where_its_last_whole_line_ends(tmp_path):
    path = tmp_path / "transcript.ndjson"
    write_transcript(path)
    path.write_bytes(path.read_bytes()[:-5])
    restarted = Transcript(path)
    restarted.add(UserText("again"))
    assert restarted.messages == Transcript(path).messages == (FIRST, TURN, UserText("again"))


def test_a_write_that_fails_half_way_leaves_nothing_behind(tmp_path, monkeypatch):
    path = tmp_path / "transcript.ndjson"
    transcript = write_transcript(path)

    def full(_):
        raise OSError(28, "no space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(os, "fsync", full)
        with pytest.raises(TranscriptError, match="no space left"):
            transcript.add(UserText("lost"))
    assert transcript.messages[-1] == ANSWERS[-1]
    transcript.add(UserText("kept"))
    assert Transcript(path).messages == (FIRST, TURN, *ANSWERS, UserText("kept"))


@pytest.mark.parametrize("line", ['{"role": "user"}', "[7]", '{"role": "owl", "content": ""}'])
def test_a_line_that_is_no_message_is_refused(tmp_path, line):
    path = tmp_path / "transcript.ndjson"
    path.write_text(f"{line}\n")
    with pytest.raises(ValueError, match="a line of the transcript is no message"):
        Transcript(path)
