"""Guard telemetry: contract 1, reported through opentelemetry-api alone.

Nothing here raises into an agent's turn, whatever the SDK does and whatever the host's code passes.
No method takes a text that could hold arguments, results, error texts or paths.
"""

import re
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from hashlib import blake2b

from opentelemetry._logs import LoggerProvider
from opentelemetry.metrics import MeterProvider

from guardwave.control_plane.client.answers import Assignment
from guardwave.control_plane.client.attributes import InvalidValue, is_count, member_of
from guardwave.control_plane.client.prompt_telemetry import PromptTelemetry
from guardwave.control_plane.client.sink import Sink, swallow_errors
from guardwave.reducer import contract
from guardwave.reducer.guards.modes import mode_on
from guardwave.reducer.vocabulary import Mode, Route

_PROMPT_ID = re.compile(rf"[A-Za-z0-9_.:#@~-]{{1,{contract.PROMPT_ID_BYTES}}}")
_GUARD = re.compile(r"[a-z0-9_]{1,48}")
_ASSIGNMENT_ID = re.compile(r"[A-Za-z0-9_.-]{1,512}")
_PROMPT_DIGEST_BYTES = 16
# a1.<guard>.<pseudonym>.<wave>.<cohort>.<mode>.<generation>.<tag>
_ID_PARTS = 8


class GuardTelemetry:
    """The telemetry of one process: make one, and share it between threads.

    Without an SDK every call does nothing. With an SDK that fails, `failures` grows, the reason is
    logged once, and the host goes on.
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

        Modes and the route may be plain texts. A second assignment of a guard, and a value that is
        no assignment, is dropped, logged once and counted in `failures`. A prompt of an unknown
        route reports nothing.
        """
        try:
            known = _parse_route(route)
            on = self._assignments_on(known, assignments)
            return PromptTelemetry(self._sink, self._id_of(prompt_id), on, known)
        except InvalidValue as error:
            self._sink.drop_invalid(error)
        except Exception as error:  # noqa: BLE001  # what a host's code passes must not end its turn
            why = f"prompt failed with {type(error).__name__}; see what it is given"
            self._sink.drop("prompt", why)
        return PromptTelemetry(self._sink, uuid.uuid4().hex, (), Route.INTERACTIVE_FOREGROUND)

    def _assignments_on(self, route: Route, assignments: object) -> tuple[Assignment, ...]:
        """Return the assignments that report: one per guard that is not off on this route."""
        if not isinstance(assignments, Iterable):
            raise InvalidValue(
                "assignments", assignments, "a sequence of Assignment, one per guard"
            )
        on: dict[str, Assignment] = {}
        for value in assignments:
            try:
                assignment = _check_assignment(value)
            except InvalidValue as error:
                self._sink.drop_invalid(error)
                continue
            if assignment.guard in on:
                why = "assignments holds two of one guard; give one per guard"
                self._sink.drop("assignments[].guard", why)
            elif mode_on(route, assignment.mode) is not Mode.OFF:
                on[assignment.guard] = assignment
        return tuple(on.values())

    def _id_of(self, prompt_id: object) -> str:
        if isinstance(prompt_id, str) and prompt_id:
            if _PROMPT_ID.fullmatch(prompt_id) is not None:
                return prompt_id
            # A host may use a path or an address as the id, which must not leave it.
            encoded = prompt_id.encode(errors="surrogatepass")
            return blake2b(encoded, digest_size=_PROMPT_DIGEST_BYTES).hexdigest()
        if prompt_id is not None:
            remedy = "a text, or None for a random id"
            self._sink.drop_invalid(InvalidValue("prompt_id", prompt_id, remedy))
        return uuid.uuid4().hex

    @swallow_errors
    def evaluated(self, assignment: Assignment) -> None:
        """Report that a mode was resolved, as OpenTelemetry's event `feature_flag.evaluation`."""
        checked = _check_assignment(assignment)
        attributes = {
            contract.FLAG_KEY: f"{contract.FLAG_PREFIX}{checked.guard}",
            contract.FLAG_VARIANT: checked.mode.value,
        }
        if checked.generation is not None:
            attributes[contract.FLAG_VERSION] = str(checked.generation)
        parts = (checked.assignment_id or "").split(".")
        if len(parts) == _ID_PARTS:
            attributes[contract.FLAG_CONTEXT_ID] = parts[2]
        self._sink.emit(contract.FLAG_EVALUATION, attributes)


def _parse_route(value: object) -> Route:
    route = Route.parse(value) if type(value) is str else None
    return route if route is not None else member_of(value, Route, "prompt(route)")


def _check_assignment(value: object) -> Assignment:
    """Return the assignment with its mode as a `Mode`. Its other fields leave the host unchanged.

    Raises:
        InvalidValue: it is none, or a field does not conform to the contract.
    """
    if not isinstance(value, Assignment):
        raise InvalidValue("assignments[]", value, "an Assignment")
    mode = member_of(value.mode, Mode, "Assignment.mode")
    if not _is_text(value.guard, _GUARD):
        raise InvalidValue(
            "Assignment.guard", value.guard, "the guard's name, 1 to 48 of a-z 0-9 _"
        )
    if value.generation is not None and not is_count(value.generation):
        remedy = "the whole number that the control plane gave, or None"
        raise InvalidValue("Assignment.generation", value.generation, remedy)
    if value.assignment_id is not None and not _is_text(value.assignment_id, _ASSIGNMENT_ID):
        remedy = "the id that the control plane gave, as it is, or None"
        raise InvalidValue("Assignment.assignment_id", value.assignment_id, remedy)
    return value if value.mode is mode else replace(value, mode=mode)


def _is_text(value: object, form: re.Pattern[str]) -> bool:
    return isinstance(value, str) and form.fullmatch(value) is not None
