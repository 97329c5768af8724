"""Pipeline sessions: a host that drives the pipeline."""

from guardwave.reducer.guards.calls import ToolCall
from guardwave.reducer.guards.repeated_failure import Observation, SettledBatch
from guardwave.reducer.guards.side_effect import ToolDeclaration
from guardwave.reducer.pipeline import (
    GUARDS,
    Answered,
    BatchProposed,
    BatchSettled,
    HostAction,
    Pipeline,
    PromptStarted,
    Proposal,
    TurnStarting,
    reduce,
)
from guardwave.reducer.vocabulary import Mode

READS = ToolDeclaration(side_effect=False)
SENDS = ToolDeclaration(side_effect=True)


def every(mode):
    """Return one mode for all guards."""
    return dict.fromkeys(GUARDS, mode)


def only(guard, mode=Mode.ENFORCE):
    """Return modes in which one guard is on."""
    return {guard: mode}


def ask(call_id, tool="read", *, declaration=READS, **arguments):
    """Return a proposal of the model."""
    return Proposal(ToolCall.of(call_id, tool, arguments), declaration)


class Session:
    """One session: its pipeline, its clock and all reported transitions."""

    def __init__(self, modes=None, **how):
        self.state = Pipeline.start(every(Mode.ENFORCE) if modes is None else modes, **how)
        self.transitions = []
        self.now_ms = 0

    def take(self, event):
        """Hand over one event and return the step."""
        step = reduce(self.state, event)
        self.state = step.state
        self.transitions += step.transitions
        return step

    def turn(self, **how):
        return self.take(TurnStarting(**how))

    def propose(self, *proposals, **how):
        """Propose the calls of one response."""
        self.now_ms += 1000
        return self.take(BatchProposed((proposals,), how.pop("request", "r1"), self.now_ms, **how))

    def answer(self, key, *, is_approved):
        return self.take(Answered(key, is_approved, self.now_ms))

    def answer_no(self, key):
        return self.answer(key, is_approved=False)

    def settle(self, dispositions, outcome="success", *, evidence=None, complete=True, **boundary):
        """Settle the batch with one outcome for every call that runs."""
        self.now_ms += 1000
        observations = tuple(
            observe_end(disposition, outcome)
            if disposition.action is HostAction.RUN
            else disposition.not_run()
            for disposition in dispositions
            if disposition.action is not HostAction.DROP
        )
        is_reliable = boundary.pop("reliable", True)
        batch = SettledBatch(
            observations, is_complete=complete, is_input_reliable=is_reliable, **boundary
        )
        return self.take(BatchSettled(batch, self.now_ms, evidence or {}))

    def round(self, *proposals, outcome="success"):
        """Propose calls and settle them."""
        step = self.propose(*proposals)
        return step if step.stop is not None else self.settle(step.dispositions, outcome)

    def prompt(self, modes=None, **how):
        return self.take(PromptStarted(every(Mode.ENFORCE) if modes is None else modes, **how))


def observe_end(disposition, outcome):
    """Return how a call that ran has ended: `success`, `invalid`, or an error type."""
    if outcome == "success":
        terminal, execution, error_type = "success", "success", None
    elif outcome == "invalid":
        terminal, execution, error_type = "error", "not_started", "invalid_tool_params"
    else:
        terminal, execution, error_type = "error", "error", outcome
    return Observation(
        disposition.key,
        disposition.tool,
        tool_type="native",
        terminal_status=terminal,
        execution_status=execution,
        error_type=error_type,
    )


def actions(step):
    """Return the actions of a step's dispositions."""
    return [disposition.action.value for disposition in step.dispositions]
