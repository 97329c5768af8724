"""Story of the demo: simulated owners, their prompts, and the events of each prompt.

The same owner and day always give the same prompts; only the guard's part differs by mode.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from random import Random
from typing import TypeAlias

from guardwave.reducer import contract
from guardwave.reducer.catalogue import GUARD_OF_LOOP
from guardwave.reducer.vocabulary import Decision, GuardPhase, LoopType, Mode, Outcome

Attributes: TypeAlias = "dict[str, str | bool | int | float]"

GUARD = "repeated_tool_failure"
VERSION = "1.4.2"
DAY_S = 86_400
SEED = "guardwave demo"

# One prompt in sixteen meets a tool that keeps failing. Half of those recover after a warning, a
# quarter without one; the others go on failing until somebody stops them.
_LOOP_SHARE = 1 / 16
_RECOVERS = 0.5
_FINISHES_ANYWAY = 0.35
_CANCELLED_SHARE = 0.004
_DISRUPTED_SHARE = 0.002
# A limit of the host ends one in eight of the prompts that fail without a loop, in every mode.
_LIMITED_SHARE = 1 / 8
_LIMITS = (LoopType.TOTAL_TOOL_CALLS, LoopType.INVALID_TOOL_PARAMS)


@dataclass(frozen=True, slots=True)
class Owner:
    """One simulated workspace. `prompts_a_day` is a mean, `reliability` a completion rate."""

    name: str
    prompts_a_day: float
    reliability: float
    tokens_a_turn: float


@dataclass(frozen=True, slots=True)
class Transition:
    """One decision of the guard, this long after the prompt began."""

    offset_s: float
    sequence: int
    decision: Decision
    phase_from: GuardPhase
    phase_to: GuardPhase
    failures: str
    batches: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt under one mode. `start_s` counts from midnight UTC.

    `ended_by` is the protection that ended its turn, if one did.
    """

    owner: Owner
    prompt_id: str
    start_s: float
    duration_s: float
    outcome: Outcome
    ended_by: LoopType | None
    turns: int
    tool_calls: int
    input_tokens: int
    output_tokens: int
    calls_after_would_stop: int
    transitions: tuple[Transition, ...]
    disrupted_after_s: float | None


@dataclass(frozen=True, slots=True)
class Fleet:
    """The owners of one environment. `prompts_a_day` is the mean of one owner.

    Days are counted from `live_day`, so that the story does not depend on the date.
    """

    environment: str
    size: int
    prompts_a_day: float
    live_day: date

    def owners(self) -> tuple[Owner, ...]:
        """Return the owners, always the same."""
        return tuple(self._owner(index) for index in range(self.size))

    def _owner(self, index: int) -> Owner:
        name = f"{self.environment}-workspace-{index:04d}"
        dice = Random(f"{SEED}:{name}")
        return Owner(
            name=name,
            prompts_a_day=self.prompts_a_day * dice.lognormvariate(-0.045, 0.3),
            reliability=dice.betavariate(57, 3),
            tokens_a_turn=900 * dice.lognormvariate(0, 0.2),
        )

    def prompts(self, owner: Owner, day: date, mode: Mode) -> Iterator[Prompt]:
        """Yield an owner's prompts of a day on which the guard runs in this mode."""
        for number in range(self.count(owner, day)):
            yield self.prompt(owner, day, number, mode=mode)

    def count(self, owner: Owner, day: date) -> int:
        """Return how many prompts an owner begins on a day."""
        return _poisson(owner.prompts_a_day, Random(f"{owner.name}:{self._number(day)}"))

    def prompt(self, owner: Owner, day: date, number: int, *, mode: Mode) -> Prompt:
        """Return one of a day's prompts; its start does not depend on the mode."""
        return _prompt(owner, f"{owner.name}/{self._number(day)}/{number}", mode)

    def _number(self, day: date) -> int:
        return (day - self.live_day).days


def _poisson(mean: float, dice: Random) -> int:
    """Draw a Poisson number: count uniforms until their product is below exp(-mean)."""
    limit, product, count = math.exp(-mean), dice.random(), 0
    while product > limit:
        product *= dice.random()
        count += 1
    return count


def _prompt(owner: Owner, prompt_id: str, mode: Mode) -> Prompt:
    dice = Random(f"{SEED}:{prompt_id}")
    start_s = dice.uniform(0, DAY_S - 1)
    turns = 2 + _poisson(4, dice)
    end, loop, recovery, finish = (dice.random() for _ in range(4))
    disruption, tokens = dice.random(), dice.lognormvariate(0, 0.25)
    limit = dice.random()
    ended_by: LoopType | None = None
    is_loop = loop < _LOOP_SHARE
    transitions: tuple[Transition, ...] = ()
    calls_after = 0
    if end < _CANCELLED_SHARE:
        outcome = Outcome.CANCELLED
    elif is_loop:
        # A warning makes loops recover: without one, half as many do.
        recovers = recovery < (_RECOVERS if mode.rank >= Mode.WARN.rank else _RECOVERS / 2)
        outcome, extra, transitions = _loop(mode, recovers=recovers, finishes=finish)
        calls_after = extra
        turns += extra
        if outcome is Outcome.GUARD_STOPPED:
            ended_by = LoopType.REPEATED_TOOL_EXECUTION_FAILURE
    else:
        is_done = (end - _CANCELLED_SHARE) / (1 - _CANCELLED_SHARE) < owner.reliability
        outcome = Outcome.COMPLETED if is_done else Outcome.FAILED
        if not is_done and limit < _LIMITED_SHARE:
            outcome = Outcome.LIMIT
            ended_by = _LIMITS[int(limit / _LIMITED_SHARE * len(_LIMITS))]
    used = int(turns * owner.tokens_a_turn * tokens)
    return Prompt(
        owner=owner,
        prompt_id=prompt_id,
        start_s=start_s,
        duration_s=8.0 * turns * tokens,
        outcome=outcome,
        ended_by=ended_by,
        turns=turns,
        tool_calls=turns * 2,
        input_tokens=used - used // 5,
        output_tokens=used // 5,
        calls_after_would_stop=calls_after,
        transitions=transitions,
        disrupted_after_s=disruption * 200_000 if disruption < _DISRUPTED_SHARE else None,
    )


