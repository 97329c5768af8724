"""Commands: use cases that write, each by pure rules and with an audit entry."""

__all__ = [
    "cohorts",
    "environments",
    "evaluations",
    "harm_alarm",
    "idempotency",
    "owners",
    "plans",
    "promotions",
    "rollback",
    "violations",
    "waves",
]
