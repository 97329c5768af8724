"""The telemetry of one prompt: its events in order, and one metric point per guard."""

from collections.abc import Iterable, Sequence

from control_plane.client.answers import Assignment
from control_plane.client.attributes import (
    PromptEnd,
    labels_of,
    of_end,
    of_transition,
    wrong_numbers,
)
from control_plane.client.sink import Attributes, Labels, Sink, never_raising
from control_plane.client.words import Unfit, is_number, word_of
from reducer import contract
from reducer.catalogue import GUARD_OF_LOOP
from reducer.guards.transition import Transition
from reducer.vocabulary import DisruptionKind, ExecutionStatus, Invariant, LoopType, Route

_COUNTED = (ExecutionStatus.SUCCESS, ExecutionStatus.ERROR)


class PromptTelemetry:
    """Reports one prompt; `GuardTelemetry.prompt` makes it. Use it from one thread at a time.

    What makes no sense is not reported: a second start or end, anything of a guard without an
    assignment, a transition after the end, a disruption before it. Without any guard that is on,
    nothing is. Words are taken as members of their sets or as plain texts (`"completed"`). What is
    of another type than the signatures say is dropped, logged once for each field and counted in
    `GuardTelemetry.failures`; no method raises.
    """

    def __init__(
        self, sink: Sink, prompt_id: str, assignments: Sequence[Assignment], route: Route
    ) -> None:
        self.id = prompt_id
        self._sink = sink
        # Constant for the prompt, so made once.
        self._labels: dict[str, Labels] = {
            each.guard: {contract.GUARD: each.guard, contract.MODE: each.mode.value}
            for each in assignments
        }
        self._of_guard = {each.guard: _ids(prompt_id, [each]) for each in assignments}
        self._of_all = _ids(prompt_id, assignments)
        self._route = route
        self._transitions = 0
        self._is_on = bool(assignments)
        self._is_started = self._is_ended = self._is_loop_reported = False
        self._disruptions: set[DisruptionKind] = set()

    @never_raising
    def started(self) -> None:
        """Report the start, before the first model request."""
        if not self._is_on or self._is_started or self._is_ended:
            return
        self._is_started = True
        self._sink.emit(contract.PROMPT_START, {**self._of_all, contract.ROUTE: self._route.value})
        for labels in self._labels.values():
            self._sink.add(self._sink.instruments.prompts, 1, {**labels, contract.STAGE: "start"})

    @never_raising
    def decided(
        self, transitions: Iterable[Transition], *, is_history_preserved: bool | None = None
    ) -> None:
        """Report what guards decided, in order.

        `is_history_preserved` says of a stop whether the settled results reached the history.
        """
        if self._is_ended:
            return
        if not isinstance(transitions, Iterable):
            raise Unfit("transitions", transitions, "a sequence of Transition, as a step holds it")
        for transition in transitions:
            # One by one: a record that can't be built must not take the others with it.
            self._decided(transition, is_history_preserved=is_history_preserved)

    @never_raising
    def _decided(self, transition: Transition, *, is_history_preserved: bool | None) -> None:
        if not isinstance(transition, Transition):
            raise Unfit("transitions[]", transition, "a Transition, as step.transitions holds it")
        ids = self._of_guard.get(transition.guard)
        if ids is None:
            return
        sequence = self._transitions + 1
        labels = labels_of(transition)
        said = of_transition(
            transition, labels, sequence=sequence, is_history_preserved=is_history_preserved
        )
        # Now the record is there, the number is spent: if it's lost from here on, a gap says so.
        self._transitions = sequence
        self._sink.emit(contract.TRANSITION, {**ids, **said})
        self._sink.add(self._sink.instruments.transitions, 1, labels)

    @never_raising
    def executed(self, status: ExecutionStatus) -> None:
        """Count a tool call that settled; only success and error are in the execution SLI."""
        settled = word_of(status, ExecutionStatus, "executed(status)")
        if settled in _COUNTED:
            for labels in self._labels.values():
                self._sink.add(
                    self._sink.instruments.executions,
                    1,
                    {**labels, contract.EXECUTION_STATUS: settled.value},
                )

    @never_raising
    def loop_detected(self, loop: LoopType) -> None:
        """Report, once per prompt, which protection ended its turn."""
        if not self._is_on or self._is_loop_reported:
            return
        detected = word_of(loop, LoopType, "loop_detected(loop)")
        said = {contract.LOOP_TYPE: detected.value}
        self._is_loop_reported = True
        guard = GUARD_OF_LOOP.get(detected)
        of_guard = {} if guard is None else {contract.GUARD: guard}
        self._sink.emit(contract.LOOP_DETECTED, {**self._of_all, **of_guard, **said})

    @never_raising
    def violated(self, guard: str, invariant: Invariant) -> None:
        """Count an invariant that the host itself saw broken."""
        broken = word_of(invariant, Invariant, "violated(invariant)")
        said = {contract.INVARIANT: broken.value}
        if not isinstance(guard, str):
            raise Unfit("violated(guard)", guard, "the guard's name")
        labels = self._labels.get(guard)
        if labels is not None:
            self._sink.add(self._sink.instruments.violations, 1, {**labels, **said})

    @never_raising
    def ended(self, end: PromptEnd) -> None:
        """Report the end, and how many transitions were reported before it."""
        if not self._is_on or self._is_ended:
            return
        if not isinstance(end, PromptEnd):
            raise Unfit("ended(end)", end, "a PromptEnd")
        said = of_end(end)
        self._is_ended = True
        for unfit in wrong_numbers(end):
            self._sink.refuse(unfit)
        self._sink.emit(
            contract.PROMPT_END, {**self._of_all, **said, contract.TRANSITIONS: self._transitions}
        )
        counters = self._sink.instruments
        for labels in self._labels.values():
            stage = {**labels, contract.STAGE: "end", contract.OUTCOME: str(said[contract.OUTCOME])}
            self._sink.add(counters.prompts, 1, stage)
            if end.tokens is not None:
                self._sink.add(counters.tokens, end.tokens, labels)
            if end.known_turns is not None:
                self._sink.add(counters.turns, end.known_turns, labels)
            if end.known_duration_seconds is not None:
                self._sink.took(end.known_duration_seconds, labels)

    @never_raising
    def disrupted(self, kind: DisruptionKind, *, offset_seconds: float) -> None:
        """Report that the user disconnected or tried again, within 600 s after the end.

        `offset_seconds` counts from the prompt's end. Later than that, and a second time of the
        same kind, it is no disruption of this prompt.
        """
        shown = word_of(kind, DisruptionKind, "disrupted(kind)")
        if not is_number(offset_seconds):
            raise Unfit("disrupted(offset_seconds)", offset_seconds, "seconds since the end")
        is_within = 0 <= offset_seconds <= contract.DISRUPTION_LIMIT_SECONDS
        if not self._is_ended or not is_within or shown in self._disruptions:
            return
        self._disruptions.add(shown)
        said = {contract.DISRUPTION_KIND: shown.value}
        self._sink.emit(
            contract.DISRUPTION,
            {**self._of_all, **said, contract.DISRUPTION_OFFSET: float(offset_seconds)},
        )
        for labels in self._labels.values():
            self._sink.add(self._sink.instruments.disruptions, 1, {**labels, **said})


def _ids(prompt_id: str, assignments: Sequence[Assignment]) -> Attributes:
    """Return the ids that every event carries; a process may have them on its Resource instead."""
    ids = tuple(each.assignment_id for each in assignments if each.assignment_id is not None)
    prompt: Attributes = {contract.PROMPT_ID: prompt_id}
    return {**prompt, contract.ASSIGNMENT_ID: ids} if ids else prompt
