"""Example host under the other guards: replayed ids, repeated effects, endless calls."""

import json

import pytest

from examples.agent_host.messages import RequestedCall
from examples.agent_host.people import Permission
from examples.agent_host.scripts import call
from examples.agent_host.settings import GUARD_MODE, Settings, read_dotenv
from examples.agent_host.stub_model import ModelAnswer
from guardwave.control_plane.ingest.evidence.violations import broken_invariants
from guardwave.control_plane.ingest.model.records import Transition
from guardwave.reducer.guards.messages import (
    DUPLICATE_CALL_ANSWER,
    DUPLICATE_CALL_STOP,
    REPETITION_NOTE,
    SIDE_EFFECT_REFUSED,
)
from guardwave.reducer.pipeline import GUARDS, Limits
from guardwave.reducer.vocabulary import LoopType, Mode, Outcome
from tests.examples.hosts import DUPLICATE, IDENTICAL, SIDE_EFFECT, World, failing

DONE = ModelAnswer("I am done.")


def reads(call_id, page):
    """Return an answer that asks for one page."""
    return ModelAnswer("", (call(call_id, "fetch", url=f"http://up/{page}"),))


def sends(call_id, to="ann"):
    """Return an answer that asks to send something."""
    return ModelAnswer("", (call(call_id, "send", to=to),))


def test_ids_that_begin_anew_each_round_with_new_arguments_complete_every_round(world):
    world.play(*(reads("fetch_0", page) for page in range(8)), DONE)
    assert world.prompt().outcome is Outcome.COMPLETED
    assert [url for _, url in world.ran] == [f"http://up/{page}" for page in range(8)]
    assert world.answers() == ["A page."] * 8
    ids = [
        message["tool_call_id"]
        for message in world.model.requests[-1]["messages"]
        if message["role"] == "tool"
    ]
    assert len(set(ids)) == 8


def test_ids_that_begin_anew_with_equal_arguments_stop_visibly(world):
    world.play(*(reads("fetch_0", 1) for _ in range(5)))
    result = world.prompt()
    assert (result.outcome, result.stopped_by) == (
        Outcome.GUARD_STOPPED,
        LoopType.GLOBAL_TOOL_CALL_DUPLICATE,
    )
    assert len(world.ran) == 1
    assert world.answers() == ["A page.", DUPLICATE_CALL_ANSWER]
    assert world.person.shown == [DUPLICATE_CALL_STOP]
    assert world.decisions(DUPLICATE) == ["tracked", "warned", "stopped"]
    (end,) = world.events("agent.guard.prompt.end")
    assert end["agent.guard.prompt.tool_calls"] == 1
    (loop,) = world.events("agent.guard.loop_detected")
    assert loop["agent.guard.loop.type"] == "global_tool_call_duplicate"


def test_a_replayed_call_of_the_history_is_not_run_again_after_a_restart(world):
    world.play(reads("call_1", 1), DONE)
    world.prompt()
    before = world.door.events()
    world.restart()
    world.play(reads("call_1", 1), DONE)
    assert world.prompt("go on").outcome is Outcome.COMPLETED
    assert len(world.ran) == 1
    assert world.answers() == ["A page.", DUPLICATE_CALL_ANSWER]
    later = world.door.events()[len(before) :]
    new = [attributes for name, attributes in later if name.endswith("transition")]
    assert [event["agent.guard.decision"] for event in new] == ["warned"]


def test_reading_the_history_reports_and_counts_nothing(world):
    world.play(*(failing(turn) for turn in range(2)), DONE)
    world.prompt()
    count = len(world.events("agent.guard.transition"))
    world.restart()
    world.play(DONE)
    world.prompt("hello")
    assert len(world.events("agent.guard.transition")) == count


def test_parallel_siblings_all_settle_whatever_one_of_them_does(world):
    mixed = ModelAnswer(
        "",
        (
            call("a", "fetch", url="http://down/1"),
            call("b", "fetch", url="http://up/2"),
            call("c", "nothing_like_it"),
            call("d", "send", to="ann"),
        ),
    )
    world.play(mixed, DONE)
    assert world.prompt().outcome is Outcome.COMPLETED
    assert world.answers() == ["No answer in time.", "A page.", "There is no such tool.", "Sent."]
    executed = [
        (dict(point.labels)["execution.status"], point.value)
        for point in world.door.points().records
        if point.metric == "agent.guard.tool.executions" and point.guard == SIDE_EFFECT
    ]
    assert sorted(executed) == [("error", 1), ("success", 2)]


