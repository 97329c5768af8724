"""What an agent host imports: nothing of the server, and nothing that can stop a prompt."""

from control_plane.client.answers import Assignment
from control_plane.client.assignments import Assignments

__all__ = ["Assignment", "Assignments"]
