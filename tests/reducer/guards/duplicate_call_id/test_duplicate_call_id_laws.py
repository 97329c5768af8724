import gc
import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardwave.reducer.guards.duplicate_call_id import (
    BatchProposed,
    CallAction,
    DuplicateCallId,
    HistoryCall,
    HistorySeeded,
    PromptStarted,
    TurnOutcome,
    dump,
    reduce,
    restore,
)
from guardwave.reducer.guards.duplicate_call_id.state import BatchNaming, CallNames, LayeredIds
from guardwave.reducer.vocabulary import GuardPhase, Mode, Route
from tests.strategies import modes
from tests.support.guards.calls import batches, call, duplicate_sessions, session, unreadable

starts = st.builds(DuplicateCallId.start, modes, route=st.sampled_from(Route))


def state_after(state, events):
    return session(state, events)[-1].state if events else state


@given(starts, duplicate_sessions, batches)
def test_restoring_a_dump_at_any_step_changes_nothing(start, events, batch):
    state = state_after(start, events)
    restored = restore(json.loads(json.dumps(dump(state))))
    assert restored == state
    assert reduce(restored, batch) == reduce(state, batch)


@given(starts, duplicate_sessions, batches)
def test_a_latched_guard_is_silent(start, events, batch):
    state = state_after(start, events)._replace(phase=GuardPhase.LATCHED)
    step = reduce(state, batch)
    assert (step.transitions, step.loop_type) == ((), None)
    assert step.state.phase is GuardPhase.LATCHED or start.mode is Mode.OFF


@given(starts, duplicate_sessions, batches)
def test_a_disabled_enforcement_never_stops(start, events, batch):
    state = state_after(start, events)._replace(is_enforcement_disabled=True)
    step = reduce(state, batch)
    assert (step.is_breaker_open, step.turn_outcome) == (False, TurnOutcome.CONTINUE)
    assert CallAction.BATCH_DROPPED not in {verdict.action for verdict in step.verdicts}


@given(duplicate_sessions)
def test_shadow_and_warn_know_and_answer_the_same(events):
    shadow = session(DuplicateCallId.start(Mode.SHADOW), events)
    warn = session(DuplicateCallId.start(Mode.WARN), events)
    for ours, theirs in zip(shadow, warn, strict=True):
        assert ours.state._replace(mode=Mode.WARN) == theirs.state
        assert len(ours.transitions) == len(theirs.transitions)


@given(duplicate_sessions)
def test_enforce_goes_with_warn_until_its_breaker_opens(events):
    warn = session(DuplicateCallId.start(Mode.WARN), events)
    enforce = session(DuplicateCallId.start(Mode.ENFORCE), events)
    for ours, theirs in zip(enforce, warn, strict=True):
        if ours.is_breaker_open:
            assert ours.state.phase is theirs.state.phase is GuardPhase.LATCHED
            break
        assert ours.state._replace(mode=Mode.WARN) == theirs.state
        assert ours.verdicts == theirs.verdicts
        assert [transition.decision for transition in ours.transitions] == [
            transition.decision for transition in theirs.transitions
        ]


@given(starts.filter(lambda start: start.mode is not Mode.OFF), duplicate_sessions)
def test_no_name_is_given_twice_and_each_call_has_a_verdict(start, events):
    names: list[str] = []
    steps = session(start, events)
    for event, step in zip(events, steps, strict=True):
        if isinstance(event, BatchProposed):
            assert len(step.verdicts) == sum(map(len, event.responses))
        if start.mode is not Mode.SHADOW:
            names += [verdict.call_id for verdict in step.verdicts if verdict.call_id is not None]
    assert len(names) == len(set(names))


@given(starts, duplicate_sessions)
def test_transitions_join_phase_to_phase(start, events):
    state = start
    for event in events:
        step = reduce(state, event)
        phase = state.phase
        for transition in step.transitions:
            assert transition.phase_from is phase
            phase = transition.phase_to
        if not isinstance(event, PromptStarted | HistorySeeded):
            assert step.state.phase is phase
        state = step.state


@pytest.mark.parametrize("field", sorted(dump(DuplicateCallId.start(Mode.SHADOW))))
def test_a_snapshot_without_a_field_is_refused_by_its_name(field):
    document = dict(dump(DuplicateCallId.start(Mode.SHADOW)))
    del document[field]
    with pytest.raises(ValueError, match=f"{field} must be there"):
        restore(document)


