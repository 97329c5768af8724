"""Rollout rules: the control plane's state machines, without I/O, clock or randomness."""

__all__ = [
    "allotment",
    "assignment",
    "days",
    "draw",
    "eligibility",
    "fields",
    "invariants",
    "ladder",
    "policy",
    "pseudonym",
    "state",
]
