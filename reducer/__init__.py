"""Reducer: the pure core, with the guards an agent host embeds and the rules of a rollout."""

__all__ = [
    "catalogue",
    "conformance",
    "contract",
    "guards",
    "number_format",
    "pipeline",
    "rollout",
    "vocabulary",
]
