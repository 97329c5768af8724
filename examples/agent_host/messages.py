"""The conversation: what was said, asked for and answered, and how a chat model reads it."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

Wire: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class RequestedCall:
    """A tool call as the model wrote it. `arguments` is its JSON text, unread."""

    call_id: str
    tool: str
    arguments: str


@dataclass(frozen=True, slots=True)
class UserText:
    """What a person wrote."""

    text: str

    def wire(self) -> Wire:
        return {"role": "user", "content": self.text}


@dataclass(frozen=True, slots=True)
class SystemText:
    """What the host says: its instructions, a guard's reminder, a guard's stop."""

    text: str

    def wire(self) -> Wire:
        return {"role": "system", "content": self.text}


@dataclass(frozen=True, slots=True)
class AssistantTurn:
    """What the model said, and the calls it asked for, under the ids the host gave them."""

    text: str
    calls: tuple[RequestedCall, ...] = ()

    def wire(self) -> Wire:
        said: dict[str, object] = {"role": "assistant", "content": self.text}
        if self.calls:
            said["tool_calls"] = [
                {
                    "id": call.call_id,
                    "type": "function",
                    "function": {"name": call.tool, "arguments": call.arguments},
                }
                for call in self.calls
            ]
        return said


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What came back for one call."""

    call_id: str
    text: str

    def wire(self) -> Wire:
        return {"role": "tool", "tool_call_id": self.call_id, "content": self.text}


Message: TypeAlias = UserText | SystemText | AssistantTurn | ToolAnswer


def read_messages(line: str) -> Iterable[Message]:
    """Yield the messages that one line of a transcript holds: one, or a list of some.

    Raises:
        ValueError: the line holds none.
    """
    found = json.loads(line)
    for document in found if isinstance(found, list) else [found]:
        yield _message(document)


def _message(document: Mapping[str, object]) -> Message:
    try:
        text = str(document["content"])
        match document["role"]:
            case "user":
                return UserText(text)
            case "system":
                return SystemText(text)
            case "tool":
                return ToolAnswer(str(document["tool_call_id"]), text)
            case "assistant":
                asked = document.get("tool_calls", ())
                return AssistantTurn(text, tuple(_calls(asked)))  # type: ignore[arg-type]  # caught
    except (KeyError, TypeError) as error:
        raise ValueError(f"a line of the transcript is no message: {error!r} is wrong") from error
    raise ValueError("a line of the transcript is no message: its role is unknown")


def _calls(listed: Iterable[Mapping[str, Mapping[str, object]]]) -> Iterable[RequestedCall]:
    for each in listed:
        function = each["function"]
        yield RequestedCall(str(each["id"]), str(function["name"]), str(function["arguments"]))