@pytest.mark.parametrize(
    ("field", "damage"),
    [
        pytest.param("mode", "loud", id="an unknown mode"),
        pytest.param("route", "pigeon", id="an unknown route"),
        pytest.param("suffix", "", id="an empty suffix"),
        pytest.param("generated_prefix", "", id="an empty prefix"),
        pytest.param("ids", {"a": "ab"}, id="a short digest"),
        pytest.param("ids", {"a": 7}, id="a digest of no text"),
        pytest.param("ids", [], id="ids in a list"),
        pytest.param("answered", ["a", "a"], id="one answer twice"),
        pytest.param("answered", ["a", 7], id="an answered id of no text"),
        pytest.param("answered", ["unheard"], id="an answered id that is unknown"),
        pytest.param("last_generated", -1, id="a negative number"),
        pytest.param("phase", "asleep", id="an unknown phase"),
        pytest.param("is_enforcement_disabled", 1, id="1 for true"),
    ],
)
def test_a_damaged_snapshot_is_refused_by_the_field(field, damage):
    state = session(DuplicateCallId.start(Mode.SHADOW), [BatchProposed.of(call())])[-1].state
    with pytest.raises(ValueError, match=f"{field} must be"):
        restore({**dump(state), field: damage})


def test_a_damaged_suffix_number_is_refused_by_its_id():
    document = {**dump(DuplicateCallId.start(Mode.SHADOW)), "last_suffix": {"a": "2"}}
    with pytest.raises(ValueError, match="a must be a whole number"):
        restore(document)


def test_a_snapshot_of_the_future_starts_anew_and_never_stops_this_prompt():
    state = DuplicateCallId.start(Mode.ENFORCE, route=Route.CRON)
    document = {"guard": "duplicate_call_id", "schema": 2, "mode": "enforce", "route": "cron"}
    assert restore(document) == state._replace(is_enforcement_disabled=True)
    assert restore({"guard": "duplicate_call_id", "schema": 2}).mode is Mode.SHADOW


def test_a_dump_holds_digests_and_no_arguments():
    entries = (HistoryCall(call(command="sesame")), HistoryCall(unreadable("b")))
    state = reduce(DuplicateCallId.start(Mode.WARN), HistorySeeded(entries)).state
    document = dump(state)
    assert "sesame" not in json.dumps(document)
    assert document["ids"] == {"a": call(command="sesame").fingerprint, "b": ""}


def test_ten_thousand_ids_take_less_than_two_hundred_bytes_each():
    state = DuplicateCallId.start(Mode.ENFORCE)
    known = [call(command=str(at)) for at in range(2_500)]
    tracemalloc.start()
    try:
        for at, original in enumerate(known):
            # Each id is a text of its own, which nothing but the state keeps.
            four = (original._replace(call_id=f"call_{at:022d}-{n}") for n in range(4))
            state = reduce(state, BatchProposed(tuple((copy,) for copy in four))).state
        # A full collection gives back the freed tuples that the interpreter keeps at hand.
        gc.collect()
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(state.names.ids) == 10_000
    assert used / 10_000 <= 200


@given(st.lists(st.dictionaries(st.sampled_from("abcdef"), st.none() | st.binary(max_size=1))))
def test_layers_hold_what_one_dictionary_would(additions):
    layers = LayeredIds()
    flat: dict[str, bytes | None] = {}
    for added in additions:
        layers = layers.plus(dict(added))
        flat |= added
        assert layers == flat
        assert len(layers) == len(flat)
        assert all(layers[name] == digest for name, digest in flat.items())
    assert "z" not in layers
    with pytest.raises(KeyError):
        layers["z"]


def test_layers_grow_in_number_with_the_logarithm():
    layers = LayeredIds()
    for number in range(1_000):
        layers = layers.plus({str(number): None})
    assert len(layers._layers) <= 10
    assert repr(LayeredIds({"a": None})) == "LayeredIds({'a': None})"


def test_adding_to_layers_leaves_those_before_as_they_were():
    before = LayeredIds({"a": None, "b": None})
    after = before.plus({"c": b"1"}).plus({"a": b"2"})
    assert (dict(before), dict(after)) == (
        {"a": None, "b": None},
        {"a": b"2", "b": None, "c": b"1"},
    )
    assert before.plus({}) is before


def test_numbering_goes_on_where_it_was_without_searching_again():
    naming = BatchNaming(CallNames("~", "g"))
    assert [naming.take("a") for _ in range(3)] == ["a", "a~2", "a~3"]
    known = naming.done()
    assert (known.last_suffix, known.last_generated) == ({"a": 3}, 0)
    naming = BatchNaming(known)
    naming.reserve("a~4")
    naming.reserve("g1")
    assert (naming.take("a"), naming.take(None)) == ("a~5", "g2")
    assert (naming.done().last_suffix, naming.done().last_generated) == ({"a": 5}, 2)
    assert BatchNaming(naming.done()).take(None) == "g3"
