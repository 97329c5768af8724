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


def read_message(line: str) -> Message:
    """Return the message that one line of a transcript holds.

    Raises:
        ValueError: the line holds none.
    """
    document = json.loads(line)
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
                return AssistantTurn(text, tuple(_calls(document.get("tool_calls", ()))))
    except (KeyError, TypeError) as error:
        raise ValueError(f"a line of the transcript is no message: {error!r} is wrong") from error
    raise ValueError("a line of the transcript is no message: its role is unknown")


def _calls(listed: Iterable[Mapping[str, Mapping[str, object]]]) -> Iterable[RequestedCall]:
    for each in listed:
        function = each["function"]
        yield RequestedCall(str(each["id"]), str(function["name"]), str(function["arguments"]))
