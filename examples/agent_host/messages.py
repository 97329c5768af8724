"""Messages: the parts of a conversation, in the form that a chat model reads."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

Wire: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class RequestedCall:
    """A tool call as the model wrote it. `arguments` is unparsed JSON."""

    call_id: str
    tool: str
    arguments: str


@dataclass(frozen=True, slots=True)
class UserText:
    """A text that a person wrote."""

    text: str

    def wire(self) -> Wire:
        return {"role": "user", "content": self.text}


@dataclass(frozen=True, slots=True)
class SystemText:
    """A text of the host: its instructions, a guard's reminder, a guard's stop."""

    text: str

    def wire(self) -> Wire:
        return {"role": "system", "content": self.text}


@dataclass(frozen=True, slots=True)
class AssistantTurn:
    """The model's text, and the calls it asked for under the ids that the host gave them."""

    text: str
    calls: tuple[RequestedCall, ...] = ()

    def wire(self) -> Wire:
        message: dict[str, object] = {"role": "assistant", "content": self.text}
        if self.calls:
            message["tool_calls"] = [
                {
                    "id": call.call_id,
                    "type": "function",
                    "function": {"name": call.tool, "arguments": call.arguments},
                }
                for call in self.calls
            ]
        return message


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The answer to one call."""

    call_id: str
    text: str

    def wire(self) -> Wire:
        return {"role": "tool", "tool_call_id": self.call_id, "content": self.text}


Message: TypeAlias = UserText | SystemText | AssistantTurn | ToolAnswer


def read_messages(line: str) -> Iterable[Message]:
    """Yield the messages of one line of a transcript, which holds one or a list of them.

    Raises:
        ValueError: the line holds no message.
    """
    content = json.loads(line)
    for document in content if isinstance(content, list) else [content]:
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
                calls = document.get("tool_calls", ())
                return AssistantTurn(text, tuple(_calls(calls)))  # type: ignore[arg-type]  # caught
    except (KeyError, TypeError) as error:
        raise ValueError(f"a line of the transcript is no message: {error!r} is wrong") from error
    raise ValueError("a line of the transcript is no message: its role is unknown")


def _calls(listed: Iterable[Mapping[str, Mapping[str, object]]]) -> Iterable[RequestedCall]:
    for call in listed:
        function = call["function"]
        yield RequestedCall(str(call["id"]), str(function["name"]), str(function["arguments"]))
