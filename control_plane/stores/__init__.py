"""Stores: plain classes over a Redis connection; no other package makes keys."""

__all__ = [
    "audit",
    "codec",
    "credentials",
    "demo",
    "environments",
    "evidence",
    "gates",
    "idempotency",
    "incidents",
    "jobs",
    "keys",
    "owners",
    "plans",
    "server",
]
