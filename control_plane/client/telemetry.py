"""What a host reports of its guards: contract 1, through opentelemetry-api alone.

Nothing here raises into an agent's turn, whatever the SDK behind it does and whatever the host's
code passes, and no method takes a text that could hold arguments, results, error texts or paths.
"""

import re
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from hashlib import blake2b

from opentelemetry._logs import LoggerProvider
from opentelemetry.metrics import MeterProvider

from control_plane.client.answers import Assignment
from control_plane.client.prompt_telemetry import PromptTelemetry
from control_plane.client.sink import Sink, never_raising
from control_plane.client.words import Unfit, is_count, word_of
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

    Without an SDK every call does nothing. With one that fails, `failures` grows, a log says why
    once, and the host goes on.
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

        Modes and the route may be plain words. A second assignment of a guard, and one that is
        none, is dropped, logged once and counted in `failures`; of an unknown route nothing is
        reported.
        """
        try:
            found = _route_of(route)
            on = self._assignments_on(found, assignments)
            return PromptTelemetry(self._sink, self._id_of(prompt_id), on, found)
        except Unfit as unfit:
            self._sink.refuse(unfit)
        except Exception as error:  # noqa: BLE001  # what a host's code passes must not end its turn
            why = f"prompt failed with {type(error).__name__}; see what it is given"
            self._sink.drop("prompt", why)
        return PromptTelemetry(self._sink, uuid.uuid4().hex, (), Route.INTERACTIVE_FOREGROUND)

    def _assignments_on(self, route: Route, assignments: object) -> tuple[Assignment, ...]:
        """Return those that report: one per guard, whose mode on this route is not off."""
        if not isinstance(assignments, Iterable):
            raise Unfit("assignments", assignments, "a sequence of Assignment, one per guard")
        on: dict[str, Assignment] = {}
        for each in assignments:
            try:
                found = _fit(each)
            except Unfit as unfit:
                self._sink.refuse(unfit)
                continue
            if found.guard in on:
                why = "assignments holds two of one guard; give one per guard"
                self._sink.drop("assignments[].guard", why)
            elif mode_on(route, found.mode) is not Mode.OFF:
                on[found.guard] = found
        return tuple(on.values())

    def _id_of(self, prompt_id: object) -> str:
        if isinstance(prompt_id, str) and prompt_id:
            if _PROMPT_ID.fullmatch(prompt_id) is not None:
                return prompt_id
            # A path or an address may name a prompt to its host, and must not leave it.
            whole = prompt_id.encode(errors="surrogatepass")
            return blake2b(whole, digest_size=_PROMPT_DIGEST_BYTES).hexdigest()
        if prompt_id is not None:
            remedy = "a text, or None for a random id"
            self._sink.refuse(Unfit("prompt_id", prompt_id, remedy))
        return uuid.uuid4().hex

    @never_raising
    def evaluated(self, assignment: Assignment) -> None:
        """Report that a mode was resolved, as OpenTelemetry's event `feature_flag.evaluation`."""
        found = _fit(assignment)
        attributes = {
            contract.FLAG_KEY: f"{contract.FLAG_PREFIX}{found.guard}",
            contract.FLAG_VARIANT: found.mode.value,
        }
        if found.generation is not None:
            attributes[contract.FLAG_VERSION] = str(found.generation)
        parts = (found.assignment_id or "").split(".")
        if len(parts) == _ID_PARTS:
            attributes[contract.FLAG_CONTEXT_ID] = parts[2]
        self._sink.emit(contract.FLAG_EVALUATION, attributes)


def _route_of(found: object) -> Route:
    spelled = Route.parse(found) if type(found) is str else None
    return spelled if spelled is not None else word_of(found, Route, "prompt(route)")


def _fit(found: object) -> Assignment:
    """Return the assignment with its mode as a `Mode`; its fields leave the host as they are.

    Raises:
        Unfit: it is none, or a field is not what the contract has.
    """
    if not isinstance(found, Assignment):
        raise Unfit("assignments[]", found, "an Assignment")
    mode = word_of(found.mode, Mode, "Assignment.mode")
    if not _is_text(found.guard, _GUARD):
        raise Unfit("Assignment.guard", found.guard, "the guard's name, 1 to 48 of a-z 0-9 _")
    if found.generation is not None and not is_count(found.generation):
        remedy = "the whole number that the control plane gave, or None"
        raise Unfit("Assignment.generation", found.generation, remedy)
    if found.assignment_id is not None and not _is_text(found.assignment_id, _ASSIGNMENT_ID):
        remedy = "the id that the control plane gave, as it is, or None"
        raise Unfit("Assignment.assignment_id", found.assignment_id, remedy)
    return found if found.mode is mode else replace(found, mode=mode)


def _is_text(found: object, form: re.Pattern[str]) -> bool:
    return isinstance(found, str) and form.fullmatch(found) is not None
