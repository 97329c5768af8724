"""Guard input: proposals from the model's calls, and the session's earlier calls."""

from collections.abc import Mapping
from dataclasses import dataclass

from examples.agent_host.first_uses import FirstUses
from examples.agent_host.messages import RequestedCall
from examples.agent_host.tools import Tool, read_arguments
from examples.agent_host.transcript import Transcript
from guardwave.guards import ToolCall, duplicate_call_id, pipeline, side_effect


@dataclass(frozen=True, slots=True)
class Proposer:
    """Turns the model's calls into proposals. `person_id` is the same in every channel."""

    tools: Mapping[str, Tool]
    first_uses: FirstUses
    person_id: str | None

    def proposal(self, call: RequestedCall) -> pipeline.Proposal:
        """Return a call with its declaration and its identity."""
        arguments = read_arguments(call.arguments)
        tool = self.tools.get(call.tool)
        if tool is None or tool.xid is None:
            declaration = side_effect.UNDECLARED if tool is None else tool.declaration
            return pipeline.Proposal(tool_call(call), declaration)
        xid = side_effect.xid_of(tool.xid, arguments, person=self.person_id)
        first_use = side_effect.first_use(self.first_uses, xid)
        return pipeline.Proposal(tool_call(call), tool.declaration, xid, first_use)


def tool_call(call: RequestedCall) -> ToolCall:
    """Return a call by its digest; a call with unreadable arguments equals no other."""
    arguments = read_arguments(call.arguments)
    if arguments is None:
        return ToolCall(call.call_id, call.tool, None)
    return ToolCall.of(call.call_id, call.tool, arguments)


def seed(transcript: Transcript) -> pipeline.HistorySeeded:
    """Return the calls of the past, so that a replay is recognised after a restart too."""
    return pipeline.HistorySeeded(
        tuple(
            duplicate_call_id.HistoryCall(tool_call(call), is_answered=is_answered)
            for call, is_answered in transcript.calls()
        )
    )
