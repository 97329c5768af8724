import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardwave.reducer.guards.identical_call import (
    BatchSettled,
    CallsProposed,
    Failure,
    IdenticalCall,
    RunAction,
    RunStarted,
    TurnMode,
    TurnStarted,
    dump,
    reduce,
    restore,
)
from guardwave.reducer.vocabulary import GuardPhase, Mode, Route
from tests.strategies import modes
from tests.support.guards.calls import call, identical_events, identical_runs, run_of

starts = st.builds(
    IdenticalCall.start,
    modes,
    route=st.sampled_from(Route),
    threshold=st.integers(2, 4),
    max_evidence_resets=st.integers(0, 2),
)
FULL = run_of(
    IdenticalCall.start(Mode.WARN),
    [CallsProposed((call(),)), BatchSettled({"a": "p"}), TurnStarted(), CallsProposed((call(),))],
)[-1].state


def state_after(state, events):
    return run_of(state, events)[-1].state if events else state


@given(starts, identical_runs, identical_events)
def test_restoring_a_dump_at_any_step_changes_nothing(start, events, event):
    state = state_after(start, events)
    restored = restore(json.loads(json.dumps(dump(state))))
    assert restored == state
    assert reduce(restored, event) == reduce(state, event)


@given(starts, identical_runs, identical_events)
def test_a_latched_guard_is_silent(start, events, event):
    state = state_after(start, events)._replace(phase=GuardPhase.LATCHED, failure=None)
    # In enforce a latched run has failed; only what a host's own budget asks for is left.
    state = state._replace(mode=state.mode.at_most(Mode.WARN), turn=None)
    assert reduce(state, event).transitions == ()


@given(starts, identical_runs)
def test_a_disabled_enforcement_never_finds_a_loop(start, events):
    state = start._replace(is_enforcement_disabled=True)
    in_one_run = [event for event in events if not isinstance(event, RunStarted)]
    for step in run_of(state, in_one_run):
        assert step.failure in {None, Failure.BUDGET_EXCEEDED}
        assert step.loop_type is None


@given(identical_runs)
def test_below_enforce_only_the_hosts_budget_changes_a_turn_or_a_batch(events):
    off = run_of(IdenticalCall.start(Mode.OFF, threshold=2), events)
    shadow = run_of(IdenticalCall.start(Mode.SHADOW, threshold=2), events)
    warn = run_of(IdenticalCall.start(Mode.WARN, threshold=2), events)
    for ours, theirs, warned in zip(shadow, off, warn, strict=True):
        assert (ours.action, ours.turn, ours.failure) == (
            theirs.action,
            theirs.turn,
            theirs.failure,
        )
        assert warned.action is ours.action
        assert warned.state._replace(mode=Mode.SHADOW, turn=None) == ours.state._replace(turn=None)
        assert len(warned.transitions) == len(ours.transitions)


@given(identical_runs)
def test_enforce_goes_with_warn_until_it_fails(events):
    warn = run_of(IdenticalCall.start(Mode.WARN, threshold=3), events)
    enforce = run_of(IdenticalCall.start(Mode.ENFORCE, threshold=3), events)
    for ours, theirs in zip(enforce, warn, strict=True):
        if ours.action is RunAction.FAIL:
            break
        assert ours.state._replace(mode=Mode.WARN, turn=None) == theirs.state._replace(turn=None)


@given(starts, identical_runs)
def test_the_leader_has_the_highest_count(start, events):
    tallies = state_after(start, events).tallies
    counts = [tally.times for tally in tallies.by_call.values()]
    assert tallies.leading.times == max(counts, default=0)
    assert tallies.resets_used <= start.max_evidence_resets


@given(starts, identical_runs)
def test_transitions_join_phase_to_phase(start, events):
    state = start
    for event in events:
        step = reduce(state, event)
        assert len(step.transitions) <= 1
        for transition in step.transitions:
            assert (transition.phase_from, transition.phase_to) == (state.phase, step.state.phase)
        if not step.transitions and not isinstance(event, RunStarted):
            assert step.state.phase is state.phase
        state = step.state


