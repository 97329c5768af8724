"""Client: assignments and telemetry for an agent host."""

from guardwave.control_plane.client import (
    Assignment,
    Assignments,
    FallbackReason,
    GuardTelemetry,
    PromptEnd,
    PromptTelemetry,
)

__all__ = [
    "Assignment",
    "Assignments",
    "FallbackReason",
    "GuardTelemetry",
    "PromptEnd",
    "PromptTelemetry",
]
