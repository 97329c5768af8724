"""Side-effect adapter: the guard behind the neutral schema of `docs/guards`."""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple, TypeVar

from guardwave.reducer.conformance.fields import Fields, pointer
from guardwave.reducer.guards.calls import ToolCall
from guardwave.reducer.guards.side_effect import (
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
from guardwave.reducer.vocabulary import ExecutionStatus, Mode

Word = TypeVar("Word", bound=StrEnum)

_OUTCOMES = {"success": ExecutionStatus.SUCCESS, "error": ExecutionStatus.ERROR}


class _OpenQuestion(NamedTuple):
    request: str
    scope: Scope


class Machine:
    """One guard in enforce, with the settings and tools of a vector's config."""

    def __init__(self, config: Mapping[str, object]) -> None:
        fields = Fields.of(config, "/config")
        self._state = SideEffectDuplicate.start(Mode.ENFORCE, ladder=_ladder(fields))
        self._tools = {
            name: _declaration(Fields.of(tool, pointer("/config/tools", name)))
            for name, tool in fields.mapping("tools", default={}).items()
        }
        self._questions: dict[str, _OpenQuestion] = {}

    def step(self, event: Mapping[str, object]) -> Mapping[str, object]:
        """Take one event; `parallel` proposes all its calls before any of them ends."""
        fields = Fields.of(event)
        match fields.text("event", default="call"):
            case "call":
                return self._run([fields])[0]
            case "parallel":
                calls = [
                    Fields.of(call, f"/calls/{number}")
                    for number, call in enumerate(fields.items("calls", default=()))
                ]
                return {"results": self._run(calls)}
            case "decide":
                return self._answer(fields)
            case unknown:
                raise ValueError(f"/event: {unknown!r} is none of call, parallel, decide")

    def _run(self, calls: list[Fields]) -> list[Mapping[str, object]]:
        steps = [self._propose(call) for call in calls]
        return [
            self._output(step, self._end(step, call), self._scope(step))
            for step, call in zip(steps, calls, strict=True)
        ]

    def _propose(self, call: Fields) -> SideEffectStep:
        tool = call.text("tool", default="")
        request = call.text("request", default="r1")
        step = reduce(
            self._state,
            Proposed(
                ToolCall.of(call.text("call_id"), tool, call.values.get("args")),
                request,
                call.whole("now_ms", default=0),
                thread=call.optional_text("thread"),
                declaration=self._tools.get(tool, UNDECLARED),
                is_approved=call.flag("approved", default=False),
            ),
        )
        self._state = step.state
        if step.question is not None:
            self._questions[step.question.repeat.call_id] = _OpenQuestion(
                request, self._scope(step)
            )
        return step

    def _answer(self, answer: Fields) -> Mapping[str, object]:
        call_id = answer.text("call_id")
        request, scope = self._questions.get(call_id, _OpenQuestion("r1", self._state.ladder.scope))
        now_ms = answer.whole("now_ms", default=0)
        event = Decided(call_id, request, answer.flag("approved"), now_ms)
        step = reduce(self._state, event)
        self._state = step.state
        return self._output(step, self._end(step, answer, request), scope)

    def _end(
        self, step: SideEffectStep, call: Fields, request: str | None = None
    ) -> CallStatus | None:
        """End a running call with the outcome of the vector, and return its record."""
        outcome = call.text("outcome", default="success")
        if outcome not in _OUTCOMES:
            raise ValueError(f"{pointer(call.place, 'outcome')}: must be success or error")
        if step.verdict is None or not step.verdict.runs:
            return step.record
        request_id = request or call.text("request", default="r1")
        now_ms = call.whole("now_ms", default=0)
        event = Settled(call.text("call_id"), request_id, _OUTCOMES[outcome], now_ms)
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
    """Return the settings of a config; its action is a word, or a table with all three."""
    action = fields.values.get("action")
    table = Fields.of(action, "/config/action") if isinstance(action, Mapping) else fields
    settings: dict[str, object] = {}
    for source in (table, fields):
        settings["scope"] = source.optional_text("scope") or settings.get("scope")
        ttl_ms = source.optional_whole("ttl_ms")
        settings["ttl_ms"] = settings.get("ttl_ms") if ttl_ms is None else ttl_ms
    settings["action"] = table.optional_text("action")
    return Ladder.parse({key: value for key, value in settings.items() if value is not None})


def _declaration(fields: Fields) -> ToolDeclaration:
    keys = fields.items("idempotency_key_fields", default=())
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
    return None if fields.values.get(name) is None else fields.flag(name)


def _word(fields: Fields, name: str, words: type[Word], default: Word) -> Word:
    text = fields.text(name, default=default)
    for word in words:
        if word == text:
            return word
    place = pointer(fields.place, name)
    raise ValueError(f"{place}: {text!r} is none of {', '.join(words)}")
