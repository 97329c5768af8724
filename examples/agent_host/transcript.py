"""The transcript of a session: a file that is only ever added to."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

from examples.agent_host.messages import (
    AssistantTurn,
    Message,
    RequestedCall,
    ToolAnswer,
    Wire,
    read_messages,
)

UNANSWERED = "Nothing is known of this call: the agent was interrupted."


class TranscriptError(Exception):
    """A message could not be made to last."""


class Transcript:
    """Messages in order, in memory and on disk; a message is in it when the disk has it.

    What is added together stands on one line, so that a crash leaves all of it or a line without
    an end, which counts for nothing.
    """

    def __init__(self, path: Path) -> None:
        """Read what an earlier process wrote.

        Raises:
            ValueError: a line of the file is no message.
        """
        self._path = path
        found = path.read_bytes() if path.exists() else b""
        self._whole_bytes = found.rfind(b"\n") + 1
        whole = found[: self._whole_bytes].decode()
        self._messages = [each for line in whole.splitlines() for each in read_messages(line)]

    @property
    def messages(self) -> tuple[Message, ...]:
        """Return everything that was said."""
        return tuple(self._messages)

    def add(self, *messages: Message) -> None:
        """Write messages, all or none.

        Raises:
            TranscriptError: the disk did not take them.
        """
        if not messages:
            return
        wires = [each.wire() for each in messages]
        line = f"{json.dumps(wires[0] if len(wires) == 1 else wires)}\n".encode()
        try:
            self._append(line)
        except OSError as error:
            raise TranscriptError(f"the transcript was not written: {error.strerror}") from error
        self._messages.extend(messages)

    def _append(self, line: bytes) -> None:
        self._path.touch()
        with self._path.open("r+b") as file:
            if file.seek(0, os.SEEK_END) > self._whole_bytes:
                # A line that was cut short, by a crash or by a full disk.
                file.truncate(self._whole_bytes)
                file.seek(self._whole_bytes)
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
            self._whole_bytes = file.tell()

    def wire(self) -> list[Wire]:
        """Return the conversation for a model, which wants an answer to each of its calls.

        One that the last process left without gets a placeholder here and not on disk: whether it
        ran is not known.
        """
        answered = self._answered()
        said: list[Wire] = []
        for message in self._messages:
            said.append(message.wire())
            if isinstance(message, AssistantTurn):
                said += [
                    ToolAnswer(call.call_id, UNANSWERED).wire()
                    for call in message.calls
                    if call.call_id not in answered
                ]
        return said

    def _answered(self) -> set[str]:
        return {each.call_id for each in self._messages if isinstance(each, ToolAnswer)}

    def calls(self) -> Iterator[tuple[RequestedCall, bool]]:
        """Yield every call of the past, and whether it was answered."""
        answered = self._answered()
        for message in self._messages:
            if isinstance(message, AssistantTurn):
                for call in message.calls:
                    yield call, call.call_id in answered
