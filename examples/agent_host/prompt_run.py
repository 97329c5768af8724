"""One prompt from its text to its end: model turns, batches, and what the guards say to them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from control_plane.client import PromptEnd, PromptTelemetry
from examples.agent_host.batches import Done, Planned, Workbench, plan, run
from examples.agent_host.guarding import Proposer
from examples.agent_host.messages import (
    AssistantTurn,
    RequestedCall,
    SystemText,
    ToolAnswer,
    UserText,
)
from examples.agent_host.model import Interrupted, Model, ModelError, Reply
from examples.agent_host.people import Channel, Drained, DrainError, DrainRequest, Person
from examples.agent_host.transcript import Transcript, TranscriptError
from reducer.guards.identical_call import Turn
from reducer.guards.pipeline import (
    Answered,
    BatchProposed,
    BatchSettled,
    Event,
    Fate,
    Pipeline,
    PipelineStep,
    TurnStarting,
    reduce,
)
from reducer.guards.repeated_failure import Receipt, settle
from reducer.guards.tool_choice import Transport, request_of
from reducer.vocabulary import Decision, ExecutionStatus, LoopType, Mode, Outcome

INSTRUCTIONS = "You are an agent. Use the tools, and say when you are done."


class Result(NamedTuple):
    """How a prompt ended; `error` is there for the person, in words."""

    outcome: Outcome
    stopped_by: LoopType | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a prompt needs of its session and host."""

    model: Model
    bench: Workbench
    proposer: Proposer
    transcript: Transcript
    telemetry: PromptTelemetry
    now_ms: Callable[[], int]


