"""Prompt telemetry: the events of one prompt in order, and one metric point per guard."""

from collections.abc import Iterable, Sequence

from guardwave.control_plane.client.answers import Assignment
from guardwave.control_plane.client.attributes import (
    InvalidValue,
    PromptEnd,
    end_attributes,
    invalid_numbers,
    is_number,
    member_of,
    transition_attributes,
    transition_labels,
)
from guardwave.control_plane.client.sink import Attributes, Labels, Sink, swallow_errors
from guardwave.reducer import contract
from guardwave.reducer.catalogue import GUARD_OF_LOOP
from guardwave.reducer.guards.transition import Transition
from guardwave.reducer.vocabulary import DisruptionKind, ExecutionStatus, Invariant, LoopType, Route

_COUNTED = (ExecutionStatus.SUCCESS, ExecutionStatus.ERROR)


class PromptTelemetry:
    """Reports one prompt; `GuardTelemetry.prompt` makes it. Use it from one thread at a time.

    Senseless calls report nothing: a second start or end, anything of a guard without an
    assignment, a transition after the end, a disruption before it. Nor does a prompt without any
    guard that is on. A member of a closed set may be given as its plain text (`"completed"`). A
    value of a wrong type is dropped, logged once for each field and counted in
    `GuardTelemetry.failures`; no method raises.
    """

    def __init__(
        self, sink: Sink, prompt_id: str, assignments: Sequence[Assignment], route: Route
    ) -> None:
        self.id = prompt_id
        self._sink = sink
        self._labels: dict[str, Labels] = {
            assignment.guard: {
                contract.GUARD: assignment.guard,
                contract.MODE: assignment.mode.value,
            }
            for assignment in assignments
        }
        self._ids_by_guard = {
            assignment.guard: _ids(prompt_id, [assignment]) for assignment in assignments
        }
        self._ids = _ids(prompt_id, assignments)
        self._route = route
        self._transitions = 0
        self._is_on = bool(assignments)
        self._is_started = self._is_ended = self._is_loop_reported = False
        self._disruptions: set[DisruptionKind] = set()

    @swallow_errors
    def started(self) -> None:
        """Report the start, before the first model request."""
        if not self._is_on or self._is_started or self._is_ended:
            return
        self._is_started = True
        self._sink.emit(contract.PROMPT_START, {**self._ids, contract.ROUTE: self._route.value})
        for labels in self._labels.values():
            self._sink.add(self._sink.instruments.prompts, 1, {**labels, contract.STAGE: "start"})

    @swallow_errors
    def decided(
        self, transitions: Iterable[Transition], *, is_history_preserved: bool | None = None
    ) -> None:
        """Report what guards decided, in order.

        `is_history_preserved`: whether the settled results reached the history before a stop.
        """
        if self._is_ended:
            return
        if not isinstance(transitions, Iterable):
            raise InvalidValue(
                "transitions", transitions, "a sequence of Transition, as a step holds it"
            )
        for transition in transitions:
            # One by one: a record that cannot be built must not drop the others.
            self._report_transition(transition, is_history_preserved=is_history_preserved)

    @swallow_errors
    def _report_transition(
        self, transition: Transition, *, is_history_preserved: bool | None
    ) -> None:
        if not isinstance(transition, Transition):
            raise InvalidValue(
                "transitions[]", transition, "a Transition, as step.transitions holds it"
            )
        ids = self._ids_by_guard.get(transition.guard)
        if ids is None:
            return
        sequence = self._transitions + 1
        labels = transition_labels(transition)
        attributes = transition_attributes(
            transition, labels, sequence=sequence, is_history_preserved=is_history_preserved
        )
        # The number is spent once the record is built: a later loss then leaves a gap to see.
        self._transitions = sequence
        self._sink.emit(contract.TRANSITION, {**ids, **attributes})
        self._sink.add(self._sink.instruments.transitions, 1, labels)

    @swallow_errors
    def executed(self, status: ExecutionStatus) -> None:
        """Count a tool call that settled; only success and error are in the execution SLI."""
        settled = member_of(status, ExecutionStatus, "executed(status)")
        if settled in _COUNTED:
            for labels in self._labels.values():
                self._sink.add(
                    self._sink.instruments.executions,
                    1,
                    {**labels, contract.EXECUTION_STATUS: settled.value},
                )

    @swallow_errors
    def loop_detected(self, loop: LoopType) -> None:
        """Report, once per prompt, the protection that ended its turn."""
        if not self._is_on or self._is_loop_reported:
            return
        detected = member_of(loop, LoopType, "loop_detected(loop)")
        attributes = {contract.LOOP_TYPE: detected.value}
        self._is_loop_reported = True
        guard = GUARD_OF_LOOP.get(detected)
        if guard is not None:
            attributes[contract.GUARD] = guard
        self._sink.emit(contract.LOOP_DETECTED, {**self._ids, **attributes})

    @swallow_errors
    def violated(self, guard: str, invariant: Invariant) -> None:
        """Count an invariant that the host itself saw broken."""
        broken = member_of(invariant, Invariant, "violated(invariant)")
        if not isinstance(guard, str):
            raise InvalidValue("violated(guard)", guard, "the guard's name")
        labels = self._labels.get(guard)
        if labels is not None:
            self._sink.add(
                self._sink.instruments.violations, 1, {**labels, contract.INVARIANT: broken.value}
            )

    @swallow_errors
    def ended(self, end: PromptEnd) -> None:
        """Report the end, and how many transitions were reported before it."""
        if not self._is_on or self._is_ended:
            return
        if not isinstance(end, PromptEnd):
            raise InvalidValue("ended(end)", end, "a PromptEnd")
        attributes = end_attributes(end)
        self._is_ended = True
        for error in invalid_numbers(end):
            self._sink.drop_invalid(error)
        self._sink.emit(
            contract.PROMPT_END,
            {**self._ids, **attributes, contract.TRANSITIONS: self._transitions},
        )
        counters = self._sink.instruments
        outcome = str(attributes[contract.OUTCOME])
        for labels in self._labels.values():
            stage = {**labels, contract.STAGE: "end", contract.OUTCOME: outcome}
            self._sink.add(counters.prompts, 1, stage)
            if end.tokens is not None:
                self._sink.add(counters.tokens, end.tokens, labels)
            if end.known_turns is not None:
                self._sink.add(counters.turns, end.known_turns, labels)
            if end.known_duration_seconds is not None:
                self._sink.record_duration(end.known_duration_seconds, labels)

    @swallow_errors
    def disrupted(self, kind: DisruptionKind, *, offset_seconds: float) -> None:
        """Report that the user disconnected or tried again, within 600 s after the end.

        `offset_seconds` counts from the prompt's end. A later one, and a second one of the same
        kind, is no disruption of this prompt.
        """
        disruption = member_of(kind, DisruptionKind, "disrupted(kind)")
        if not is_number(offset_seconds):
            raise InvalidValue("disrupted(offset_seconds)", offset_seconds, "seconds since the end")
        is_within = 0 <= offset_seconds <= contract.DISRUPTION_LIMIT_SECONDS
        if not self._is_ended or not is_within or disruption in self._disruptions:
            return
        self._disruptions.add(disruption)
        label = {contract.DISRUPTION_KIND: disruption.value}
        self._sink.emit(
            contract.DISRUPTION,
            {**self._ids, **label, contract.DISRUPTION_OFFSET: float(offset_seconds)},
        )
        for labels in self._labels.values():
            self._sink.add(self._sink.instruments.disruptions, 1, {**labels, **label})


def _ids(prompt_id: str, assignments: Sequence[Assignment]) -> Attributes:
    """Return the ids that every event carries; a process may have them on its Resource instead."""
    ids = tuple(
        assignment.assignment_id
        for assignment in assignments
        if assignment.assignment_id is not None
    )
    prompt: Attributes = {contract.PROMPT_ID: prompt_id}
    return {**prompt, contract.ASSIGNMENT_ID: ids} if ids else prompt
