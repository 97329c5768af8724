"""The side-effect guard behind the neutral schema of docs/guards."""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple, TypeVar

from reducer.conformance.fields import Fields, pointer
from reducer.guards.calls import ToolCall
from reducer.guards.side_effect import (
    UNDECLARED,
    CallStatus,
    Decided,
    Idempotency,
    IdempotencyWindow,
    Ladder,
    Proposed,
    Scope,
    Settled,
    SideEffectDuplicate,
    SideEffectStep,
    ToolDeclaration,
    Verdict,
    reduce,
)
from reducer.vocabulary import ExecutionStatus, Mode

Word = TypeVar("Word", bound=StrEnum)

_OUTCOMES = {"success": ExecutionStatus.SUCCESS, "error": ExecutionStatus.ERROR}


class _Asked(NamedTuple):
    request: str
    scope: Scope


class Machine:
    """One guard in enforce, with the settings and tools of a vector's config."""

    def __init__(self, config: Mapping[str, object]) -> None:
        fields = Fields.of(config, "/config")
        self._state = SideEffectDuplicate.start(Mode.ENFORCE, ladder=_ladder(fields))
        self._tools = {
            name: _declaration(Fields.of(each, pointer("/config/tools", name)))
            for name, each in fields.mapping("tools", missing={}).items()
        }
        self._asked: dict[str, _Asked] = {}

    def step(self, given: Mapping[str, object]) -> Mapping[str, object]:
        """Take one event; `parallel` proposes all of its calls before any of them ends."""
        fields = Fields.of(given)
        match fields.text("event", missing="call"):
            case "call":
                return self._carried_out([fields])[0]
            case "parallel":
                calls = [
                    Fields.of(each, f"/calls/{number}")
                    for number, each in enumerate(fields.items("calls", missing=()))
                ]
                return {"results": self._carried_out(calls)}
            case "decide":
                return self._answered(fields)
            case unknown:
                raise ValueError(f"/event: {unknown!r} is none of call, parallel, decide")

    def _carried_out(self, calls: list[Fields]) -> list[Mapping[str, object]]:
        steps = [self._proposed(each) for each in calls]
        return [
            self._output(step, self._ended(step, each), self._scope(step))
            for step, each in zip(steps, calls, strict=True)
        ]

    def _proposed(self, call: Fields) -> SideEffectStep:
        tool = call.text("tool", missing="")
        request = call.text("request", missing="r1")
        step = reduce(
            self._state,
            Proposed(
                ToolCall.of(call.text("call_id"), tool, call.found.get("args")),
                request,
                call.whole("now_ms", missing=0),
                thread=call.optional_text("thread"),
                declaration=self._tools.get(tool, UNDECLARED),
                is_approved=call.flag("approved", missing=False),
            ),
        )
        self._state = step.state
        if step.question is not None:
            self._asked[step.question.repeat.call_id] = _Asked(request, self._scope(step))
        return step

    def _answered(self, answer: Fields) -> Mapping[str, object]:
        call_id = answer.text("call_id")
        request, scope = self._asked.get(call_id, _Asked("r1", self._state.ladder.scope))
        now_ms = answer.whole("now_ms", missing=0)
        event = Decided(call_id, request, answer.flag("approved"), now_ms)
        step = reduce(self._state, event)
        self._state = step.state
        return self._output(step, self._ended(step, answer, request), scope)

    def _ended(
        self, step: SideEffectStep, call: Fields, request: str | None = None
    ) -> CallStatus | None:
        """Let a call that runs end as the vector says, and return its record."""
        outcome = call.text("outcome", missing="success")
        if outcome not in _OUTCOMES:
            raise ValueError(f"{pointer(call.place, 'outcome')}: must be success or error")
        if step.verdict is None or not step.verdict.runs:
            return step.record
        asked = request or call.text("request", missing="r1")
        now_ms = call.whole("now_ms", missing=0)
        event = Settled(call.text("call_id"), asked, _OUTCOMES[outcome], now_ms)
        after = reduce(self._state, event)
        self._state = after.state
        return after.record

    def _scope(self, step: SideEffectStep) -> Scope:
        return self._state.ladder.scope if step.diagnostic is None else Scope.REQUEST

    def _output(
        self, step: SideEffectStep, record: CallStatus | None, scope: Scope
    ) -> Mapping[str, object]:
        verdict = Verdict.REPLAY if step.verdict is Verdict.UNASKED else step.verdict
        return {
            "decision": verdict,
            "executed": verdict is not None and verdict.runs,
            "asks": step.question is not None,
            "incident": step.incident is not None,
            "first_call_id": None if step.repeat is None else step.repeat.first.call_id,
            "record": record,
            "scope_used": scope,
        }


def _ladder(fields: Fields) -> Ladder:
    """Return the settings of a config; its action is a word, or the table of all three."""
    found = fields.found.get("action")
    table = Fields.of(found, "/config/action") if isinstance(found, Mapping) else fields
    settings: dict[str, object] = {}
    for each in (table, fields):
        settings["scope"] = each.optional_text("scope") or settings.get("scope")
        ttl_ms = each.optional_whole("ttl_ms")
        settings["ttl_ms"] = settings.get("ttl_ms") if ttl_ms is None else ttl_ms
    settings["action"] = table.optional_text("action")
    return Ladder.parse({key: value for key, value in settings.items() if value is not None})


def _declaration(fields: Fields) -> ToolDeclaration:
    keys = fields.items("idempotency_key_fields", missing=())
    return ToolDeclaration(
        side_effect=_optional_flag(fields, "side_effect"),
        idempotent=_optional_flag(fields, "idempotent"),
        idempotency=_word(fields, "idempotency", Idempotency, Idempotency.CALL),
        idempotency_key_fields=tuple(str(key) for key in keys),
        idempotency_window=_word(
            fields, "idempotency_window", IdempotencyWindow, IdempotencyWindow.RUN
        ),
    )


def _optional_flag(fields: Fields, name: str) -> bool | None:
    return None if fields.found.get(name) is None else fields.flag(name)


def _word(fields: Fields, name: str, words: type[Word], missing: Word) -> Word:
    found = fields.text(name, missing=missing)
    for word in words:
        if word == found:
            return word
    place = pointer(fields.place, name)
    raise ValueError(f"{place}: {found!r} is none of {', '.join(words)}")