class PromptRun:
    """Runs one prompt. `guards` is the state after it; `person` gives the newest connection."""

    def __init__(
        self,
        around: Surroundings,
        person: Callable[[], Person],
        channel: Channel,
        guards: Pipeline,
    ) -> None:
        self.guards = guards
        self._around = around
        self._person = person
        self._channel = channel
        self._turns = self._calls = 0
        self._input_tokens: int | None = 0
        self._output_tokens: int | None = 0
        self._calls_after_would_stop: int | None = None

    def to_its_end(self, text: str) -> Result:
        """Run the prompt and report how it ended."""
        around = self._around
        began_ms = around.now_ms()
        around.telemetry.started()
        result = self._guarded(text)
        if result.error is not None:
            self._person().show(result.error)
        around.telemetry.ended(
            PromptEnd(
                result.outcome,
                duration_seconds=(around.now_ms() - began_ms) / 1000,
                turns=self._turns,
                tool_calls=self._calls,
                input_tokens=self._input_tokens,
                output_tokens=self._output_tokens,
                calls_after_would_stop=self._calls_after_would_stop,
            )
        )
        return result

    def _guarded(self, text: str) -> Result:
        try:
            self._around.transcript.add(UserText(text))
            while (result := self._turn()) is None:
                pass
        except Interrupted:
            return Result(Outcome.CANCELLED)
        except (ModelError, TranscriptError) as error:
            return Result(Outcome.FAILED, error=str(error))
        return result

    def _turn(self) -> Result | None:
        """Take one model turn and what follows from it; None when the prompt goes on."""
        if self._person().is_cancelled():
            raise Interrupted
        starting = self._take(TurnStarting())
        if starting.stop is not None:
            return self._stop(starting)
        reply = self._ask(starting.turn or Turn())
        proposals = tuple(self._around.proposer.proposal(call) for call in reply.calls)
        proposed = self._take(
            BatchProposed(
                (proposals,),
                self._around.telemetry.id,
                self._around.now_ms(),
                channel=self._channel.name,
            )
        )
        if proposed.stop is not None:
            return self._stop(proposed)
        if not reply.calls:
            self._around.transcript.add(AssistantTurn(reply.text))
            self._person().show(reply.text)
            return Result(Outcome.COMPLETED)
        return self._batch(reply, plan(reply.calls, proposed.fates))

    def _ask(self, turn: Turn) -> Reply:
        """Ask the model; the turn's note is in this request alone."""
        around = self._around
        body: Mapping[str, object] = {
            "model": around.model.name,
            "messages": [SystemText(INSTRUCTIONS).wire(), *around.transcript.wire()],
            "tools": [tool.definition() for tool in around.bench.tools.values()],
        }
        request = request_of(Transport.OPENAI_CHAT_COMPLETIONS, body, turn)
        self._turns += 1
        reply = around.model.ask(request, is_cancelled=lambda: self._person().is_cancelled())
        self._input_tokens = _sum(self._input_tokens, reply.input_tokens)
        self._output_tokens = _sum(self._output_tokens, reply.output_tokens)
        return reply

    def _batch(self, reply: Reply, batch: list[Planned]) -> Result | None:
        transcript = self._around.transcript
        named = tuple(
            RequestedCall(each.call_id, each.call.tool, each.call.arguments) for each in batch
        )
        transcript.add(AssistantTurn(reply.text, named))
        done = run(self._asked_about(batch), self._around.bench, self._person())
        # Whatever the guards say next: what has settled stays.
        transcript.add(*(ToolAnswer(each.call_id, each.text) for each in done))
        self._count(done)
        if self._person().is_cancelled():
            raise Interrupted
        return self._settle(done)

    def _asked_about(self, batch: list[Planned]) -> list[Planned]:
        """Put each open question to the person; an answer may decide other questions too."""
        fates = {each.fate.key: each.fate for each in batch}
        for each in batch:
            waiting = fates[each.fate.key]
            if waiting.fate is not Fate.ASK or waiting.question is None:
                continue
            is_approved = self._person().approve(waiting.question.text)
            answered = self._take(Answered(waiting.key, is_approved, self._around.now_ms()))
            fates |= {fate.key: fate for fate in answered.fates}
        return [Planned(each.call, each.arguments, fates[each.fate.key]) for each in batch]

    def _settle(self, done: list[Done]) -> Result | None:
        drained, is_reliable = self._drain()
        before = self.guards
        step = self._settled(done, drained, is_reliable=is_reliable)
        if step.stop is not None:
            # What the person did meanwhile outranks a stop: look once more before it stands.
            if self._person().is_cancelled():
                self.guards = before
                self._keep(step, drained)
                raise Interrupted
            late, is_late_reliable = self._drain()
            if late.texts or late.has_queued_prompt or not is_late_reliable:
                drained, is_reliable = drained.and_then(late), is_reliable and is_late_reliable
                self.guards = before
                step = self._settled(done, drained, is_reliable=is_reliable)
        self._keep(step, drained)
        if step.stop is not None:
            return self._stop(step)
        self._report(step)
        if step.reminder is not None:
            self._around.transcript.add(SystemText(step.reminder))
        return None

    def _keep(self, step: PipelineStep, drained: Drained) -> None:
        """Keep what was done for the first time, and what the person said meanwhile."""
        for found in step.first_uses:
            self._around.proposer.first_uses.keep(found)
        self._around.transcript.add(*(UserText(text) for text in drained.texts))

    def _settled(self, done: list[Done], drained: Drained, *, is_reliable: bool) -> PipelineStep:
        """Tell the guards what became of the batch, without reporting what they decide yet."""
        keys = [str(each.observation.call_id) for each in done]
        batch = settle(
            keys,
            [Receipt(place, each.observation) for place, each in enumerate(done, start=1)],
            is_input_reliable=is_reliable,
            has_external_input=bool(drained.texts),
            has_queued_prompt=drained.has_queued_prompt,
        )
        step = reduce(self.guards, BatchSettled(batch, self._around.now_ms()))
        self.guards = step.state
        return step

    def _drain(self) -> tuple[Drained, bool]:
        is_guarded = self.guards.repeated.mode is not Mode.OFF
        try:
            return self._person().drain(DrainRequest(with_queued=is_guarded)), True
        except DrainError:
            return Drained(), False

    def _take(self, event: Event) -> PipelineStep:
        """Hand an event to the guards; a stop is reported when it stands."""
        step = reduce(self.guards, event)
        self.guards = step.state
        if step.stop is None:
            self._report(step)
        return step

    def _report(self, step: PipelineStep, *, is_history_preserved: bool | None = None) -> None:
        self._around.telemetry.decided(step.transitions, is_history_preserved=is_history_preserved)
        decisions = {each.decision for each in step.transitions}
        if Decision.WOULD_STOP in decisions and self._calls_after_would_stop is None:
            self._calls_after_would_stop = 0

    def _count(self, done: list[Done]) -> None:
        ran = [each.execution for each in done if each.execution is not ExecutionStatus.NOT_STARTED]
        self._calls += len(ran)
        if self._calls_after_would_stop is not None:
            self._calls_after_would_stop += len(ran)
        for status in ran:
            self._around.telemetry.executed(status)

    def _stop(self, step: PipelineStep) -> Result:
        """End the turn: keep the stop's text, show it once, and ask the model nothing more."""
        stop = step.stop
        if stop is None or stop.loop is None or stop.text is None:
            self._report(step)
            return Result(Outcome.LIMIT)
        try:
            self._around.transcript.add(SystemText(stop.text))
        except TranscriptError as error:
            self._report(step, is_history_preserved=False)
            return Result(Outcome.FAILED, error=str(error))
        self._report(step, is_history_preserved=True)
        self._around.telemetry.loop_detected(stop.loop)
        self._person().show(stop.text)
        is_limit = stop.loop in {LoopType.TOTAL_TOOL_CALLS, LoopType.INVALID_TOOL_PARAMS}
        return Result(Outcome.LIMIT if is_limit else Outcome.GUARD_STOPPED, stop.loop)


def _sum(so_far: int | None, more: int | None) -> int | None:
    """Add token counts; once one is not known, their sum is not either."""
    return None if so_far is None or more is None else so_far + more