def _loop(
    mode: Mode, *, recovers: bool, finishes: float
) -> tuple[Outcome, int, tuple[Transition, ...]]:
    """Return a loop's outcome, its further turns and the guard's decisions."""
    warns = mode.rank >= Mode.WARN.rank
    tracked = _transition(1, Decision.TRACKED, (GuardPhase.IDLE, GuardPhase.TRACKING), ("3-4", "1"))
    warned = _transition(
        2,
        Decision.WARNED if warns else Decision.WOULD_WARN,
        (GuardPhase.TRACKING, GuardPhase.WARNED),
        ("8+", "2"),
    )
    if recovers:
        return Outcome.COMPLETED, 2, (tracked, warned)
    stops = mode is Mode.ENFORCE
    stop = _transition(
        3,
        Decision.STOPPED if stops else Decision.WOULD_STOP,
        (GuardPhase.WARNED, GuardPhase.LATCHED),
        ("8+", "3+"),
    )
    if stops:
        return Outcome.GUARD_STOPPED, 0, (tracked, warned, stop)
    outcome = Outcome.COMPLETED if finishes < _FINISHES_ANYWAY else Outcome.FAILED
    return outcome, 9, (tracked, warned, stop)


def _transition(
    sequence: int,
    decision: Decision,
    phases: tuple[GuardPhase, GuardPhase],
    buckets: tuple[str, str],
) -> Transition:
    return Transition(4.0 * sequence, sequence, decision, *phases, *buckets)


@dataclass(frozen=True, slots=True)
class SimulatedEvent:
    """One telemetry event of a prompt, this long after midnight UTC of the prompt's day."""

    at_s: float
    event_name: str
    attributes: Attributes


def simulated_events(prompt: Prompt, *, mode: Mode, assignment_id: str) -> Iterator[SimulatedEvent]:
    """Yield the events that a host sends for a prompt, in the terms of telemetry contract 1."""
    common: Attributes = {
        contract.PROMPT_ID: prompt.prompt_id,
        contract.ASSIGNMENT_ID: assignment_id,
    }
    start, end = prompt.start_s, prompt.start_s + prompt.duration_s
    route: Attributes = {contract.ROUTE: "interactive_foreground"}
    yield SimulatedEvent(start, contract.PROMPT_START, {**common, **route})
    for transition in prompt.transitions:
        attributes = {**common, **route, **_transition_attributes(transition, mode)}
        yield SimulatedEvent(start + transition.offset_s, contract.TRANSITION, attributes)
    if prompt.ended_by is not None:
        yield SimulatedEvent(
            end, contract.LOOP_DETECTED, {**common, **_loop_attributes(prompt.ended_by)}
        )
    yield SimulatedEvent(end, contract.PROMPT_END, {**common, **_end_attributes(prompt)})
    if prompt.disrupted_after_s is not None:
        kind: Attributes = {
            contract.DISRUPTION_KIND: "retry",
            contract.DISRUPTION_OFFSET: prompt.disrupted_after_s,
        }
        at = end + prompt.disrupted_after_s
        yield SimulatedEvent(at, contract.DISRUPTION, {**common, **kind})


def _transition_attributes(transition: Transition, mode: Mode) -> Attributes:
    return {
        contract.GUARD: GUARD,
        contract.MODE: mode.value,
        contract.SEQUENCE: transition.sequence,
        contract.ORDINAL: 1,
        contract.PHASE_FROM: transition.phase_from.value,
        contract.PHASE_TO: transition.phase_to.value,
        contract.DECISION: transition.decision.value,
        contract.FAILURE_BUCKET: transition.failures,
        contract.BATCH_BUCKET: transition.batches,
        contract.BATCH_COMPLETE: True,
        contract.TOOL_TYPE: "native",
        contract.TERMINAL_STATUS: "error",
        contract.EXECUTION_STATUS: "error",
        contract.ERROR_TYPE: "tool_timeout",
    }


def _loop_attributes(loop: LoopType) -> Attributes:
    guard = GUARD_OF_LOOP.get(loop)
    return {contract.LOOP_TYPE: loop.value, **({} if guard is None else {contract.GUARD: guard})}


def _end_attributes(prompt: Prompt) -> Attributes:
    return {
        contract.OUTCOME: prompt.outcome.value,
        contract.DURATION: prompt.duration_s,
        contract.TURNS: prompt.turns,
        contract.TOOL_CALLS: prompt.tool_calls,
        contract.TRANSITIONS: len(prompt.transitions),
        contract.INPUT_TOKENS: prompt.input_tokens,
        contract.OUTPUT_TOKENS: prompt.output_tokens,
        contract.CALLS_AFTER_WOULD_STOP: prompt.calls_after_would_stop,
    }
