"""Guards: the four guards an agent host embeds, each a function of a state and an event."""

__all__ = [
    "argument_errors",
    "calls",
    "duplicate_call_id",
    "identical_call",
    "messages",
    "modes",
    "repeated_failure",
    "side_effect",
    "snapshot",
    "tool_choice",
    "transition",
]
