"""A session: one conversation of one person, prompt after prompt."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from control_plane.client import Assignment, GuardTelemetry, PromptTelemetry
from examples.agent_host.batches import Workbench
from examples.agent_host.first_uses import FirstUses
from examples.agent_host.guarding import Proposer, seed
from examples.agent_host.model import Model
from examples.agent_host.people import TERMINAL, Channel, Person
from examples.agent_host.prompt_run import PromptRun, Result, Surroundings
from examples.agent_host.transcript import Transcript
from reducer.guards.pipeline import GUARDS, Limits, Pipeline, PromptStarted, reduce
from reducer.vocabulary import DisruptionKind, Route

# Which assignments hold for a prompt of this route; asked once for each prompt, then pinned.
Resolver = Callable[[Route], Sequence[Assignment]]


@dataclass(frozen=True, slots=True)
class Host:
    """What all sessions of a process share."""

    model: Model
    bench: Workbench
    resolve: Resolver
    telemetry: GuardTelemetry = field(default_factory=GuardTelemetry)
    first_uses: FirstUses = field(default_factory=FirstUses)
    limits: Limits = field(default_factory=Limits)
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000


class Session:
    """One conversation. It goes on where its transcript ends, in this process or another."""

    def __init__(
        self, host: Host, transcript: Transcript, person: Person, *, person_id: str | None = None
    ) -> None:
        self._host = host
        self._transcript = transcript
        self._person = person
        self._person_id = person_id
        self._guards = Pipeline.start({}, limits=host.limits)
        self._last: PromptTelemetry | None = None
        self._last_ended_ms = 0
        self._last_text: str | None = None

    def attach(self, person: Person) -> None:
        """Take the person's new connection; the session and its guards go on."""
        self._person = person

    def disconnected(self) -> None:
        """Note that the connection broke: soon after a prompt's end that says something of it."""
        self._disrupted(DisruptionKind.DISCONNECT)

    def prompt(self, text: str, *, channel: Channel = TERMINAL) -> Result:
        """Run one prompt to its end."""
        if text == self._last_text:
            self._disrupted(DisruptionKind.RETRY)
        host = self._host
        assignments = [each for each in host.resolve(channel.route) if each.guard in GUARDS]
        modes = {each.guard: each.mode for each in assignments}
        state = reduce(self._guards, PromptStarted(modes, channel.route)).state
        state = reduce(state, seed(self._transcript)).state
        telemetry = host.telemetry.prompt(assignments=assignments, route=channel.route)
        surroundings = Surroundings(
            model=host.model,
            bench=host.bench,
            proposer=Proposer(host.bench.tools, host.first_uses, self._person_id),
            transcript=self._transcript,
            telemetry=telemetry,
            now_ms=host.now_ms,
        )
        run = PromptRun(surroundings, lambda: self._person, channel, state)
        result = run.to_its_end(text)
        self._guards = run.guards
        self._last, self._last_ended_ms, self._last_text = telemetry, host.now_ms(), text
        return result

    def _disrupted(self, kind: DisruptionKind) -> None:
        if self._last is not None:
            offset = (self._host.now_ms() - self._last_ended_ms) / 1000
            self._last.disrupted(kind, offset_seconds=offset)
