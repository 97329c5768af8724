"""Client for agent hosts: assignments and telemetry, free of the server and of exceptions."""

from guardwave.control_plane.client.answers import Assignment
from guardwave.control_plane.client.assignments import Assignments
from guardwave.control_plane.client.attributes import PromptEnd
from guardwave.control_plane.client.fallbacks import FallbackReason
from guardwave.control_plane.client.prompt_telemetry import PromptTelemetry
from guardwave.control_plane.client.telemetry import GuardTelemetry

__all__ = [
    "Assignment",
    "Assignments",
    "FallbackReason",
    "GuardTelemetry",
    "PromptEnd",
    "PromptTelemetry",
]
