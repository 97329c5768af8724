"""The duplicate-call-id guard behind the neutral schema of docs/guards."""

from collections.abc import Mapping

from reducer.conformance.fields import Fields, pointer
from reducer.guards.calls import ToolCall
from reducer.guards.duplicate_call_id import (
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
from reducer.vocabulary import LoopType, Mode, Route


class Machine:
    """The guard in enforce: the vectors describe this mode (docs/guards)."""

    def __init__(self, config: Mapping[str, object]) -> None:
        given = Fields.of(config, "/config")
        word = given.text("route", missing="interactive")
        route = Route.parse(word)
        if route is None:
            raise ValueError(f"/config/route: is {word!r}; give one of {', '.join(Route)}")
        self._state = DuplicateCallId.start(
            Mode.ENFORCE,
            route=route,
            suffix=given.text("suffix", missing=SUFFIX),
            generated_prefix=given.text("generated_prefix", missing=GENERATED_PREFIX),
        )

    def step(self, given: Mapping[str, object]) -> Mapping[str, object]:
        """Take an event and return what the guard decided about each call.

        Raises:
            ValueError: an event or a field that is none of the schema; naming it.
        """
        step = reduce(self._state, _event(Fields.of(given)))
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
            {"raw_id": each.raw_id, "action": each.action.value, "call_id": each.call_id}
            for each in step.verdicts
        ],
    }


def _event(given: Fields) -> Event:
    match given.text("event", missing="response"):
        case "response":
            return BatchProposed((_calls(given, "calls"),))
        case "batch":
            responses = given.items("responses", missing=())
            place = pointer(given.place, "responses")
            inner = Fields({str(at): each for at, each in enumerate(responses)}, place)
            return BatchProposed(tuple(_calls(inner, at) for at in inner.found))
        case "seed_history":
            return HistorySeeded(tuple(_entries(given)))
        case "new_prompt":
            return PromptStarted()
        case other:
            raise ValueError(f"/event: {other!r} is no event of duplicate-call-id")


def _calls(given: Fields, name: str) -> tuple[ToolCall, ...]:
    place = pointer(given.place, name)
    found = enumerate(given.items(name, missing=()))
    return tuple(_call(Fields.of(each, pointer(place, at))) for at, each in found)


def _entries(given: Fields) -> list[HistoryCall]:
    found = []
    for at, each in enumerate(given.items("entries", missing=())):
        entry = Fields.of(each, f"/entries/{at}")
        found.append(HistoryCall(_call(entry), entry.flag("answered", missing=True)))
    return found


def _call(given: Fields) -> ToolCall:
    tool = given.text("tool", missing="")
    return ToolCall.of(given.optional_text("id"), tool, given.found.get("args"))
