"""Tool choice: the model request of a turn on each transport, with or without tools.

`docs/guards/identical_call.md` explains how each transport is told to use no tool.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from guardwave.reducer.guards.identical_call import Turn, TurnMode

# The field in which a host of the XML fallback passes the text about its tools; it is never sent.
TOOL_INSTRUCTIONS = "tool_instructions"


class Transport(StrEnum):
    """The API of a model. The XML fallback is for models without tools in their API."""

    OPENAI_RESPONSES = "openai_responses"
    OPENAI_CHAT_COMPLETIONS = "openai_chat_completions"
    ANTHROPIC_MESSAGES = "anthropic_messages"
    XML_FALLBACK = "xml_fallback"


NO_TOOLS: Mapping[Transport, str | Mapping[str, str]] = {
    Transport.OPENAI_RESPONSES: "none",
    Transport.OPENAI_CHAT_COMPLETIONS: "none",
    Transport.ANTHROPIC_MESSAGES: {"type": "none"},
}


def request_of(
    transport: Transport, body: Mapping[str, object], turn: Turn
) -> Mapping[str, object]:
    """Return the request for a turn; the body itself is not changed.

    A normal turn without a note is the body as the host wrote it, with the host's tool choice. A
    synthesis turn keeps tool definitions and history and chooses no tool. Without definitions it
    leaves the field out, because providers reject it then. The note of the turn comes last, after
    the part that a provider caches.

    In the XML fallback `tool_instructions` describes the tools and their schemas to the model. A
    normal turn has it at the end of the system message, a synthesis turn does not, and neither
    sends fields for tools.

    Raises:
        ValueError: `messages` or `input` is missing or of a wrong type; it names the field.
    """
    transport = Transport(transport)
    is_synthesis = turn.mode is TurnMode.SYNTHESIS_ONLY
    request = dict(body)
    if transport is Transport.XML_FALLBACK:
        _describe_tools(request, is_synthesis=is_synthesis)
    elif is_synthesis:
        request.pop("tool_choice", None)
        if request.get("tools"):
            none = NO_TOOLS[transport]
            request["tool_choice"] = none if isinstance(none, str) else dict(none)
    if turn.note is not None:
        _add_note(transport, request, turn.note)
    return request


def _describe_tools(request: dict[str, object], *, is_synthesis: bool) -> None:
    instructions = request.pop(TOOL_INSTRUCTIONS, None)
    for field in ("tools", "tool_choice", "parallel_tool_calls"):
        request.pop(field, None)
    if instructions is None or is_synthesis:
        return
    if not isinstance(instructions, str):
        raise ValueError(f"{TOOL_INSTRUCTIONS} must be a text; pass the description of the tools")
    messages = _list(request, "messages")
    if messages and isinstance(messages[0], Mapping) and messages[0].get("role") == "system":
        messages[0] = _with_text(messages[0], instructions)
    else:
        messages.insert(0, {"role": "system", "content": instructions})
    request["messages"] = messages


def _add_note(transport: Transport, request: dict[str, object], note: str) -> None:
    match transport:
        case Transport.OPENAI_RESPONSES:
            sent = request.get("input")
            # A text is the provider's short form of one user message.
            items = (
                [{"role": "user", "content": sent}]
                if isinstance(sent, str)
                else _list(request, "input")
            )
            request["input"] = [*items, {"role": "developer", "content": note}]
        case Transport.OPENAI_CHAT_COMPLETIONS:
            messages = _list(request, "messages")
            request["messages"] = [*messages, {"role": "system", "content": note}]
        case Transport.ANTHROPIC_MESSAGES | Transport.XML_FALLBACK:
            # These take system text only at the start, so the note ends the last user message.
            messages = _list(request, "messages")
            last = messages[-1] if messages else None
            if isinstance(last, Mapping) and last.get("role") == "user":
                messages[-1] = _with_text(last, note)
            else:
                messages.append({"role": "user", "content": note})
            request["messages"] = messages


def _with_text(message: Mapping[str, object], text: str) -> Mapping[str, object]:
    content = message.get("content")
    if isinstance(content, str):
        return {**message, "content": f"{content}\n\n{text}" if content else text}
    blocks = content if isinstance(content, Sequence) else []
    return {**message, "content": [*blocks, {"type": "text", "text": text}]}


def _list(request: Mapping[str, object], name: str) -> list[object]:
    found = request.get(name)
    if isinstance(found, str) or not isinstance(found, Sequence):
        raise ValueError(f"{name} must be a list; pass the request as the provider takes it")
    return list(found)