def test_a_call_that_a_person_does_not_permit_is_cancelled_and_no_failure(world):
    world.person.permits = lambda _: Permission.CANCELLED
    world.play(failing(0), ModelAnswer("", (call("g", "guarded"),)), failing(1), DONE)
    assert world.prompt().outcome is Outcome.COMPLETED
    assert world.decisions() == ["tracked", "reset", "tracked"]
    resets = [
        event.get("agent.guard.reset.reason") for event in world.events("agent.guard.transition")
    ]
    assert "cancelled" in resets
    assert "The user did not allow this call." in world.answers()


@pytest.mark.parametrize(("approves", "times"), [(True, 2), (False, 1)])
def test_a_person_decides_whether_work_is_done_once_more(world, approves, times):
    world.person.approves = approves
    world.play(sends("s1"), sends("s2"), DONE)
    assert world.prompt().outcome is Outcome.COMPLETED
    assert world.ran == [("send", "ann")] * times
    (question,) = world.person.questions
    assert "through terminal" in question
    assert (SIDE_EFFECT_REFUSED in world.answers()) is not approves


def test_a_refusal_is_remembered_for_the_prompt_and_not_beyond(world):
    world.person.approves = False
    world.play(sends("s1"), sends("s2"), sends("s3"), DONE)
    world.prompt()
    assert len(world.person.questions) == 1
    world.play(sends("s4"), DONE)
    world.prompt("send it once more")
    assert world.ran == [("send", "ann")] * 2


def test_an_identical_call_ends_in_an_answer_without_tools(world):
    world.play(*(reads(f"c{at}", 1) for at in range(4)), DONE)
    assert world.prompt().outcome is Outcome.COMPLETED
    last = world.model.requests[-1]
    assert last["tool_choice"] == "none"
    assert last["messages"][-1] == {"role": "system", "content": REPETITION_NOTE}
    assert REPETITION_NOTE not in world.path.read_text()
    assert "tool_choice" not in world.model.requests[-2]


def test_a_tool_asked_for_in_that_turn_stops_it(world):
    world.play(*(reads(f"c{at}", 1) for at in range(6)))
    result = world.prompt()
    assert (result.outcome, result.stopped_by) == (
        Outcome.GUARD_STOPPED,
        LoopType.IDENTICAL_TOOL_CALL,
    )
    assert world.decisions(IDENTICAL)[-1] == "stopped"
    assert len(world.ran) == 4


@pytest.mark.parametrize(
    ("steps", "loop"),
    [
        pytest.param(
            [ModelAnswer("", (call(f"i{at}", "fetch", page=at),)) for at in range(4)],
            LoopType.INVALID_TOOL_PARAMS,
            id="invalid parameters",
        ),
        pytest.param(
            [reads(f"c{at}", at) for at in range(9)],
            LoopType.TOTAL_TOOL_CALLS,
            id="too many calls",
        ),
    ],
)
def test_a_limit_without_a_rollout_ends_a_turn_as_a_limit(world, steps, loop):
    world.limits = Limits(total_calls=5)
    world.play(*steps)
    assert world.prompt() == (Outcome.LIMIT, loop, None)
    (event,) = world.events("agent.guard.loop_detected")
    assert event["agent.guard.loop.type"] == loop.value
    assert "agent.guard.name" not in event


def play_every_guard(world):
    """Run a prompt with something for each guard; return all that anyone saw of it."""
    world.play(
        *(reads("fetch_0", 1) for _ in range(3)),
        *(failing(turn) for turn in range(4)),
        sends("s1"),
        sends("s2"),
        *(reads(f"c{at}", 2) for at in range(6)),
        DONE,
    )
    result = world.prompt()
    return result, world.model.requests, world.ran, world.person.shown, world.answers()


def outcome_under(directory, modes):
    """Return all that anyone saw of that prompt under modes, and each guard's decisions."""
    world = World(directory)
    world.modes = modes
    try:
        return play_every_guard(world), {guard: set(world.decisions(guard)) for guard in GUARDS}
    finally:
        world.close()


