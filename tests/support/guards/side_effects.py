"""Side-effect host: it proposes calls to the guard and lets them end, and strategies."""

from collections.abc import Sequence

from hypothesis import strategies as st

from guardwave.reducer.guards.calls import ToolCall
from guardwave.reducer.guards.side_effect import (
    Action,
    ApprovalScope,
    Decided,
    Event,
    Ladder,
    PromptStarted,
    Proposed,
    RequestEnded,
    Scope,
    Settled,
    SideEffectDuplicate,
    SideEffectStep,
    ThreadEnded,
    ToolDeclaration,
    reduce,
)
from guardwave.reducer.vocabulary import Decision, ExecutionStatus, GuardPhase, Mode

CHARGE = {"order": "42", "amount": 10}
SUCCESS, ERROR = ExecutionStatus.SUCCESS, ExecutionStatus.ERROR


class Host:
    """One host; `guard` is the state it keeps."""

    def __init__(self, mode: Mode = Mode.ENFORCE, **ladder):
        self.guard = SideEffectDuplicate.start(mode, ladder=Ladder(**ladder))

    def take(self, event: Event) -> SideEffectStep:
        step = reduce(self.guard, event)
        self.guard = step.state
        return step

    def propose(self, call_id, *, args=CHARGE, tool="charge", request="r1", at=0, **more):
        call = ToolCall.of(call_id, tool, args)
        return self.take(Proposed(call, request, at, **more))

    def settle(self, call_id, *, status=SUCCESS, request="r1", at=0):
        return self.take(Settled(call_id, request, status, at))

    def run(self, call_id, *, status=SUCCESS, request="r1", at=0, **more):
        """Propose a call and let it end if it runs; returns the step of the proposal."""
        step = self.propose(call_id, request=request, at=at, **more)
        if step.verdict is not None and step.verdict.runs:
            self.settle(call_id, status=status, request=request, at=at)
        return step

    def answer(self, call_id, approved, *, request="r1", at=0):
        return self.take(Decided(call_id, request, approved, at))


def transition_words(step: SideEffectStep) -> Sequence[tuple[GuardPhase, GuardPhase, Decision]]:
    return [
        (transition.phase_from, transition.phase_to, transition.decision)
        for transition in step.transitions
    ]


_ids = st.sampled_from(["c1", "c2", "c3", "c4"])
_requests = st.sampled_from(["r1", "r2"])
_times = st.integers(0, 300)
_declarations = st.sampled_from(
    [
        ToolDeclaration(),
        ToolDeclaration(side_effect=True),
        ToolDeclaration(side_effect=False),
        ToolDeclaration(idempotent=True),
        ToolDeclaration(idempotency_key_fields=("order",)),
    ]
)
_digests = st.sampled_from(["a" * 32, "b" * 32]) | st.none()
calls = st.builds(
    ToolCall,
    call_id=_ids | st.sampled_from([None, " "]),
    tool=st.just("charge"),
    fingerprint=_digests,
)
proposals = st.builds(
    Proposed,
    call=calls,
    request=_requests,
    now_ms=_times,
    thread=st.sampled_from([None, "t1", "t2"]),
    declaration=_declarations,
    is_approved=st.booleans(),
    channel=st.sampled_from([None, "mail"]),
)
settlements = st.builds(
    Settled,
    call_id=_ids,
    request=_requests,
    execution_status=st.none() | st.sampled_from(ExecutionStatus),
    now_ms=_times,
)
answers = st.builds(
    Decided, call_id=_ids, request=_requests, is_approved=st.booleans(), now_ms=_times
)
endings = st.builds(RequestEnded, _requests) | st.builds(ThreadEnded, st.sampled_from(["t1", "t2"]))
work = st.lists(proposals | settlements | answers, max_size=25)
events = proposals | settlements | answers | endings
histories = st.lists(events | st.builds(PromptStarted, st.sampled_from(Mode)), max_size=25)
ladders = st.builds(
    Ladder,
    action=st.sampled_from(Action),
    scope=st.sampled_from(Scope),
    ttl_ms=st.none() | st.integers(0, 200),
    approvals=st.sampled_from(ApprovalScope),
)


def after(state: SideEffectDuplicate, history: Sequence[Event]) -> SideEffectDuplicate:
    for event in history:
        state = reduce(state, event).state
    return state
