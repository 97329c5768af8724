"""What a host reports of its guards: contract 1, through opentelemetry-api alone.

Nothing here raises into an agent's turn, whatever the SDK behind it does and whatever the host's
code passes, and no method takes a text that could hold arguments, results, error texts or paths.
"""

import re
import time
import uuid
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import TypeGuard

from opentelemetry._logs import LoggerProvider
from opentelemetry.metrics import MeterProvider

from control_plane.client.answers import Assignment
from control_plane.client.prompt_telemetry import PromptTelemetry
from control_plane.client.sink import Sink, never_raising
from reducer import contract
from reducer.guards.modes import mode_on
from reducer.vocabulary import Mode, Route

_PROMPT_ID = re.compile(rf"[A-Za-z0-9_.:#@~-]{{1,{contract.PROMPT_ID_BYTES}}}")
_GUARD = re.compile(r"[a-z0-9_]{1,48}")
_ASSIGNMENT_ID = re.compile(r"[A-Za-z0-9_.-]{1,512}")
_PROMPT_DIGEST_BYTES = 16
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
        """How many events, counts and values were dropped: the SDK raised, or a type was wrong."""
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
        does the prompt. `prompt_id` is opaque, 1 to 128 of `A-Z a-z 0-9 _ . : # @ ~ -`; a digest
        stands for any other text, a random id for none.

        A second assignment of a guard, and one that is none, is dropped and counted in `failures`;
        of an unknown route nothing is reported.
        """
        on: dict[str, Assignment] = {}
        try:
            if type(route) is not Route:
                raise TypeError("route is no Route")
            for each in assignments:
                if not _is_assignment(each) or each.guard in on:
                    self._sink.failures += 1
                elif mode_on(route, each.mode) is not Mode.OFF:
                    on[each.guard] = each
            return PromptTelemetry(self._sink, self._id_of(prompt_id), list(on.values()), route)
        except Exception:  # noqa: BLE001  # what a host's code passes must not end its turn
            self._sink.failures += 1
            return PromptTelemetry(self._sink, uuid.uuid4().hex, (), Route.INTERACTIVE_FOREGROUND)

    def _id_of(self, prompt_id: object) -> str:
        if isinstance(prompt_id, str) and prompt_id:
            if _PROMPT_ID.fullmatch(prompt_id) is not None:
                return prompt_id
            # A path or an address may name a prompt to its host, and must not leave it.
            whole = prompt_id.encode(errors="surrogatepass")
            return blake2b(whole, digest_size=_PROMPT_DIGEST_BYTES).hexdigest()
        if prompt_id is not None:
            self._sink.failures += 1
        return uuid.uuid4().hex

    @never_raising
    def evaluated(self, assignment: Assignment) -> None:
        """Report that a mode was resolved, as OpenTelemetry's event `feature_flag.evaluation`."""
        if not _is_assignment(assignment):
            raise TypeError("what was evaluated is no assignment")
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


def _is_assignment(found: object) -> TypeGuard[Assignment]:
    """Whether it is one whose fields are words and numbers, since they leave the host."""
    return (
        isinstance(found, Assignment)
        and _is_text(found.guard, _GUARD)
        and type(found.mode) is Mode
        and (found.generation is None or type(found.generation) is int)
        and (found.assignment_id is None or _is_text(found.assignment_id, _ASSIGNMENT_ID))
    )


def _is_text(found: object, form: re.Pattern[str]) -> bool:
    return isinstance(found, str) and form.fullmatch(found) is not None
