"""The identical-call guard behind the neutral schema of docs/guards."""

import json
from collections.abc import Mapping

from reducer.conformance.fields import Fields
from reducer.guards.calls import ToolCall
from reducer.guards.identical_call import (
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
from reducer.vocabulary import Mode


class Machine:
    """The guard in enforce: the vectors describe this mode (docs/guards).

    One `turn` is a host's whole round: the model's turn, the calls it asked for and, unless they
    wait for an approval, their results.
    """

    def __init__(self, config: Mapping[str, object]) -> None:
        given = Fields.of(config, "/config")
        self._state = IdenticalCall.start(
            Mode.ENFORCE,
            threshold=given.whole("threshold", missing=THRESHOLD),
            max_evidence_resets=given.whole("max_evidence_resets", missing=MAX_EVIDENCE_RESETS),
        )
        # A transcript holds the results that a batch brought before it was paused.
        self._paused_evidence: Mapping[str, str] = {}

    def step(self, given: Mapping[str, object]) -> Mapping[str, object]:
        """Take an event and return what the guard decided about the turn.

        Raises:
            ValueError: an event or a field that is none of the schema; naming it.
        """
        fields = Fields.of(given)
        match fields.text("event", missing="turn"):
            case "turn":
                return self._turn(fields)
            case "resume":
                return self._resumed(_evidence(fields))
            case "reload":
                self._state = restore(json.loads(json.dumps(dump(self._state))))
                return self._output()
            case "new_run":
                self._state = reduce(self._state, RunStarted()).state
                self._paused_evidence = {}
                return self._output()
            case other:
                raise ValueError(f"/event: {other!r} is no event of identical-call")

    def _turn(self, given: Fields) -> Mapping[str, object]:
        calls, evidence = _calls(given), _evidence(given)
        awaits_approval = given.flag("awaits_approval", missing=False)
        begun = reduce(self._state, TurnStarted(_budget(given)))
        self._state = begun.state
        if begun.turn is None:
            return self._output("fail", failure=begun.failure)
        if given.flag("model_error", missing=False):
            return self._output("retry", turn=begun.turn)
        proposed = reduce(self._state, CallsProposed(calls))
        self._state = proposed.state
        if proposed.action is not RunAction.DISPATCH:
            return self._output(proposed.action, turn=begun.turn, failure=proposed.failure)
        if awaits_approval:
            self._paused_evidence = evidence
            return self._output("suspended", turn=begun.turn)
        self._state = reduce(self._state, BatchSettled(evidence)).state
        dispatched = [call.call_id for call in calls]
        return self._output("dispatch", turn=begun.turn, dispatched=dispatched)

    def _resumed(self, evidence: Mapping[str, str]) -> Mapping[str, object]:
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


def _budget(given: Fields) -> Budget:
    word = given.optional_text("budget") or Budget.NONE
    if word not in Budget.__members__.values():
        raise ValueError(f"/budget: {word!r} is none of {', '.join(Budget)}")
    return Budget(word)


def _calls(given: Fields) -> tuple[ToolCall, ...]:
    found = []
    for at, each in enumerate(given.items("calls", missing=())):
        call = Fields.of(each, f"/calls/{at}")
        tool = call.text("tool", missing="")
        found.append(ToolCall.of(call.optional_text("call_id"), tool, call.found.get("args")))
    return tuple(found)


def _evidence(given: Fields) -> Mapping[str, str]:
    found = Fields(given.mapping("evidence", missing={}), "/evidence")
    keys = {call_id: found.optional_text(call_id) for call_id in found.found}
    return {call_id: key for call_id, key in keys.items() if key is not None}
