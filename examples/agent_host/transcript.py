"""Transcript of a session: an append-only file of messages."""

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
    """A message could not be written to the disk."""


class Transcript:
    """Messages in order, in memory and on disk; a message is added once the disk has it.

    Messages that are added together stand on one line, so that a crash leaves all of them or a line
    without an end, which is dropped.
    """

    def __init__(self, path: Path) -> None:
        """Read what an earlier process wrote.

        Raises:
            ValueError: a line of the file is no message.
        """
        self._path = path
        content = path.read_bytes() if path.exists() else b""
        self._whole_bytes = content.rfind(b"\n") + 1
        lines = content[: self._whole_bytes].decode().splitlines()
        self._messages = [message for line in lines for message in read_messages(line)]

    @property
    def messages(self) -> tuple[Message, ...]:
        """Return all messages."""
        return tuple(self._messages)

    def add(self, *messages: Message) -> None:
        """Write messages, all or none.

        Raises:
            TranscriptError: the disk did not accept them.
        """
        if not messages:
            return
        wires = [message.wire() for message in messages]
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
                # A line that a crash or a full disk cut short.
                file.truncate(self._whole_bytes)
                file.seek(self._whole_bytes)
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
            self._whole_bytes = file.tell()

    def wire(self) -> list[Wire]:
        """Return the conversation for a model, which needs an answer to each of its calls.

        A call that the last process left unanswered gets a placeholder, here and not on disk:
        whether it ran is unknown.
        """
        answered = self._answered_ids()
        wires: list[Wire] = []
        for message in self._messages:
            wires.append(message.wire())
            if isinstance(message, AssistantTurn):
                wires += [
                    ToolAnswer(call.call_id, UNANSWERED).wire()
                    for call in message.calls
                    if call.call_id not in answered
                ]
        return wires

    def _answered_ids(self) -> set[str]:
        return {message.call_id for message in self._messages if isinstance(message, ToolAnswer)}

    def calls(self) -> Iterator[tuple[RequestedCall, bool]]:
        """Yield every call of the past, and whether it was answered."""
        answered = self._answered_ids()
        for message in self._messages:
            if isinstance(message, AssistantTurn):
                for call in message.calls:
                    yield call, call.call_id in answered