def test_no_guard_in_shadow_interferes(tmp_path):
    for name in ("without", "shadow"):
        (tmp_path / name).mkdir()
    without, silent = outcome_under(tmp_path / "without", {})
    shadow, decisions = outcome_under(tmp_path / "shadow", dict.fromkeys(GUARDS, Mode.SHADOW))
    assert shadow == without
    assert set().union(*silent.values()) == set()
    for guard in GUARDS:
        assert {"would_warn", "would_stop", "would_suspend"} & decisions[guard]


@pytest.mark.parametrize("mode", [mode for mode in Mode if mode is not Mode.OFF])
def test_what_any_guard_reports_is_accepted_and_breaks_no_invariant(world, mode):
    world.modes = dict.fromkeys(GUARDS, mode)
    play_every_guard(world)
    world.play(*(failing(turn) for turn in range(10, 14)), sends("s8"), sends("s9"), DONE)
    world.prompt("and now?")
    events, points = world.door.records(), world.door.points()
    assert events.rejected == points.rejected == ()
    assert events.dropped_attributes == points.dropped_attributes == 0
    assert [found for record in events.records if (found := broken_invariants(record, None))] == []
    decisions = {record.decision for record in events.records if isinstance(record, Transition)}
    assert len(decisions) > 2


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("{", id="no JSON"),
        pytest.param("[1]", id="a list"),
        pytest.param('{"url": NaN}', id="no number"),
        pytest.param("[" * 5000, id="nested without end"),
        pytest.param(json.dumps({"url": "http://up/1", "more": [[[]]] * 3}), id="more than asked"),
    ],
)
def test_arguments_that_cannot_be_read_never_end_a_prompt(world, text):
    world.play(
        ModelAnswer("", (RequestedCall("m1", "fetch", text), RequestedCall("", "", text))), DONE
    )
    assert world.prompt().outcome is Outcome.COMPLETED
    assert len(world.answers()) == 2


@pytest.mark.parametrize("word", ["off", "warn", "enforce"])
@pytest.mark.parametrize(
    ("process", "mode"),
    [
        pytest.param({}, Mode.SHADOW, id="unset"),
        pytest.param({GUARD_MODE: "warn"}, Mode.WARN, id="warn by the process"),
        pytest.param({GUARD_MODE: "off"}, Mode.OFF, id="off by the process"),
    ],
)
def test_a_projects_dotenv_neither_sets_nor_raises_the_mode(word, process, mode):
    project = read_dotenv(
        f"# ours\n{GUARD_MODE}={word}\nGUARDWAVE_URL=http://elsewhere\n"
        "GUARDWAVE_TOKEN=gw_a_b\nAGENT_OWNER=someone\nAGENT_MODEL='small'\n"
    )
    found = Settings.read(process, project)
    assert found.mode.mode is mode
    assert (found.guardwave_url, found.runtime_token) == (None, None)
    assert (found.owner, found.model_name) == ("workspace-1", "small")


def test_a_word_that_is_no_mode_is_shadow_with_a_diagnostic():
    found = Settings.read({GUARD_MODE: "loud"}, {})
    assert found.mode.mode is Mode.SHADOW
    assert "loud" in (found.mode.diagnostic or "")


def test_a_user_who_comes_back_with_the_same_prompt_was_not_served(world):
    world.play(DONE, DONE)
    world.prompt("write the report")
    world.now_ms += 30_000
    world.prompt("write the report")
    world.now_ms += 90_000
    world.session.disconnected()
    disruptions = [
        (event["agent.guard.disruption.kind"], event["agent.guard.disruption.offset"])
        for event in world.events("agent.guard.prompt.disruption")
    ]
    assert disruptions == [("retry", 30.0), ("disconnect", 90.0)]


def test_tokens_that_a_server_does_not_tell_are_unknown_and_not_zero(world):
    world.play(reads("c1", 1), DONE)
    world.prompt()
    world.play(reads("c2", 1), ModelAnswer("Done.", reports_usage=False))
    world.prompt("more")
    known, unknown = world.events("agent.guard.prompt.end")
    assert known["gen_ai.usage.output_tokens"] == 24
    assert "gen_ai.usage.output_tokens" not in unknown
    assert "gen_ai.usage.input_tokens" not in unknown
