"""Pipeline limits: the host's own limits, delayed stops, and the settings a new start keeps."""

import pytest

from guardwave.reducer.guards.identical_call import Budget
from guardwave.reducer.guards.side_effect import Action, Ladder
from guardwave.reducer.pipeline import GUARDS, Limits, Pipeline, dump, restore
from guardwave.reducer.vocabulary import Decision, LoopType, Mode, Route
from tests.support.guards.pipelines import SENDS, Session, actions, ask, every

SEND = {"declaration": SENDS, "to": "ann"}
SPOKEN = [
    pytest.param({"has_external_input": True}, id="external input"),
    pytest.param({"has_queued_prompt": True}, id="a queued prompt"),
    pytest.param({"reliable": False}, id="unreliable input"),
]


def invalid(session, *ids, **boundary):
    """Have these calls fail for their parameters, in one batch."""
    step = session.propose(*(ask(call_id, n=call_id) for call_id in ids))
    return session.settle(step.dispositions, "invalid", **boundary)


@pytest.mark.parametrize("mode", Mode)
def test_the_hosts_own_limits_hold_in_every_mode(mode):
    wrong = Session(every(mode))
    invalid(wrong, "a", "b")
    assert invalid(wrong, "c").stop.loop is LoopType.INVALID_TOOL_PARAMS
    many = Session(every(mode), limits=Limits(total_calls=1))
    assert many.propose(ask("a", n=1), ask("b", n=2)).stop.loop is LoopType.TOTAL_TOOL_CALLS
    reserve = Session(every(mode)).turn(budget=Budget.RESERVE).turn
    assert reserve.cause == "budget"


def test_a_limit_of_none_is_switched_off():
    session = Session(every(Mode.OFF), limits=Limits(invalid_parameters=None, total_calls=None))
    for row in range(5):
        assert invalid(session, *(f"{row}-{at}" for at in range(40))).stop is None
    assert session.state.total.count == 200
    session.prompt(every(Mode.OFF))
    assert (session.state.invalid.limit, session.state.total.limit) == (None, None)


def test_the_limits_are_the_hosts_and_outlive_a_prompt():
    limits = Limits(invalid_parameters=5, max_evidence_resets=2)
    session = Session(limits=limits)
    session.prompt()
    assert session.state.invalid.limit == 5
    assert session.state.identical.max_evidence_resets == 2


def test_one_batch_of_wrong_calls_stops_nobody():
    session = Session()
    assert invalid(session, *"abcd").stop is None
    assert invalid(session, "e").stop.loop is LoopType.INVALID_TOOL_PARAMS


@pytest.mark.parametrize("boundary", SPOKEN)
def test_input_of_a_person_holds_back_the_stop_of_invalid_parameters(boundary):
    session = Session()
    invalid(session, "a", "b")
    step = invalid(session, "c", **boundary)
    assert (step.stop, step.state.stopped_by, step.state.invalid.count) == (None, None, 0)
    assert session.turn().turn is not None


@pytest.mark.parametrize("boundary", SPOKEN)
def test_input_of_a_person_holds_back_the_stop_of_a_blocked_side_effect(boundary):
    session = Session(limits=Limits(ladder=Ladder(Action.BLOCK)))
    session.round(ask("s1", "send", **SEND))
    step = session.propose(ask("s2", "send", **SEND))
    assert actions(step) == ["answer"]
    done = session.settle(step.dispositions, **boundary)
    assert (done.stop, done.state.stopped_by, done.state.is_blocked) == (None, None, False)
    assert session.turn().turn is not None
    again = session.propose(ask("s3", "send", **SEND))
    assert session.settle(again.dispositions).stop.loop is LoopType.SIDE_EFFECT_DUPLICATE


def test_an_unknown_end_of_input_reaches_the_repeated_failure_guard_beside_a_block():
    session = Session(limits=Limits(ladder=Ladder(Action.BLOCK)))
    session.round(ask("s1", "send", **SEND))
    step = session.propose(ask("s2", "send", **SEND))
    done = session.settle(step.dispositions, reliable=False)
    assert [transition.decision for transition in done.transitions] == [Decision.RESET]
    assert done.state.repeated.is_enforcement_disabled


