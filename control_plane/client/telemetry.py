"""What a host reports of its guards: contract 1, through opentelemetry-api alone.

Nothing here raises into an agent's turn, whatever the SDK behind it does, and no method takes a
text that could hold arguments, results, error texts or paths.
"""

import re
import time
import uuid
from collections.abc import Callable, Sequence

from opentelemetry._logs import LoggerProvider
from opentelemetry.metrics import MeterProvider

from control_plane.client import contract
from control_plane.client.answers import Assignment
from control_plane.client.prompt_telemetry import PromptTelemetry
from control_plane.client.sink import Sink
from reducer.guards.modes import mode_on
from reducer.vocabulary import Mode, Route

_PROMPT_ID = re.compile(rf"[!-~]{{1,{contract.PROMPT_ID_BYTES}}}")
# a1.<guard>.<pseudonym>.<wave>.<cohort>.<mode>.<generation>.<tag>
_ID_PARTS = 8


class GuardTelemetry:
    """The telemetry door of one process: make one, share it between threads.

    Without an SDK every call does nothing. With one that fails, `failures` grows and the host
    goes on.
    """

    def __init__(
        self,
        *,
        logger_provider: LoggerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        """Use these providers, or the process's global ones. `now_ns` is Unix time."""
        self._sink = Sink(logger_provider, meter_provider, now_ns)

    @property
    def failures(self) -> int:
        """How many events and counts the SDK refused by raising."""
        return self._sink.failures

    def prompt(
        self,
        *,
        assignments: Sequence[Assignment],
        route: Route = Route.INTERACTIVE_FOREGROUND,
        prompt_id: str | None = None,
    ) -> PromptTelemetry:
        """Return the telemetry of one prompt under these assignments, one per guard.

        A guard that is off, or forced off by the route, reports nothing; when all are, neither
        does the prompt. `prompt_id` is opaque, 1 to 128 printable ASCII characters without
        spaces; by default a random one.

        Raises:
            ValueError: two assignments of one guard, or a prompt id of another shape.
        """
        guards = [each.guard for each in assignments]
        if len(set(guards)) < len(guards):
            raise ValueError(f"assignments name a guard twice: {', '.join(guards)}; pass one each")
        if prompt_id is None:
            prompt_id = uuid.uuid4().hex
        elif _PROMPT_ID.fullmatch(prompt_id) is None:
            raise ValueError(
                f"prompt_id is not 1 to {contract.PROMPT_ID_BYTES} printable ASCII characters "
                "without spaces; leave it out for a random one"
            )
        on = [each for each in assignments if mode_on(route, each.mode) is not Mode.OFF]
        return PromptTelemetry(self._sink, prompt_id, on, route)

    def evaluated(self, assignment: Assignment) -> None:
        """Report that a mode was resolved, as OpenTelemetry's event `feature_flag.evaluation`."""
        attributes = {
            contract.FLAG_KEY: f"{contract.FLAG_PREFIX}{assignment.guard}",
            contract.FLAG_VARIANT: assignment.mode.value,
        }
        if assignment.generation is not None:
            attributes[contract.FLAG_VERSION] = str(assignment.generation)
        parts = (assignment.assignment_id or "").split(".")
        if len(parts) == _ID_PARTS:
            attributes[contract.FLAG_CONTEXT_ID] = parts[2]
        self._sink.emit(contract.FLAG_EVALUATION, attributes)
