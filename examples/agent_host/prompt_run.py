"""Prompt run: one prompt to its end, through model turns, batches and the guards' decisions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from examples.agent_host.batches import CallResult, PlannedCall, Workbench, plan, run
from examples.agent_host.guarding import Proposer
from examples.agent_host.messages import (
    AssistantTurn,
    RequestedCall,
    SystemText,
    ToolAnswer,
    UserText,
)
from examples.agent_host.model import Interruption, Model, ModelError, Reply
from examples.agent_host.people import Channel, InputError, InputRequest, Person, PersonInput
from examples.agent_host.transcript import Transcript, TranscriptError
from guardwave.client import PromptEnd, PromptTelemetry
from guardwave.guards import (
    Decision,
    ExecutionStatus,
    LoopType,
    Mode,
    Outcome,
    Transport,
    identical_call,
    pipeline,
    repeated_failure,
    request_of,
)

INSTRUCTIONS = "You are an agent. Use the tools, and say when you are done."


class Result(NamedTuple):
    """How a prompt ended; `error` is a text for the person."""

    outcome: Outcome
    stopped_by: LoopType | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class PromptContext:
    """The parts of the session and the host that a prompt needs."""

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
        context: PromptContext,
        person: Callable[[], Person],
        channel: Channel,
        guards: pipeline.Pipeline,
    ) -> None:
        self.guards = guards
        self._context = context
        self._person = person
        self._channel = channel
        self._turns = self._calls = 0
        self._input_tokens: int | None = 0
        self._output_tokens: int | None = 0
        self._calls_after_would_stop: int | None = None

    def run_prompt(self, text: str) -> Result:
        """Run the prompt and report its end."""
        context = self._context
        began_ms = context.now_ms()
        context.telemetry.started()
        result = self._run_turns(text)
        if result.error is not None:
            self._person().show(result.error)
        context.telemetry.ended(
            PromptEnd(
                result.outcome,
                duration_seconds=(context.now_ms() - began_ms) / 1000,
                turns=self._turns,
                tool_calls=self._calls,
                input_tokens=self._input_tokens,
                output_tokens=self._output_tokens,
                calls_after_would_stop=self._calls_after_would_stop,
            )
        )
        return result

    def _run_turns(self, text: str) -> Result:
        try:
            self._context.transcript.add(UserText(text))
            while (result := self._run_turn()) is None:
                pass
        except Interruption:
            return Result(Outcome.CANCELLED)
        except (ModelError, TranscriptError) as error:
            return Result(Outcome.FAILED, error=str(error))
        return result

    def _run_turn(self) -> Result | None:
        """Run one model turn and its calls; None when the prompt goes on."""
        if self._person().is_cancelled():
            raise Interruption
        starting = self._reduce(pipeline.TurnStarting())
        if starting.stop is not None:
            return self._stop(starting)
        reply = self._ask(starting.turn or identical_call.Turn())
        proposals = tuple(self._context.proposer.proposal(call) for call in reply.calls)
        proposed = self._reduce(
            pipeline.BatchProposed(
                (proposals,),
                self._context.telemetry.id,
                self._context.now_ms(),
                channel=self._channel.name,
            )
        )
        if proposed.stop is not None:
            return self._stop(proposed)
        if not reply.calls:
            self._context.transcript.add(AssistantTurn(reply.text))
            self._person().show(reply.text)
            return Result(Outcome.COMPLETED)
        return self._batch(reply, plan(reply.calls, proposed.dispositions))

    def _ask(self, turn: identical_call.Turn) -> Reply:
        """Ask the model. Only this request has the turn's note, not the transcript."""
        context = self._context
        body: Mapping[str, object] = {
            "model": context.model.name,
            "messages": [SystemText(INSTRUCTIONS).wire(), *context.transcript.wire()],
            "tools": [tool.definition() for tool in context.bench.tools.values()],
        }
        request = request_of(Transport.OPENAI_CHAT_COMPLETIONS, body, turn)
        self._turns += 1
        reply = context.model.ask(request, is_cancelled=lambda: self._person().is_cancelled())
        self._input_tokens = _sum(self._input_tokens, reply.input_tokens)
        self._output_tokens = _sum(self._output_tokens, reply.output_tokens)
        return reply

    def _batch(self, reply: Reply, batch: list[PlannedCall]) -> Result | None:
        transcript = self._context.transcript
        calls = tuple(
            RequestedCall(planned.call_id, planned.call.tool, planned.call.arguments)
            for planned in batch
        )
        transcript.add(AssistantTurn(reply.text, calls))
        results = run(self._answer_questions(batch), self._context.bench, self._person())
        # Before the guards decide: a settled result stays in any case.
        transcript.add(*(ToolAnswer(result.call_id, result.text) for result in results))
        self._count(results)
        if self._person().is_cancelled():
            raise Interruption
        return self._settle(results)

    def _answer_questions(self, batch: list[PlannedCall]) -> list[PlannedCall]:
        """Put each open question to the person; an answer may decide other questions too."""
        dispositions = {planned.disposition.key: planned.disposition for planned in batch}
        for planned in batch:
            disposition = dispositions[planned.disposition.key]
            if disposition.action is not pipeline.HostAction.ASK or disposition.question is None:
                continue
            is_approved = self._person().approve(disposition.question.text)
            now_ms = self._context.now_ms()
            step = self._reduce(pipeline.Answered(disposition.key, is_approved, now_ms))
            dispositions |= {decided.key: decided for decided in step.dispositions}
        return [
            PlannedCall(planned.call, planned.arguments, dispositions[planned.disposition.key])
            for planned in batch
        ]

    def _settle(self, results: list[CallResult]) -> Result | None:
        new_input, is_reliable = self._drain()
        before = self.guards
        step = self._reduce_batch(results, new_input, is_reliable=is_reliable)
        if step.stop is not None:
            # What the person did meanwhile outranks a stop, so ask once more before it stands.
            if self._person().is_cancelled():
                self.guards = before
                self._keep(step, new_input)
                raise Interruption
            late, is_late_reliable = self._drain()
            if late.texts or late.has_queued_prompt or not is_late_reliable:
                new_input = new_input.followed_by(late)
                is_reliable = is_reliable and is_late_reliable
                self.guards = before
                step = self._reduce_batch(results, new_input, is_reliable=is_reliable)
        self._keep(step, new_input)
        if step.stop is not None:
            return self._stop(step)
        self._report(step)
        if step.reminder is not None:
            self._context.transcript.add(SystemText(step.reminder))
        return None

    def _keep(self, step: pipeline.PipelineStep, new_input: PersonInput) -> None:
        """Keep the first uses of effects, and the person's input."""
        for first_use in step.first_uses:
            self._context.proposer.first_uses.keep(first_use)
        self._context.transcript.add(*(UserText(text) for text in new_input.texts))

    def _reduce_batch(
        self, results: list[CallResult], new_input: PersonInput, *, is_reliable: bool
    ) -> pipeline.PipelineStep:
        """Pass the settled batch to the guards; their decisions are reported later."""
        batch = repeated_failure.settle(
            [str(result.observation.call_id) for result in results],
            [
                repeated_failure.Receipt(place, result.observation)
                for place, result in enumerate(results, start=1)
            ],
            is_input_reliable=is_reliable,
            has_external_input=bool(new_input.texts),
            has_queued_prompt=new_input.has_queued_prompt,
        )
        settled = pipeline.BatchSettled(batch, self._context.now_ms())
        step = pipeline.reduce(self.guards, settled)
        self.guards = step.state
        return step

    def _drain(self) -> tuple[PersonInput, bool]:
        is_guarded = self.guards.repeated.mode is not Mode.OFF
        try:
            return self._person().drain(InputRequest(with_queued=is_guarded)), True
        except InputError:
            return PersonInput(), False

    def _reduce(self, event: pipeline.Event) -> pipeline.PipelineStep:
        """Pass an event to the guards. A stop is reported later, once it stands."""
        step = pipeline.reduce(self.guards, event)
        self.guards = step.state
        if step.stop is None:
            self._report(step)
        return step

    def _report(
        self, step: pipeline.PipelineStep, *, is_history_preserved: bool | None = None
    ) -> None:
        self._context.telemetry.decided(step.transitions, is_history_preserved=is_history_preserved)
        decisions = {transition.decision for transition in step.transitions}
        if Decision.WOULD_STOP in decisions and self._calls_after_would_stop is None:
            self._calls_after_would_stop = 0

    def _count(self, results: list[CallResult]) -> None:
        executions = (result.execution for result in results)
        ran = [status for status in executions if status is not ExecutionStatus.NOT_STARTED]
        self._calls += len(ran)
        if self._calls_after_would_stop is not None:
            self._calls_after_would_stop += len(ran)
        for status in ran:
            self._context.telemetry.executed(status)

    def _stop(self, step: pipeline.PipelineStep) -> Result:
        """End the turn: keep the stop's text, show it once, and ask the model nothing more."""
        stop = step.stop
        if stop is None or stop.loop is None or stop.text is None:
            self._report(step)
            return Result(Outcome.LIMIT)
        try:
            self._context.transcript.add(SystemText(stop.text))
        except TranscriptError as error:
            self._report(step, is_history_preserved=False)
            return Result(Outcome.FAILED, error=str(error))
        self._report(step, is_history_preserved=True)
        self._context.telemetry.loop_detected(stop.loop)
        self._person().show(stop.text)
        is_limit = stop.loop in {LoopType.TOTAL_TOOL_CALLS, LoopType.INVALID_TOOL_PARAMS}
        return Result(Outcome.LIMIT if is_limit else Outcome.GUARD_STOPPED, stop.loop)


def _sum(so_far: int | None, more: int | None) -> int | None:
    """Add token counts; the sum is unknown once one of them is."""
    return None if so_far is None or more is None else so_far + more
