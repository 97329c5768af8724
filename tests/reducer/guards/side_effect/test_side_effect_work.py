"""Working copy: its changes, and the original state that stays as it was."""

import pytest

from guardwave.reducer.guards.side_effect import (
    Action,
    FirstUse,
    Incident,
    Ladder,
    Layer,
    Scope,
    Verdict,
)
from guardwave.reducer.guards.side_effect.ladder import UNDECLARED, ToolDeclaration
from guardwave.reducer.guards.side_effect.proposal import Case, batch_context, judge
from guardwave.reducer.guards.side_effect.reduction import settle
from guardwave.reducer.guards.side_effect.request import WorkingCopy
from guardwave.reducer.guards.side_effect.state import (
    NEW_TRACK,
    CallRecord,
    CallStatus,
    Mark,
    RequestLog,
    SideEffectDuplicate,
    Track,
    identity_of,
    place_of,
)
from guardwave.reducer.vocabulary import ExecutionStatus, GuardPhase, Mode, Route

HARMLESS = ToolDeclaration(side_effect=False)
KEYED = ToolDeclaration(idempotency_key_fields=("order",))
USE = FirstUse("c1", "r1", 5)
HERE = identity_of(place_of(Ladder(), "r1", None), Layer.ARGUMENTS, "d")
IN_THREAD = identity_of(place_of(Ladder(scope=Scope.THREAD), "r1", "t"), Layer.ARGUMENTS, "d")
BEFORE = SideEffectDuplicate(
    Mode.ENFORCE,
    tracks={HERE: Track(USE)},
    requests={"r1": RequestLog({}, {}, {HERE: Mark(3)}, 4)},
)

THREADED = BEFORE._replace(ladder=Ladder(scope=Scope.THREAD))


def test_work_that_changes_nothing_gives_the_state_it_was_made_from():
    assert WorkingCopy(BEFORE, "r1").done() is BEFORE
    assert WorkingCopy(BEFORE, "r2").done() is BEFORE


@pytest.mark.parametrize(
    ("change", "log"),
    [
        pytest.param(
            lambda work: work.record("c", CallRecord(CallStatus.RUNNING)),
            RequestLog({"c": CallRecord(CallStatus.RUNNING)}, {}, {HERE: Mark(3)}, 4),
            id="a record",
        ),
        pytest.param(
            lambda work: work.refuse([HERE], USE),
            RequestLog({}, {HERE: USE}, {HERE: Mark(3)}, 4),
            id="a refusal",
        ),
        pytest.param(
            lambda work: work.mark(HERE, Mark(9, GuardPhase.WARNED)),
            RequestLog({}, {}, {HERE: Mark(9, GuardPhase.WARNED)}, 10),
            id="a mark with a later ordinal",
        ),
        pytest.param(
            lambda work: work.mark(HERE, Mark(1)),
            RequestLog({}, {}, {HERE: Mark(1)}, 4),
            id="a mark with an earlier ordinal",
        ),
        pytest.param(
            lambda work: work.unmark(HERE), RequestLog({}, {}, {}, 4), id="a mark taken away"
        ),
        pytest.param(
            lambda work: work.unmark(HERE + "0"),
            RequestLog({}, {}, {HERE: Mark(3)}, 4),
            id="a mark that was not there",
        ),
    ],
)
def test_each_change_alone_is_kept_and_only_in_the_request(change, log):
    work = WorkingCopy(BEFORE, "r1")
    change(work)
    assert work.done() == BEFORE._replace(requests={"r1": log})
    assert BEFORE.requests == {"r1": RequestLog({}, {}, {HERE: Mark(3)}, 4)}


@pytest.mark.parametrize(
    ("identity", "track", "tracks"),
    [
        pytest.param(HERE, NEW_TRACK, {}, id="one with nothing in it is dropped"),
        pytest.param("x", NEW_TRACK, {HERE: Track(USE)}, id="one that was never there"),
        pytest.param(
            "x", Track(USE), {HERE: Track(USE), "x": Track(USE)}, id="one that has a first run"
        ),
    ],
)
def test_a_track_is_kept_as_long_as_something_is_in_it(identity, track, tracks):
    work = WorkingCopy(BEFORE, "r1")
    work.follow(identity, track)
    assert work.track_of(identity) == track
    assert work.done().tracks == tracks
    assert BEFORE.tracks == {HERE: Track(USE)}


