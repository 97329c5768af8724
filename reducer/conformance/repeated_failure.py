"""Repeated-failure adapter: the guard behind the neutral schema of `docs/guards`."""

import json
from collections.abc import Mapping

from guardwave.reducer.conformance.fields import Fields
from guardwave.reducer.guards.modes import ParsedMode, parse_mode
from guardwave.reducer.guards.repeated_failure import (
    Observation,
    PromptStarted,
    RepeatedFailure,
    RepeatedFailureStep,
    SettledBatch,
    reduce,
)
from guardwave.reducer.guards.transition import Transition
from guardwave.reducer.vocabulary import Decision, Route

# The vectors' spelling of two decisions; telemetry has `warned` and `stopped` (`docs/guards`).
_SPELLINGS = {Decision.WARNED: "warn", Decision.STOPPED: "stop"}


class Machine:
    """The guard in one vector, prompt after prompt."""

    def __init__(self, config: Mapping[str, object]) -> None:
        fields = Fields.of(config, "/config")
        # Only the foreground is guarded, so any other word is as good as background.
        route = Route.parse(fields.text("route", default="interactive")) or Route.BACKGROUND
        self._state = RepeatedFailure.start(_mode(fields, "mode").mode, route=route)
        self._prompts = 1

    def step(self, event: Mapping[str, object]) -> Mapping[str, object]:
        """Take a `batch`, `new_prompt` or `parse_mode` event.

        Raises:
            ValueError: the event is none of these, or a field is of a wrong type; it names the
                field.
        """
        fields = Fields.of(event)
        match fields.text("event", default="batch"):
            case "batch":
                return self._output(reduce(self._state, _batch(fields)))
            case "new_prompt":
                self._prompts += 1
                return self._output(reduce(self._state, PromptStarted()))
            case "parse_mode":
                parsed = _mode(fields, "value")
                return {"mode": parsed.mode.value, "diagnostic": parsed.diagnostic is not None}
            case unknown:
                raise ValueError(f"/event: {unknown!r} is none of batch, new_prompt, parse_mode")

    def _output(self, step: RepeatedFailureStep) -> Mapping[str, object]:
        state = self._state = step.state
        transition = step.transitions[0] if step.transitions else None
        return {
            "decision": _decision(transition),
            "reason": transition and transition.reset_reason,
            "phase": state.phase.value,
            "key": state.key and state.key._asdict(),
            "failure_count": state.failure_count,
            "batch_count": state.batch_count,
            "candidate_ordinal": state.candidate_ordinal,
            "enforcement_disabled": state.is_enforcement_disabled,
            "action": step.action.value,
            "telemetry": transition and _telemetry(transition, f"prompt-{self._prompts}"),
        }


def _mode(fields: Fields, name: str) -> ParsedMode:
    """Parse a mode; a value that is not a text is parsed in its JSON spelling, which is no mode."""
    value = fields.values.get(name)
    return parse_mode(value if value is None or isinstance(value, str) else json.dumps(value))


def _batch(fields: Fields) -> SettledBatch:
    return SettledBatch(
        tuple(
            _observation(Fields.of(item, f"/observations/{number}"))
            for number, item in enumerate(fields.items("observations", default=()))
        ),
        is_complete=fields.flag("complete", default=True),
        is_input_reliable=fields.flag("input_reliable", default=True),
        has_external_input=fields.flag("external_input", default=False),
        has_queued_prompt=fields.flag("queued_prompt", default=False),
    )


def _observation(fields: Fields) -> Observation:
    return Observation(
        fields.optional_text("call_id"),
        fields.optional_text("tool"),
        tool_type=fields.optional_text("tool_type"),
        terminal_status=fields.optional_text("status"),
        execution_status=fields.optional_text("execution_status"),
        error_type=fields.optional_text("error_type"),
        is_provider_duplicate=fields.flag("provider_duplicate", default=False),
    )


def _decision(transition: Transition | None) -> str:
    if transition is None:
        return "none"
    return _SPELLINGS.get(transition.decision, transition.decision.value)


def _telemetry(transition: Transition, prompt_id: str) -> Mapping[str, object]:
    """Return counter labels and log attributes under the neutral names of `docs/guards`."""
    metric = _present(
        route=transition.route,
        mode=transition.mode,
        phase_before=transition.phase_from,
        phase_after=transition.phase_to,
        decision=transition.decision,
        failure_count_bucket=transition.failure_count,
        batch_count_bucket=transition.batch_count,
        reset_reason=transition.reset_reason,
        terminal_status=transition.terminal_status,
        execution_status=transition.execution_status,
        tool_type=transition.tool_type,
    )
    log = metric | _present(
        prompt_id=prompt_id,
        candidate_ordinal=transition.candidate_ordinal,
        execution_error_type=transition.error_type,
    )
    return {"metric": metric, "metric_keys": sorted(metric), "log": log, "log_keys": sorted(log)}


def _present(**labels: str | int | None) -> dict[str, str | int]:
    return {name: value for name, value in labels.items() if value is not None}
