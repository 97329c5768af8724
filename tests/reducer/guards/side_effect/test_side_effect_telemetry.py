"""Side-effect telemetry: phases, ordinals and buckets of the guard's decisions."""

import pytest

from guardwave.reducer.guards.side_effect import (
    GUARD,
    Action,
    PromptStarted,
    Scope,
    SideEffectStep,
    ToolDeclaration,
    Verdict,
)
from guardwave.reducer.guards.side_effect.rungs import advance
from guardwave.reducer.guards.side_effect.state import Mark
from guardwave.reducer.guards.transition import FailureBucket, Transition
from guardwave.reducer.vocabulary import Decision, GuardPhase, Mode, Route
from tests.support.guards.side_effects import ERROR, Host, transition_words

IDLE, TRACKING, WARNED, LATCHED = GuardPhase
OTHER = {"order": "9"}


def test_the_first_success_is_tracked_with_all_that_telemetry_carries():
    host = Host()
    assert host.propose("c1").transitions == ()
    (transition,) = host.settle("c1").transitions
    assert transition == Transition(
        guard="side_effect_duplicate",
        route=Route.INTERACTIVE_FOREGROUND,
        mode=Mode.ENFORCE,
        phase_from=IDLE,
        phase_to=TRACKING,
        decision=Decision.TRACKED,
        failure_count=FailureBucket.NONE,
        candidate_ordinal=1,
    )
    assert GUARD == "side_effect_duplicate"


@pytest.mark.parametrize(
    ("declaration", "action"),
    [
        pytest.param(ToolDeclaration(side_effect=False), Action.SUSPEND, id="no side effect"),
        pytest.param(ToolDeclaration(), Action.OFF, id="the rung off"),
    ],
)
def test_a_call_that_the_guard_leaves_alone_is_not_tracked(declaration, action):
    host = Host(action=action)
    host.propose("c1", declaration=declaration)
    step = host.settle("c1")
    assert (step.transitions, step.record) == ((), "succeeded")
    assert host.guard.tracks == {}


def test_a_failure_is_not_reported():
    host = Host()
    host.propose("c1")
    assert host.settle("c1", status=ERROR).transitions == ()


def test_each_identity_has_its_ordinal_and_its_repeats():
    host = Host(action=Action.WARN)
    host.run("c1")
    host.run("d1", args=OTHER)
    found = []
    for number in range(8):
        (transition,) = host.run(f"c{number + 2}").transitions
        found.append((transition.candidate_ordinal, transition.failure_count))
    assert found == [
        (1, bucket) for bucket in ["1-2", "1-2", "3-4", "3-4", "5-7", "5-7", "5-7", "8+"]
    ]
    (transition,) = host.run("d2", args=OTHER).transitions
    assert (transition.candidate_ordinal, transition.failure_count) == (2, FailureBucket.FEW)


def test_new_work_after_the_ttl_is_a_new_candidate():
    host = Host(action=Action.BLOCK, ttl_ms=100)
    host.run("c1")
    assert transition_words(host.run("c2")) == [(TRACKING, LATCHED, Decision.STOPPED)]
    host.propose("c3", at=101)
    (transition,) = host.settle("c3", at=101).transitions
    assert (transition.phase_from, transition.phase_to) == (IDLE, TRACKING)
    assert (transition.candidate_ordinal, transition.failure_count) == (2, FailureBucket.NONE)
    (transition,) = host.run("d1", args=OTHER, at=101) and host.run("d2", args=OTHER, at=101)[2]
    assert transition.candidate_ordinal == 3


def test_ordinals_start_again_in_each_request():
    host = Host(action=Action.WARN, scope=Scope.THREAD)
    host.run("c1", thread="t")
    host.run("d1", thread="t", args=OTHER)
    host.take(PromptStarted(Mode.ENFORCE))
    (transition,) = host.run("d2", thread="t", request="r2", args=OTHER).transitions
    assert (transition.candidate_ordinal, transition.phase_from) == (1, IDLE)


def test_a_twin_that_was_met_before_the_first_success_has_taken_the_phase_further():
    host = Host()
    host.propose("c1")
    assert transition_words(host.propose("c2")) == [(IDLE, WARNED, Decision.SUSPENDED)]
    step = host.settle("c1")
    assert transition_words(step) == [(WARNED, WARNED, Decision.TRACKED)]
    assert step.transitions[0].candidate_ordinal == 1


def test_a_second_success_of_the_same_work_is_no_news():
    host = Host(action=Action.WARN)
    host.run("c1")
    host.propose("c2")
    assert host.settle("c2").transitions == ()


def test_every_block_is_reported_and_the_phase_stays_latched():
    host = Host(action=Action.BLOCK)
    host.run("c1")
    host.run("c2")
    assert transition_words(host.run("c3")) == [(LATCHED, LATCHED, Decision.STOPPED)]


def test_each_call_that_a_refusal_denies_is_reported():
    host = Host()
    host.run("c1")
    host.run("c2")
    host.run("c3")
    step = host.answer("c2", False)
    assert transition_words(step) == [
        (WARNED, LATCHED, Decision.STOPPED),
        (LATCHED, LATCHED, Decision.STOPPED),
    ]
    assert {transition.failure_count for transition in step.transitions} == {FailureBucket.FEW}
    assert {transition.candidate_ordinal for transition in step.transitions} == {1}


def test_disabled_enforcement_reports_the_mode_it_was_given():
    host = Host(action=Action.BLOCK)
    host.guard = type(host.guard)(
        Mode.ENFORCE, ladder=host.guard.ladder, is_enforcement_disabled=True
    )
    host.run("c1")
    step = host.run("c2")
    assert transition_words(step) == [
        (TRACKING, WARNED, Decision.WARNED),
        (WARNED, LATCHED, Decision.WOULD_STOP),
    ]
    assert {transition.mode for transition in step.transitions} == {Mode.ENFORCE}
    assert step.incident is not None


def test_a_new_prompt_ends_a_disabled_enforcement_and_forgets_nothing():
    host = Host(action=Action.BLOCK)
    host.run("c1")
    before = host.guard
    host.guard = before._replace(is_enforcement_disabled=True)
    step = host.take(PromptStarted(Mode.ENFORCE))
    assert step == SideEffectStep(before)
    assert host.run("c2").verdict is Verdict.BLOCK


@pytest.mark.parametrize("before", GuardPhase)
@pytest.mark.parametrize("phase", [WARNED, LATCHED])
def test_a_phase_is_never_taken_back(before, phase):
    order = list(GuardPhase)
    after = advance(Mark(3, before, 4), phase)
    assert after == Mark(3, order[max(order.index(before), order.index(phase))], 5)