LIMITS = Limits(
    Ladder(Action.WARN),
    "~",
    "made_",
    identical_threshold=7,
    total_calls=9,
    invalid_parameters=4,
    max_evidence_resets=1,
)


def settings_of(state: Pipeline) -> Limits:
    return Limits(
        state.side_effect.ladder,
        state.duplicate.names.suffix,
        state.duplicate.names.generated_prefix,
        identical_threshold=state.identical.threshold,
        total_calls=state.total.limit,
        invalid_parameters=state.invalid.limit,
        max_evidence_resets=state.identical.max_evidence_resets,
    )


def guards_of(state: Pipeline):
    return dict(
        zip(
            GUARDS,
            (state.duplicate, state.identical, state.side_effect, state.repeated),
            strict=True,
        )
    )


def part_of(document, name):
    """Return the snapshot of one guard in that of the pipeline."""
    return document[name]


MIXED = dict(zip(GUARDS, [Mode.ENFORCE, Mode.OFF, Mode.WARN, Mode.SHADOW], strict=True))


def test_a_snapshot_of_the_future_starts_anew_in_the_modes_that_can_be_read():
    document = {**dump(Pipeline.start(MIXED, limits=LIMITS)), "schema": 2}
    found = restore(document, limits=LIMITS)
    assert {name: state.mode for name, state in guards_of(found).items()} == MIXED
    assert all(state.is_enforcement_disabled for state in guards_of(found).values())
    assert settings_of(found) == LIMITS
    assert settings_of(restore(document)) == Limits()


def test_an_empty_snapshot_of_the_future_starts_anew_in_shadow():
    found = restore({"guard": "pipeline", "schema": 2, "duplicate": 7})
    assert {state.mode for state in guards_of(found).values()} == {Mode.SHADOW}


@pytest.mark.parametrize("route", [route for route in Route if route != "interactive_foreground"])
@pytest.mark.parametrize("part", [None, "duplicate", "identical", "side_effect", "repeated"])
def test_an_excluded_route_stays_off_in_a_new_start(route, part):
    document = dict(dump(Pipeline.start(every(Mode.OFF), route=route)))
    for name in ("duplicate", "identical", "side_effect", "repeated"):
        newer = {"schema": 2} if name == part else {}
        document[name] = {**part_of(document, name), "mode": "enforce" if newer else "off", **newer}
    if part is None:
        document["schema"] = 2
    found = guards_of(restore(document))
    assert {state.mode for state in found.values()} == {Mode.OFF}
    assert {state.route for state in found.values()} == {route}


@pytest.mark.parametrize(
    ("part", "guard"),
    list(zip(("duplicate", "identical", "side_effect", "repeated"), GUARDS, strict=True)),
)
def test_one_part_of_a_newer_schema_starts_anew_with_the_given_settings(part, guard):
    session = Session(MIXED, limits=LIMITS)
    session.round(ask("a", n=1))
    document = dict(dump(session.state))
    document[part] = {**part_of(document, part), "schema": 2}
    found = restore(document, limits=LIMITS)
    assert settings_of(found) == LIMITS
    for name, state in guards_of(found).items():
        assert state.mode is MIXED[name]
        assert state.is_enforcement_disabled is (name == guard)
        if name != guard:
            assert state == guards_of(session.state)[name]
    assert found.total == session.state.total


@pytest.mark.parametrize("number", [None, 6])
@pytest.mark.parametrize("part", ["invalid", "total"])
def test_a_limit_of_a_newer_schema_starts_anew_with_the_hosts_setting(part, number):
    document = dict(dump(Pipeline.start({}, limits=LIMITS)))
    document[part] = {**part_of(document, part), "schema": 2}
    given = Limits(invalid_parameters=number, total_calls=number)
    found = {"invalid": restore(document, limits=given).invalid.limit}
    found["total"] = restore(document, limits=given).total.limit
    assert found == {"invalid": 4, "total": 9, part: number}


def test_the_settings_of_a_snapshot_outrank_those_given_to_restore():
    document = dump(Pipeline.start(MIXED, limits=LIMITS))
    assert settings_of(restore(document, limits=Limits())) == LIMITS