@pytest.mark.parametrize(
    ("action", "call_id", "declaration", "verdict"),
    [
        pytest.param("block", "new", UNDECLARED, Verdict.BLOCK, id="blocked"),
        pytest.param("suspend", "new", UNDECLARED, Verdict.SUSPEND, id="suspended"),
        pytest.param("reflect", "new", UNDECLARED, Verdict.REFLECT, id="nudged"),
        pytest.param("warn", "new", UNDECLARED, Verdict.EXECUTE_WITH_INCIDENT, id="warned"),
        pytest.param("block", "done", UNDECLARED, Verdict.REPLAY, id="finished"),
        pytest.param("suspend", "asked", UNDECLARED, Verdict.SUSPEND, id="asked about"),
        pytest.param("block", "new", HARMLESS, Verdict.EXECUTE, id="harmless"),
        pytest.param("block", "new", KEYED, Verdict.EXEMPT, id="keyed"),
    ],
)
def test_a_verdict_leaves_the_state_before_its_batch_to_the_one_who_asks(
    action, call_id, declaration, verdict
):
    ladder = Ladder(Action(action))
    start = WorkingCopy(SideEffectDuplicate.start(Mode.ENFORCE, ladder=ladder), "r1")
    context = batch_context(ladder, "r1", 7, thread=None, channel=None)

    def judge_call(work, call_id, declaration=UNDECLARED):
        return judge(
            work, Case(context, call_id, "send", "d", declaration, False, None, None, None)
        )

    assert judge_call(start, "done").state is start.before
    assert settle(start, "done", ExecutionStatus.SUCCESS, 8).state is start.before
    if call_id == "asked":
        judge_call(start, "asked")
    work = WorkingCopy(start.done(), "r1")
    step = judge_call(work, call_id, declaration)
    assert step.verdict is verdict
    assert step.state is work.before
    if step.incident is not None:
        assert step.incident == Incident(step.incident.action, step.repeat)
        assert step.repeat.first.call_id == "done"


@pytest.mark.parametrize("status", [ExecutionStatus.SUCCESS, ExecutionStatus.ERROR, None])
@pytest.mark.parametrize("home", [HERE, None], ids=["followed", "not followed"])
def test_a_call_that_settles_leaves_the_state_before_it_to_the_one_who_asks(status, home):
    work = WorkingCopy(BEFORE, "r1")
    work.record("c", CallRecord(CallStatus.RUNNING, home))
    for call_id in ("c", "c", "unheard"):
        assert settle(work, call_id, status, 9).state is BEFORE


def test_a_batch_context_holds_place_time_thread_and_channel():
    context = batch_context(Ladder(scope=Scope.THREAD), "r1", 7, thread="t", channel="mail")
    place = place_of(Ladder(scope=Scope.THREAD), "r1", "t")
    assert (context.now_ms, context.thread, context.channel) == (7, "t", "mail")
    assert context.place == place


def test_a_refusal_in_a_thread_is_the_requests_own():
    work = WorkingCopy(THREADED, "r1")
    assert (work.refused_of(IN_THREAD), work.refused_of(HERE)) == (None, None)
    work.refuse([IN_THREAD], USE)
    assert work.refused == {HERE: USE}
    assert (work.refused_of(IN_THREAD), work.refused_of(HERE)) == (USE, USE)
    assert WorkingCopy(work.done(), "r2").refused_of(IN_THREAD) is None


def test_a_threads_identity_has_a_second_place_and_a_requests_has_none():
    work = WorkingCopy(THREADED, "r1")
    assert work.places_of(HERE) == (HERE,)
    assert work.places_of(IN_THREAD) == (IN_THREAD, HERE)


def test_a_state_that_names_no_route_is_of_the_foreground():
    assert BEFORE.route is Route.INTERACTIVE_FOREGROUND
