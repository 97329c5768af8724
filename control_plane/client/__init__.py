"""What an agent host imports: nothing of the server, and nothing that can stop a prompt."""

from control_plane.client.answers import Assignment
from control_plane.client.assignments import Assignments
from control_plane.client.attributes import PromptEnd
from control_plane.client.fallbacks import FallbackReason
from control_plane.client.prompt_telemetry import PromptTelemetry
from control_plane.client.telemetry import GuardTelemetry

__all__ = [
    "Assignment",
    "Assignments",
    "FallbackReason",
    "GuardTelemetry",
    "PromptEnd",
    "PromptTelemetry",
]
