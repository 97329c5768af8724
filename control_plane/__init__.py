"""The imperative shell of guardwave: time, Redis, HTTP, OTLP and the command line."""

__all__ = [
    "archive",
    "cli",
    "client",
    "commands",
    "core",
    "data_plane",
    "demo",
    "http",
    "ingest",
    "jobs",
    "queries",
    "rollouts",
    "server",
    "stores",
]
