"""Rollouts: rules of the store that commands, queries and jobs share."""

__all__ = [
    "access",
    "changes",
    "context",
    "days",
    "evaluation_validity",
    "loading",
    "names",
    "promotion_rules",
    "refusals",
    "restart",
]
