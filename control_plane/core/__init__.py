"""Core: state, errors, settings, clock and policy, which every other room builds on."""

__all__ = [
    "clock",
    "errors",
    "etags",
    "otlp_request",
    "policy",
    "reject_reasons",
    "settings",
    "state",
]
