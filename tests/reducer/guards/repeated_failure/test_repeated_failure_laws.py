from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from guardwave.reducer.guards.repeated_failure import (
    FailureAction,
    PromptStarted,
    RepeatedFailure,
    reduce,
)
from guardwave.reducer.vocabulary import Decision, GuardPhase, Mode
from tests.support.guards.batches import batches, histories, observations, states


def steps(history, mode):
    state, found = RepeatedFailure.start(mode), []
    for event in history:
        found.append(reduce(state, event))
        state = found[-1].state
    return found


@given(states, batches, st.randoms(use_true_random=False))
def test_the_order_of_observations_within_a_batch_does_not_matter(state, event, random):
    shuffled = list(event.observations)
    random.shuffle(shuffled)
    assert reduce(state, replace(event, observations=tuple(shuffled))) == reduce(state, event)


@given(states, batches, st.lists(observations, max_size=4))
def test_duplicates_never_change_anything(state, event, more):
    copies = tuple(replace(call, is_provider_duplicate=True) for call in more)
    alone = replace(event, observations=copies, is_complete=True, is_input_reliable=True)
    alone = replace(alone, has_external_input=False, has_queued_prompt=False)
    assert reduce(state, alone) == (state, (), FailureAction.NONE)
    mixed = replace(event, observations=(*event.observations, *copies))
    assert reduce(state, mixed) == reduce(state, event)


@given(states, batches)
def test_a_latched_guard_is_silent(state, event):
    latched = state._replace(phase=GuardPhase.LATCHED)
    assert reduce(latched, event) == (latched, (), FailureAction.NONE)


@given(states, batches)
def test_disabled_enforcement_never_stops(state, event):
    step = reduce(state._replace(is_enforcement_disabled=True), event)
    assert step.action is not FailureAction.STOP
    assert Decision.STOPPED not in [transition.decision for transition in step.transitions]
    assert step.state.is_enforcement_disabled


@given(histories)
def test_shadow_warn_and_enforce_agree_on_every_state(history):
    enforced = steps(history, Mode.ENFORCE)
    for mode in (Mode.SHADOW, Mode.WARN):
        lower = steps(history, mode)
        assert [step.state._replace(mode=Mode.ENFORCE) for step in lower] == [
            step.state for step in enforced
        ]
        assert [len(step.transitions) for step in lower] == [
            len(step.transitions) for step in enforced
        ]


@given(histories)
def test_shadow_and_off_ask_nothing_of_the_host(history):
    assert {step.action for step in steps(history, Mode.SHADOW)} <= {FailureAction.NONE}
    assert {step[1:] for step in steps(history, Mode.OFF)} <= {((), FailureAction.NONE)}


@given(histories)
def test_a_stop_follows_a_reminder_of_the_same_streak(history):
    reminded: set[int] = set()
    for event, step in zip(history, steps(history, Mode.ENFORCE), strict=True):
        if isinstance(event, PromptStarted):
            reminded.clear()
        if step.action is FailureAction.REMIND:
            assert step.state.candidate_ordinal not in reminded
            reminded.add(step.state.candidate_ordinal)
        if step.action is FailureAction.STOP:
            assert step.state.candidate_ordinal in reminded


ACTIONS = {Decision.WARNED: FailureAction.REMIND, Decision.STOPPED: FailureAction.STOP}


@given(states, batches)
def test_an_action_and_its_decision_go_together(state, event):
    step = reduce(state, event)
    assert len(step.transitions) <= 1
    expected = [
        ACTIONS.get(transition.decision, FailureAction.NONE) for transition in step.transitions
    ]
    assert step.action == (expected[0] if expected else FailureAction.NONE)


@given(states, batches)
def test_the_phases_before_and_after_are_reported(state, event):
    step = reduce(state, event)
    for transition in step.transitions:
        assert (transition.phase_from, transition.phase_to) == (state.phase, step.state.phase)
        assert (transition.mode, transition.route) == (state.mode, state.route)


@given(states, batches)
def test_ordinals_only_grow_within_a_prompt(state, event):
    step = reduce(state, event)
    assert state.last_ordinal <= step.state.last_ordinal <= state.last_ordinal + 1
    assert step.state.candidate_ordinal in {0, step.state.last_ordinal}


@given(states, batches)
def test_a_silent_step_changes_nothing(state, event):
    step = reduce(state, event)
    assert bool(step.transitions) or step.state == state
