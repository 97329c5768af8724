"""API routes: a module for each resource, and the routes for hosts, probes and scrapers."""

__all__ = [
    "assignments",
    "audit",
    "cohorts",
    "environments",
    "evidence",
    "gate_evaluations",
    "health",
    "metrics",
    "otlp",
    "owners",
    "plans",
    "promotions",
    "rollbacks",
    "rollouts",
    "telemetry",
    "tokens",
    "violations",
    "volume",
    "waves",
]
