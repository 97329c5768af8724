"""Duplicate-call-id adapter: the guard behind the neutral schema of `docs/guards`."""

from collections.abc import Mapping

from guardwave.reducer.conformance.fields import Fields, pointer
from guardwave.reducer.guards.calls import ToolCall
from guardwave.reducer.guards.duplicate_call_id import (
    GENERATED_PREFIX,
    SUFFIX,
    BatchProposed,
    DuplicateCallId,
    DuplicateCallIdStep,
    Event,
    HistoryCall,
    HistorySeeded,
    PromptStarted,
    reduce,
)
from guardwave.reducer.vocabulary import LoopType, Mode, Route


class Machine:
    """The guard in enforce, the mode of the vectors (`docs/guards`)."""

    def __init__(self, config: Mapping[str, object]) -> None:
        fields = Fields.of(config, "/config")
        word = fields.text("route", default="interactive")
        route = Route.parse(word)
        if route is None:
            raise ValueError(f"/config/route: is {word!r}; give one of {', '.join(Route)}")
        self._state = DuplicateCallId.start(
            Mode.ENFORCE,
            route=route,
            suffix=fields.text("suffix", default=SUFFIX),
            generated_prefix=fields.text("generated_prefix", default=GENERATED_PREFIX),
        )

    def step(self, event: Mapping[str, object]) -> Mapping[str, object]:
        """Take an event and return the guard's decision about each call.

        Raises:
            ValueError: the event or a field is not of the schema; it names the field.
        """
        step = reduce(self._state, _event(Fields.of(event)))
        self._state = step.state
        return _output(step)


def _output(step: DuplicateCallIdStep) -> Mapping[str, object]:
    loop_type = LoopType.GLOBAL_TOOL_CALL_DUPLICATE.value if step.is_breaker_open else None
    return {
        "breaker": step.is_breaker_open,
        "trigger_id": step.trigger_id,
        "loop_type": loop_type,
        "turn_outcome": step.turn_outcome.value,
        "calls": [
            {"raw_id": verdict.raw_id, "action": verdict.action.value, "call_id": verdict.call_id}
            for verdict in step.verdicts
        ],
    }


def _event(event: Fields) -> Event:
    match event.text("event", default="response"):
        case "response":
            return BatchProposed((_calls(event, "calls"),))
        case "batch":
            responses = event.items("responses", default=())
            place = pointer(event.place, "responses")
            by_place = Fields({str(at): calls for at, calls in enumerate(responses)}, place)
            return BatchProposed(tuple(_calls(by_place, at) for at in by_place.values))
        case "seed_history":
            return HistorySeeded(tuple(_entries(event)))
        case "new_prompt":
            return PromptStarted()
        case other:
            raise ValueError(f"/event: {other!r} is no event of duplicate-call-id")


def _calls(parent: Fields, name: str) -> tuple[ToolCall, ...]:
    place = pointer(parent.place, name)
    calls = enumerate(parent.items(name, default=()))
    return tuple(_call(Fields.of(call, pointer(place, at))) for at, call in calls)


def _entries(event: Fields) -> list[HistoryCall]:
    calls = []
    for at, item in enumerate(event.items("entries", default=())):
        entry = Fields.of(item, f"/entries/{at}")
        calls.append(HistoryCall(_call(entry), entry.flag("answered", default=True)))
    return calls


def _call(call: Fields) -> ToolCall:
    tool = call.text("tool", default="")
    return ToolCall.of(call.optional_text("id"), tool, call.values.get("args"))
