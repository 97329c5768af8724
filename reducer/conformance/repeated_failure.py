"""The repeated-failure guard behind the neutral schema of docs/guards."""

import json
from collections.abc import Mapping

from reducer.conformance.fields import Fields
from reducer.guards.modes import ParsedMode, parse_mode
from reducer.guards.repeated_failure import (
    Observation,
    PromptStarted,
    RepeatedFailure,
    RepeatedFailureStep,
    SettledBatch,
    reduce,
)
from reducer.guards.transition import Transition
from reducer.vocabulary import Decision, Route

# The internal spelling of two decisions; telemetry says `warned` and `stopped` (docs/guards).
_SPELLINGS = {Decision.WARNED: "warn", Decision.STOPPED: "stop"}


class Machine:
    """One prompt after another, as one vector tells them."""

    def __init__(self, config: Mapping[str, object]) -> None:
        fields = Fields.of(config, "/config")
        # docs/guards: only the foreground is guarded, whatever else a prompt is marked as.
        route = Route.parse(fields.text("route", missing="interactive")) or Route.BACKGROUND
        self._state = RepeatedFailure.start(_mode(fields, "mode").mode, route=route)
        self._prompts = 1

    def step(self, given: Mapping[str, object]) -> Mapping[str, object]:
        """Take a `batch`, `new_prompt` or `parse_mode` event.

        Raises:
            ValueError: the event is none of these, or a field is of another type; naming it.
        """
        fields = Fields.of(given)
        match fields.text("event", missing="batch"):
            case "batch":
                return self._output(reduce(self._state, _batch(fields)))
            case "new_prompt":
                self._prompts += 1
                return self._output(reduce(self._state, PromptStarted()))
            case "parse_mode":
                parsed = _mode(fields, "value")
                return {"mode": parsed.mode.value, "diagnostic": parsed.diagnostic is not None}
            case event:
                raise ValueError(f"/event: {event!r} is none of batch, new_prompt, parse_mode")

    def _output(self, step: RepeatedFailureStep) -> Mapping[str, object]:
        state = self._state = step.state
        reported = step.transitions[0] if step.transitions else None
        return {
            "decision": _decision(reported),
            "reason": reported and reported.reset_reason,
            "phase": state.phase.value,
            "key": state.key and state.key._asdict(),
            "failure_count": state.failure_count,
            "batch_count": state.batch_count,
            "candidate_ordinal": state.candidate_ordinal,
            "enforcement_disabled": state.is_enforcement_disabled,
            "action": step.action.value,
            "telemetry": reported and _telemetry(reported, f"prompt-{self._prompts}"),
        }


def _mode(fields: Fields, name: str) -> ParsedMode:
    """Parse a mode; what is no text is read as JSON spells it, and so names none."""
    found = fields.found.get(name)
    return parse_mode(found if found is None or isinstance(found, str) else json.dumps(found))


def _batch(fields: Fields) -> SettledBatch:
    return SettledBatch(
        tuple(
            _observation(Fields.of(each, f"/observations/{number}"))
            for number, each in enumerate(fields.items("observations", missing=()))
        ),
        is_complete=fields.flag("complete", missing=True),
        is_input_reliable=fields.flag("input_reliable", missing=True),
        has_external_input=fields.flag("external_input", missing=False),
        has_queued_prompt=fields.flag("queued_prompt", missing=False),
    )


def _observation(fields: Fields) -> Observation:
    return Observation(
        fields.optional_text("call_id"),
        fields.optional_text("tool"),
        tool_type=fields.optional_text("tool_type"),
        terminal_status=fields.optional_text("status"),
        execution_status=fields.optional_text("execution_status"),
        error_type=fields.optional_text("error_type"),
        is_provider_duplicate=fields.flag("provider_duplicate", missing=False),
    )


def _decision(reported: Transition | None) -> str:
    if reported is None:
        return "none"
    return _SPELLINGS.get(reported.decision, reported.decision.value)


def _telemetry(reported: Transition, prompt_id: str) -> Mapping[str, object]:
    """Return counter labels and log attributes under the neutral names of docs/guards."""
    metric = _present(
        route=reported.route,
        mode=reported.mode,
        phase_before=reported.phase_from,
        phase_after=reported.phase_to,
        decision=reported.decision,
        failure_count_bucket=reported.failure_count,
        batch_count_bucket=reported.batch_count,
        reset_reason=reported.reset_reason,
        terminal_status=reported.terminal_status,
        execution_status=reported.execution_status,
        tool_type=reported.tool_type,
    )
    log = metric | _present(
        prompt_id=prompt_id,
        candidate_ordinal=reported.candidate_ordinal,
        execution_error_type=reported.error_type,
    )
    return {"metric": metric, "metric_keys": sorted(metric), "log": log, "log_keys": sorted(log)}


def _present(**labels: str | int | None) -> dict[str, str | int]:
    return {name: value for name, value in labels.items() if value is not None}
