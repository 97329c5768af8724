"""The request of a model turn for each transport: with tools, or without for a synthesis turn.

How each transport is told to use no tool stands in docs/guards/identical_call.md.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from reducer.guards.identical_call.events import Turn, TurnMode

# Where a host of the XML fallback puts the text that teaches the model its tools; never sent.
TOOL_INSTRUCTIONS = "tool_instructions"


class Transport(StrEnum):
    """How a model is spoken to. The XML fallback is for models that know no tools of their own."""

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
    """Return the request that asks for a turn; the body itself is left as it is.

    A normal turn without a note is the body as the host wrote it, its tool choice unset or its
    own. A synthesis turn keeps tool definitions and history and chooses no tool; without
    definitions there is nothing to choose and the field, which providers then refuse, is left
    out. The turn's note comes last, behind what a provider caches.

    In the XML fallback `tool_instructions` is the text that teaches the model its tools, with
    their schemas: a normal turn has it at the end of the system message, a synthesis turn has
    not, and neither sends fields for tools.

    Raises:
        ValueError: `messages` or `input` is missing or of another type, naming it.
    """
    transport = Transport(transport)
    is_synthesis = turn.mode is TurnMode.SYNTHESIS_ONLY
    request = dict(body)
    if transport is Transport.XML_FALLBACK:
        _teach(request, is_synthesis=is_synthesis)
    elif is_synthesis:
        request.pop("tool_choice", None)
        if request.get("tools"):
            none = NO_TOOLS[transport]
            request["tool_choice"] = none if isinstance(none, str) else dict(none)
    if turn.note is not None:
        _add_note(transport, request, turn.note)
    return request


def _teach(request: dict[str, object], *, is_synthesis: bool) -> None:
    instructions = request.pop(TOOL_INSTRUCTIONS, None)
    for field in ("tools", "tool_choice", "parallel_tool_calls"):
        request.pop(field, None)
    if instructions is None or is_synthesis:
        return
    if not isinstance(instructions, str):
        raise ValueError(f"{TOOL_INSTRUCTIONS} must be a text; pass what teaches the tools")
    messages = _list(request, "messages")
    if messages and isinstance(messages[0], Mapping) and messages[0].get("role") == "system":
        messages[0] = _with_text(messages[0], instructions)
    else:
        messages.insert(0, {"role": "system", "content": instructions})
    request["messages"] = messages


def _add_note(transport: Transport, request: dict[str, object], note: str) -> None:
    match transport:
        case Transport.OPENAI_RESPONSES:
            given = request.get("input")
            # A text is the provider's short form of one user message.
            items = (
                [{"role": "user", "content": given}]
                if isinstance(given, str)
                else _list(request, "input")
            )
            request["input"] = [*items, {"role": "developer", "content": note}]
        case Transport.OPENAI_CHAT_COMPLETIONS:
            messages = _list(request, "messages")
            request["messages"] = [*messages, {"role": "system", "content": note}]
        case Transport.ANTHROPIC_MESSAGES | Transport.XML_FALLBACK:
            # These know system text at the start alone, so the note ends the last user message.
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
