"""The guards of one session: their state, and what the host knows of each proposed call."""

from collections.abc import Mapping
from dataclasses import dataclass

from examples.agent_host.first_uses import FirstUses
from examples.agent_host.messages import RequestedCall
from examples.agent_host.tools import Tool, read_arguments
from examples.agent_host.transcript import Transcript
from reducer.guards.calls import ToolCall
from reducer.guards.duplicate_call_id import HistoryCall
from reducer.guards.pipeline import HistorySeeded, Proposal
from reducer.guards.side_effect import UNDECLARED, first_use, xid_of


@dataclass(frozen=True, slots=True)
class Proposer:
    """Turns what the model wrote into proposals. `person_id` is the same in every channel."""

    tools: Mapping[str, Tool]
    first_uses: FirstUses
    person_id: str | None

    def proposal(self, call: RequestedCall) -> Proposal:
        """Return a call with its declaration and its identity."""
        arguments = read_arguments(call.arguments)
        tool = self.tools.get(call.tool)
        if tool is None or tool.xid is None:
            declared = UNDECLARED if tool is None else tool.declaration
            return Proposal(tool_call(call), declared)
        xid = xid_of(tool.xid, arguments, person=self.person_id)
        return Proposal(tool_call(call), tool.declaration, xid, first_use(self.first_uses, xid))


def tool_call(call: RequestedCall) -> ToolCall:
    """Return a call by its digest; one whose arguments can't be read equals no other."""
    arguments = read_arguments(call.arguments)
    if arguments is None:
        return ToolCall(call.call_id, call.tool, None)
    return ToolCall.of(call.call_id, call.tool, arguments)


def seed(transcript: Transcript) -> HistorySeeded:
    """Return the calls of the past, so that a replay of one is known after a restart too."""
    return HistorySeeded(
        tuple(
            HistoryCall(tool_call(call), is_answered=is_answered)
            for call, is_answered in transcript.calls()
        )
    )