@given(starts.filter(lambda start: start.mode is Mode.ENFORCE), identical_runs)
def test_no_batch_of_a_synthesis_turn_runs(start, events):
    state = start
    for event in events:
        step = reduce(state, event)
        was_synthesis = state.turn is not None and state.turn.mode is TurnMode.SYNTHESIS_ONLY
        if was_synthesis and isinstance(event, CallsProposed):
            assert step.action is not RunAction.DISPATCH
            assert step.state.tallies == state.tallies
        state = step.state


@pytest.mark.parametrize("field", sorted(dump(FULL)))
def test_a_snapshot_without_a_field_is_refused_by_its_name(field):
    document = dict(dump(FULL))
    del document[field]
    with pytest.raises(ValueError, match=f"{field} must be there"):
        restore(document)


@pytest.mark.parametrize(
    ("field", "damage"),
    [
        pytest.param("mode", "loud", id="an unknown mode"),
        pytest.param("route", "pigeon", id="an unknown route"),
        pytest.param("threshold", 1, id="a threshold of one"),
        pytest.param("max_evidence_resets", -1, id="a negative cap"),
        pytest.param("tallies", {"x": [1, None]}, id="a tally that is too short"),
        pytest.param("tallies", {"x": 7}, id="a tally that is a number"),
        pytest.param("tallies", {"x": [True, None, 0]}, id="true for a count"),
        pytest.param("tallies", {"x": [1, 7, 0]}, id="evidence of no text"),
        pytest.param("leader", "unheard", id="a leader that was not counted"),
        pytest.param("leader", None, id="counts without a leader"),
        pytest.param("resets_used", None, id="null for a number"),
        pytest.param("last_ordinal", -1, id="a negative ordinal"),
        pytest.param("turn_mode", "slow", id="an unknown turn"),
        pytest.param("pending", [["a"]], id="a pending call without a fingerprint"),
        pytest.param("pending", ["a"], id="a pending call that is a text"),
        pytest.param("pending", [["a", "unheard"]], id="a pending call that was not counted"),
        pytest.param("failure", "rain", id="an unknown failure"),
        pytest.param("is_finished", 0, id="0 for false"),
        pytest.param("phase", "asleep", id="an unknown phase"),
        pytest.param("is_enforcement_disabled", 1, id="1 for true"),
    ],
)
def test_a_damaged_snapshot_is_refused_by_the_field(field, damage):
    with pytest.raises(ValueError, match=f"{field} must be"):
        restore({**dump(FULL), field: damage})


def test_a_leader_without_counts_is_refused():
    empty = dump(IdenticalCall.start(Mode.WARN))
    with pytest.raises(ValueError, match="leader must be"):
        restore({**empty, "leader": "x"})


def test_a_cause_without_words_is_refused():
    open_turn = dump(reduce(FULL, TurnStarted()).state)
    with pytest.raises(ValueError, match="turn_cause must be"):
        restore({**open_turn, "turn_cause": "boredom"})


def test_a_snapshot_of_the_future_starts_anew_and_never_stops_this_run():
    document = {"guard": "identical_call", "schema": 2, "mode": "enforce", "route": "cron"}
    start = IdenticalCall.start(Mode.ENFORCE, route=Route.CRON)
    assert restore(document) == start._replace(is_enforcement_disabled=True)
    assert restore({"guard": "identical_call", "schema": 2}).mode is Mode.SHADOW


def test_a_dump_holds_digests_and_neither_arguments_nor_evidence_nor_the_note():
    state = run_of(
        IdenticalCall.start(Mode.ENFORCE, threshold=2),
        [CallsProposed((call(command="sesame"),)), BatchSettled({"a": "page"}), TurnStarted()],
    )[-1].state
    text = json.dumps(dump(state))
    assert state.turn is not None
    assert state.turn.note is not None
    for kept_out in ("sesame", "page", state.turn.note):
        assert kept_out not in text
