"""Sessions: a person's conversation with the agent, prompt after prompt."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from examples.agent_host.batches import Workbench
from examples.agent_host.first_uses import FirstUses
from examples.agent_host.guarding import Proposer, seed
from examples.agent_host.model import Model
from examples.agent_host.people import TERMINAL, Channel, Person
from examples.agent_host.prompt_run import PromptContext, PromptRun, Result
from examples.agent_host.transcript import Transcript
from guardwave.client import Assignment, GuardTelemetry, PromptTelemetry
from guardwave.guards import DisruptionKind, Route, pipeline

# Returns the assignments for a prompt of this route; called once for each prompt.
Resolver = Callable[[Route], Sequence[Assignment]]


@dataclass(frozen=True, slots=True)
class Host:
    """The parts that all sessions of a process share."""

    model: Model
    bench: Workbench
    resolve: Resolver
    telemetry: GuardTelemetry = field(default_factory=GuardTelemetry)
    first_uses: FirstUses = field(default_factory=FirstUses)
    limits: pipeline.Limits = field(default_factory=pipeline.Limits)
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000


class Session:
    """One conversation, which continues after its transcript, in this process or another."""

    def __init__(
        self, host: Host, transcript: Transcript, person: Person, *, person_id: str | None = None
    ) -> None:
        self._host = host
        self._transcript = transcript
        self._person = person
        self._person_id = person_id
        self._guards = pipeline.Pipeline.start({}, limits=host.limits)
        self._last: PromptTelemetry | None = None
        self._last_ended_ms = 0
        self._last_text: str | None = None

    def attach(self, person: Person) -> None:
        """Use the person's new connection; session and guards stay."""
        self._person = person

    def disconnected(self) -> None:
        """Report that the connection broke, which counts if a prompt ended shortly before."""
        self._disrupted(DisruptionKind.DISCONNECT)

    def prompt(self, text: str, *, channel: Channel = TERMINAL) -> Result:
        """Run one prompt to its end."""
        if text == self._last_text:
            self._disrupted(DisruptionKind.RETRY)
        host = self._host
        # Resolved once and held to the end of the prompt.
        assignments = [
            assignment
            for assignment in host.resolve(channel.route)
            if assignment.guard in pipeline.GUARDS
        ]
        modes = {assignment.guard: assignment.mode for assignment in assignments}
        started = pipeline.PromptStarted(modes, channel.route)
        state = pipeline.reduce(self._guards, started).state
        state = pipeline.reduce(state, seed(self._transcript)).state
        telemetry = host.telemetry.prompt(assignments=assignments, route=channel.route)
        context = PromptContext(
            model=host.model,
            bench=host.bench,
            proposer=Proposer(host.bench.tools, host.first_uses, self._person_id),
            transcript=self._transcript,
            telemetry=telemetry,
            now_ms=host.now_ms,
        )
        run = PromptRun(context, lambda: self._person, channel, state)
        result = run.run_prompt(text)
        self._guards = run.guards
        self._last, self._last_ended_ms, self._last_text = telemetry, host.now_ms(), text
        return result

    def _disrupted(self, kind: DisruptionKind) -> None:
        if self._last is not None:
            offset = (self._host.now_ms() - self._last_ended_ms) / 1000
            self._last.disrupted(kind, offset_seconds=offset)
