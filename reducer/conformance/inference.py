"""Guard inference: the guard of a file of vectors, found by the words it uses."""

from collections.abc import Iterable, Mapping

# Words that only this guard's vectors have (`docs/guards`); other words do not identify a guard.
_WORDS: Mapping[str, frozenset[str]] = {
    "repeated-failure": frozenset(
        {
            "config/mode",
            "input/observations",
            "input/complete",
            "input/input_reliable",
            "input/external_input",
            "input/queued_prompt",
            "input/value",
            "event/parse_mode",
            "expect/reason",
            "expect/phase",
            "expect/key",
            "expect/failure_count",
            "expect/batch_count",
            "expect/candidate_ordinal",
            "expect/enforcement_disabled",
            "expect/action",
            "expect/telemetry",
            "expect/mode",
            "expect/diagnostic",
        }
    ),
    "duplicate-call-id": frozenset(
        {
            "config/suffix",
            "config/generated_prefix",
            "input/entries",
            "input/responses",
            "event/seed_history",
            "event/response",
            "expect/breaker",
            "expect/trigger_id",
            "expect/loop_type",
            "expect/turn_outcome",
            "expect/calls",
        }
    ),
    "identical-call": frozenset(
        {
            "config/threshold",
            "config/max_evidence_resets",
            "input/evidence",
            "input/awaits_approval",
            "input/budget",
            "input/model_error",
            "event/turn",
            "event/resume",
            "event/reload",
            "event/new_run",
            "expect/turn_mode",
            "expect/cause",
            "expect/tool_choice",
            "expect/failure",
            "expect/dispatched",
            "expect/next_turn_mode",
            "expect/max_count",
            "expect/resets_used",
        }
    ),
    "side-effect": frozenset(
        {
            "config/action",
            "config/scope",
            "config/ttl_ms",
            "config/tools",
            "input/call_id",
            "input/tool",
            "input/args",
            "input/request",
            "input/thread",
            "input/agent",
            "input/now_ms",
            "input/outcome",
            "input/approved",
            "event/call",
            "event/parallel",
            "event/decide",
            "expect/executed",
            "expect/asks",
            "expect/incident",
            "expect/first_call_id",
            "expect/record",
            "expect/scope_used",
            "expect/results",
        }
    ),
}
GUARDS = tuple(_WORDS)


def words_of(
    config: Mapping[str, object], steps: Iterable[tuple[Mapping[str, object], Mapping[str, object]]]
) -> Iterable[str]:
    """Yield the words of one vector: its keys and events, with the part they belong to."""
    yield from (f"config/{key}" for key in config)
    for event, expect in steps:
        yield from (f"input/{key}" for key in event)
        yield from (f"expect/{key}" for key in expect)
        yield f"event/{event.get('event')}"


def guard_of(words: Iterable[str]) -> str:
    """Return the guard that has most of the words.

    Raises:
        ValueError: no guard has any of the words, or two guards have equally many.
    """
    used = frozenset(words)
    counts = {guard: len(words & used) for guard, words in _WORDS.items()}
    most = max(counts.values())
    best = [guard for guard, count in counts.items() if count == most]
    if most == 0 or len(best) > 1:
        raise ValueError(
            f"the vectors fit {'no guard' if most == 0 else ' and '.join(best)}; "
            f"use the words of one of {', '.join(GUARDS)}"
        )
    return best[0]
