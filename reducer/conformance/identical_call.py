"""Identical-call adapter: the guard behind the neutral schema of `docs/guards`."""

import json
from collections.abc import Mapping

from guardwave.reducer.conformance.fields import Fields
from guardwave.reducer.guards.calls import ToolCall
from guardwave.reducer.guards.identical_call import (
    MAX_EVIDENCE_RESETS,
    THRESHOLD,
    BatchSettled,
    Budget,
    CallsProposed,
    Failure,
    IdenticalCall,
    RunAction,
    RunStarted,
    Turn,
    TurnMode,
    TurnStarted,
    dump,
    reduce,
    restore,
)
from guardwave.reducer.vocabulary import Mode


class Machine:
    """The guard in enforce, the mode of the vectors (`docs/guards`).

    One `turn` event is a whole round of a host: the model's turn, its calls and, unless they wait
    for an approval, their results.
    """

    def __init__(self, config: Mapping[str, object]) -> None:
        fields = Fields.of(config, "/config")
        self._state = IdenticalCall.start(
            Mode.ENFORCE,
            threshold=fields.whole("threshold", default=THRESHOLD),
            max_evidence_resets=fields.whole("max_evidence_resets", default=MAX_EVIDENCE_RESETS),
        )
        # A host's transcript keeps the results of a batch from before its pause.
        self._paused_evidence: Mapping[str, str] = {}

    def step(self, event: Mapping[str, object]) -> Mapping[str, object]:
        """Take an event and return the guard's decision about the turn.

        Raises:
            ValueError: the event or a field is not of the schema; it names the field.
        """
        fields = Fields.of(event)
        match fields.text("event", default="turn"):
            case "turn":
                return self._turn(fields)
            case "resume":
                return self._resume(_evidence(fields))
            case "reload":
                self._state = restore(json.loads(json.dumps(dump(self._state))))
                return self._output()
            case "new_run":
                self._state = reduce(self._state, RunStarted()).state
                self._paused_evidence = {}
                return self._output()
            case other:
                raise ValueError(f"/event: {other!r} is no event of identical-call")

    def _turn(self, event: Fields) -> Mapping[str, object]:
        calls, evidence = _calls(event), _evidence(event)
        awaits_approval = event.flag("awaits_approval", default=False)
        start = reduce(self._state, TurnStarted(_budget(event)))
        self._state = start.state
        if start.turn is None:
            return self._output("fail", failure=start.failure)
        if event.flag("model_error", default=False):
            return self._output("retry", turn=start.turn)
        proposal = reduce(self._state, CallsProposed(calls))
        self._state = proposal.state
        if proposal.action is not RunAction.DISPATCH:
            return self._output(proposal.action, turn=start.turn, failure=proposal.failure)
        if awaits_approval:
            self._paused_evidence = evidence
            return self._output("suspended", turn=start.turn)
        self._state = reduce(self._state, BatchSettled(evidence)).state
        dispatched = [call.call_id for call in calls]
        return self._output("dispatch", turn=start.turn, dispatched=dispatched)

    def _resume(self, evidence: Mapping[str, str]) -> Mapping[str, object]:
        dispatched = [call.call_id for call in self._state.pending or ()]
        merged = {**self._paused_evidence, **evidence}
        self._state = reduce(self._state, BatchSettled(merged)).state
        self._paused_evidence = {}
        return self._output("completed", dispatched=dispatched)

    def _output(
        self,
        decision: str | None = None,
        *,
        turn: Turn | None = None,
        failure: Failure | None = None,
        dispatched: list[str | None] | None = None,
    ) -> Mapping[str, object]:
        next_turn_mode = self._state.next_turn_mode
        is_synthesis = turn is not None and turn.mode is TurnMode.SYNTHESIS_ONLY
        return {
            "turn_mode": None if turn is None else turn.mode.value,
            "cause": None if turn is None or turn.cause is None else turn.cause.value,
            "tool_choice": "none" if is_synthesis else None,
            "decision": None if decision is None else str(decision),
            "failure": None if failure is None else failure.value,
            "dispatched": dispatched or [],
            "next_turn_mode": None if next_turn_mode is None else next_turn_mode.value,
            "max_count": self._state.max_count,
            "resets_used": self._state.tallies.resets_used,
        }


def _budget(event: Fields) -> Budget:
    word = event.optional_text("budget") or Budget.NONE
    if word not in Budget.__members__.values():
        raise ValueError(f"/budget: {word!r} is none of {', '.join(Budget)}")
    return Budget(word)


def _calls(event: Fields) -> tuple[ToolCall, ...]:
    calls = []
    for at, item in enumerate(event.items("calls", default=())):
        call = Fields.of(item, f"/calls/{at}")
        tool = call.text("tool", default="")
        calls.append(ToolCall.of(call.optional_text("call_id"), tool, call.values.get("args")))
    return tuple(calls)


def _evidence(event: Fields) -> Mapping[str, str]:
    evidence = Fields(event.mapping("evidence", default={}), "/evidence")
    keys = {call_id: evidence.optional_text(call_id) for call_id in evidence.values}
    return {call_id: key for call_id, key in keys.items() if key is not None}
