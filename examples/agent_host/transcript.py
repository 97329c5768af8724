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
    read_message,
)

UNANSWERED = "Nothing is known of this call: the agent was interrupted."


class TranscriptError(Exception):
    """A message could not be made to last."""


class Transcript:
    """Messages in order, in memory and on disk; a message is in it when the disk has it."""

    def __init__(self, path: Path) -> None:
        """Read what an earlier process wrote.

        Raises:
            ValueError: a line of the file is no message.
        """
        self._path = path
        self._messages = (
            [read_message(line) for line in path.read_text().splitlines()] if path.exists() else []
        )

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
        lines = "".join(f"{json.dumps(each.wire())}\n" for each in messages)
        try:
            with self._path.open("a") as file:
                file.write(lines)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise TranscriptError(f"the transcript was not written: {error.strerror}") from error
        self._messages.extend(messages)

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
