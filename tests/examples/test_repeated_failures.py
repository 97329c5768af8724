"""Example host under the repeated-failure guard, from the model's stream to telemetry."""

import pytest

from examples.agent_host.messages import SystemText, UserText
from examples.agent_host.people import (
    CHAT_BRIDGE,
    MAIL_BRIDGE,
    InputError,
    InputRequest,
    PersonInput,
)
from examples.agent_host.stub_model import ModelAnswer, ModelFailure
from examples.agent_host.tools import Report
from examples.agent_host.transcript import UNANSWERED, Transcript, TranscriptError
from guardwave.reducer.guards.messages import REPEATED_FAILURE_REMINDER, REPEATED_FAILURE_STOP
from guardwave.reducer.pipeline import GUARDS
from guardwave.reducer.vocabulary import LoopType, Mode, Outcome, TerminalStatus
from tests.examples.hosts import REPEATED, TestPerson, failing

STOPPED = ["tracked", "warned", "stopped"]
DONE = ModelAnswer("I am done.")


def test_a_typed_failure_that_goes_on_after_a_reminder_stops_the_turn(world):
    world.play(*(failing(turn) for turn in range(9)))
    result = world.prompt()
    assert result == (Outcome.GUARD_STOPPED, LoopType.REPEATED_TOOL_EXECUTION_FAILURE, None)
    assert world.decisions() == STOPPED
    stop = world.events("agent.guard.transition")[-1]
    assert stop["agent.guard.error.type"] == "timeout"
    assert stop["agent.guard.tool.type"] == "native"
    assert stop["agent.guard.history.preserved"] is True
    (end,) = world.events("agent.guard.prompt.end")
    assert end["agent.guard.prompt.outcome"] == "guard_stopped"
    assert (end["agent.guard.prompt.turns"], end["agent.guard.prompt.tool_calls"]) == (3, 12)
    assert end["agent.guard.prompt.transitions"] == len(world.events("agent.guard.transition"))
    assert world.door.records().rejected == world.door.points().rejected == ()


def test_the_frozen_error_type_survives_a_later_terminal_one(world):
    def hook(report):
        return Report(report.status, "A hook refused the result.", "hook_refused")

    world.hooks = (hook,)
    world.play(*(failing(turn) for turn in range(3)))
    assert world.prompt().outcome is Outcome.GUARD_STOPPED
    events = world.events("agent.guard.transition")
    error_types = {event.get("agent.guard.error.type") for event in events}
    assert "timeout" in error_types
    assert "hook_refused" not in error_types
    assert set(world.answers()) == {"A hook refused the result."}


def test_a_hook_that_turns_a_success_into_an_error_is_no_tool_failure(world):
    world.hooks = (lambda report: Report(TerminalStatus.ERROR, "Refused.", "hook_refused"),)
    world.play(*(failing(turn, where="up") for turn in range(4)), DONE)
    assert world.prompt().outcome is Outcome.COMPLETED
    assert world.decisions() == []


def test_off_leaves_the_hosts_drain_request_unchanged(world):
    world.modes = {}
    world.play(failing(1), failing(2), DONE)
    world.prompt()
    unguarded, world.person.drains = world.person.drains, []
    world.modes = dict.fromkeys(GUARDS, Mode.OFF)
    world.play(failing(3), failing(4), DONE)
    world.prompt()
    assert world.person.drains == unguarded == [InputRequest(), InputRequest()]
    assert world.door.events() == []
    world.modes = {REPEATED: Mode.SHADOW}
    world.play(failing(5), DONE)
    world.prompt()
    assert world.person.drains[2:] == [InputRequest(with_queued=True)]


def turns_under(world, modes):
    """Run the same failing prompt under modes; return what the model and the person saw."""
    world.restart()
    world.path.unlink(missing_ok=True)
    world.person.shown.clear()
    world.modes = modes
    before = len(world.model.requests)
    world.play(*(failing(turn) for turn in range(5)), DONE)
    result = world.prompt()
    return result, world.model.requests[before:], list(world.person.shown)


def test_shadow_changes_no_turn(world):
    without = turns_under(world, {})
    assert turns_under(world, dict.fromkeys(GUARDS, Mode.SHADOW)) == without
    assert without[0].outcome is Outcome.COMPLETED
    assert world.decisions() == ["tracked", "would_warn", "would_stop"]


def test_warn_reminds_and_never_stops(world):
    world.modes = {REPEATED: Mode.WARN}
    world.play(*(failing(turn) for turn in range(5)), DONE)
    assert world.prompt().outcome is Outcome.COMPLETED
    assert world.decisions() == ["tracked", "warned", "would_stop"]
    (end,) = world.events("agent.guard.prompt.end")
    assert end["agent.guard.calls_after_would_stop"] == 8


def test_there_is_exactly_one_reminder_for_each_streak(world):
    world.modes = {REPEATED: Mode.WARN}
    well = failing(9, where="up")
    world.play(failing(0), failing(1), well, failing(5), failing(6), DONE)
    world.prompt()
    assert world.decisions().count("warned") == 2
    assert world.reminders() == 2
    last = world.model.requests[-1]["messages"]
    assert sum(message["content"] == REPEATED_FAILURE_REMINDER for message in last) == 2
    assert {
        message["role"] for message in last if message["content"] == REPEATED_FAILURE_REMINDER
    } == {"system"}


def test_a_model_that_recovers_after_the_reminder_is_not_stopped(world):
    world.play(failing(0), failing(1), failing(2, where="up"), failing(3), DONE)
    assert world.prompt() == (Outcome.COMPLETED, None, None)
    assert world.decisions() == ["tracked", "warned", "reset", "tracked"]


def test_after_a_stop_settled_results_stay_and_no_further_stream_opens(world):
    world.play(*(failing(turn) for turn in range(9)))
    world.prompt()
    assert len(world.model.requests) == 3
    assert len(world.answers()) == 12
    stored = Transcript(world.path).messages
    assert stored == world.transcript.messages
    assert stored[-1] == SystemText(REPEATED_FAILURE_STOP)
    assert world.person.shown == [REPEATED_FAILURE_STOP]


@pytest.mark.parametrize("drained", [3, 4])
@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        pytest.param(PersonInput(("wait",)), "external_input", id="a text for this turn"),
        pytest.param(
            PersonInput(has_queued_prompt=True), "queued_prompt", id="a prompt that waits"
        ),
    ],
)
def test_queued_input_outranks_a_stop(world, drained, typed, reason):
    world.person.types = lambda number: typed if number == drained else PersonInput()
    world.play(*(failing(turn) for turn in range(3)), DONE)
    assert world.prompt().outcome is Outcome.COMPLETED
    assert world.decisions() == ["tracked", "warned", "reset"]
    last = world.events("agent.guard.transition")[-1]
    assert last["agent.guard.reset.reason"] == reason
    texts = [message["content"] for message in world.model.requests[-1]["messages"]]
    assert ("wait" in texts) is bool(typed.texts)


def test_cancellation_outranks_a_stop(world):
    world.person.cancels = lambda: len(world.ran) == 12
    world.play(*(failing(turn) for turn in range(9)))
    assert world.prompt().outcome is Outcome.CANCELLED
    assert world.decisions() == ["tracked", "warned"]
    assert world.events("agent.guard.loop_detected") == []
    assert len(world.answers()) == 12
    (end,) = world.events("agent.guard.prompt.end")
    assert end["agent.guard.prompt.outcome"] == "cancelled"


def test_a_cancellation_while_the_host_drains_outranks_a_stop_too(world):
    world.person.cancels = lambda: len(world.person.drains) == 3
    world.play(*(failing(turn) for turn in range(9)))
    assert world.prompt().outcome is Outcome.CANCELLED
    assert world.decisions() == ["tracked", "warned"]


@pytest.mark.parametrize("drains", [3, 4], ids=["before the second look", "while it is taken"])
def test_input_before_a_cancellation_at_a_stop_is_kept(world, drains):
    world.person.cancels = lambda: len(world.person.drains) >= drains
    world.person.types = lambda number: PersonInput((f"said {number}",) if number == drains else ())
    world.play(*(failing(turn) for turn in range(9)))
    assert world.prompt().outcome is Outcome.CANCELLED
    assert world.transcript.messages[-1] == UserText(f"said {drains}")
    assert world.decisions()[:2] == ["tracked", "warned"]
    assert "stopped" not in world.decisions()


@pytest.mark.parametrize("broken", [3, 4], ids=["the first look", "the second look"])
def test_a_stop_stands_only_when_both_looks_at_the_input_were_reliable(world, broken):
    def types(number):
        if number == broken:
            raise InputError
        return PersonInput(has_queued_prompt=number == 4)

    world.person.types = types
    world.play(*(failing(turn) for turn in range(3)), DONE)
    assert world.prompt().outcome is Outcome.COMPLETED
    last = world.events("agent.guard.transition")[-1]
    assert last["agent.guard.reset.reason"] == "unreliable_input"


def test_input_of_both_looks_is_kept_in_order_and_counts():
    typed = PersonInput(("a",), has_queued_prompt=True).followed_by(PersonInput(("b",)))
    assert typed == PersonInput(("a", "b"), has_queued_prompt=True)
    assert PersonInput().followed_by(PersonInput(has_queued_prompt=True)).has_queued_prompt


@pytest.mark.parametrize(
    "failure", [ModelFailure(500), ModelFailure(200)], ids=["an error", "a broken stream"]
)
def test_a_failed_reminder_request_means_no_stop(world, failure):
    world.play(failing(0), failing(1), failure)
    result = world.prompt()
    assert result.outcome is Outcome.FAILED
    assert world.decisions() == ["tracked", "warned"]
    assert world.events("agent.guard.loop_detected") == []
    world.play(failing(3), DONE)
    assert world.prompt("again").outcome is Outcome.COMPLETED
    assert world.decisions() == ["tracked", "warned", "tracked"]


class FullDisk(Transcript):
    """A transcript on a disk that is full when a message of this text comes."""

    def __init__(self, path, text):
        super().__init__(path)
        self.text = text

    def add(self, *messages):
        if any(message.text == self.text for message in messages):
            raise TranscriptError("the transcript was not written: no space left on device")
        super().add(*messages)


def test_a_failed_history_write_is_an_error_and_no_claim(world):
    world.transcript = FullDisk(world.path, REPEATED_FAILURE_STOP)
    world.play(*(failing(turn) for turn in range(9)))
    result = world.prompt()
    assert (result.outcome, result.stopped_by) == (Outcome.FAILED, None)
    assert "no space left on device" in result.error
    assert world.person.shown == [result.error]
    assert len(world.model.requests) == 3
    assert world.events("agent.guard.loop_detected") == []
    last = world.events("agent.guard.transition")[-1]
    assert last["agent.guard.history.preserved"] is False


def test_results_that_cannot_be_written_end_the_prompt_before_any_decision(world):
    world.transcript = FullDisk(world.path, "No answer in time.")
    world.play(failing(0), DONE)
    assert world.prompt().outcome is Outcome.FAILED
    assert world.decisions() == []


def test_a_call_whose_answer_was_lost_does_not_break_the_conversation(world):
    world.transcript = FullDisk(world.path, "No answer in time.")
    world.play(failing(0, times=2))
    world.prompt()
    world.restart()
    world.play(DONE)
    assert world.prompt("go on").outcome is Outcome.COMPLETED
    roles = [message["role"] for message in world.model.requests[-1]["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "tool", "user"]
    assert UNANSWERED not in world.path.read_text()


def test_a_cancellation_while_the_model_answers_ends_the_prompt(world):
    world.person.cancels = lambda: len(world.model.requests) == 2
    world.play(failing(0), failing(1))
    assert world.prompt() == (Outcome.CANCELLED, None, None)
    assert len(world.ran) == 4
    (end,) = world.events("agent.guard.prompt.end")
    assert end["agent.guard.prompt.outcome"] == "cancelled"


@pytest.mark.parametrize("channel", [CHAT_BRIDGE, MAIL_BRIDGE], ids=lambda channel: channel.name)
def test_both_channel_routes_are_off(world, channel):
    world.play(*(failing(turn) for turn in range(5)), DONE)
    assert world.prompt(channel=channel).outcome is Outcome.COMPLETED
    assert world.routes == [channel.route]
    assert world.door.events() == []
    assert world.door.points().records == ()
    assert world.person.drains == [InputRequest()] * 5


def test_the_loop_event_is_emitted_once_with_the_prompt_id(world):
    world.play(*(failing(turn) for turn in range(9)))
    world.prompt()
    (loop,) = world.events("agent.guard.loop_detected")
    (start,) = world.events("agent.guard.prompt.start")
    assert loop["agent.guard.loop.type"] == "repeated_tool_execution_failure"
    assert loop["agent.guard.prompt.id"] == start["agent.guard.prompt.id"]


def test_a_host_that_cannot_drain_is_never_stopped(world):
    def broken(_):
        raise InputError

    world.person.types = broken
    world.play(*(failing(turn) for turn in range(5)), DONE)
    assert world.prompt().outcome is Outcome.COMPLETED
    (only,) = world.transitions()
    assert only["agent.guard.reset.reason"] == "unreliable_input"


def test_a_host_that_cannot_tell_how_an_execution_settled_is_never_stopped(world):
    world.reports_execution = False
    world.play(*(failing(turn) for turn in range(5)), DONE)
    assert world.prompt().outcome is Outcome.COMPLETED
    (only,) = world.transitions()
    assert only["agent.guard.reset.reason"] == "unknown"


def test_a_new_prompt_after_a_stop_begins_with_nothing_counted(world):
    world.play(*(failing(turn) for turn in range(3)))
    assert world.prompt().outcome is Outcome.GUARD_STOPPED
    world.play(failing(7), DONE)
    assert world.prompt("try once more").outcome is Outcome.COMPLETED
    assert world.decisions() == [*STOPPED, "tracked"]
    first, second = world.events("agent.guard.prompt.start")
    assert first["agent.guard.prompt.id"] != second["agent.guard.prompt.id"]
    ordinals = [event["agent.guard.sequence"] for event in world.events("agent.guard.transition")]
    assert ordinals.count(1) == 2


def test_a_reconnected_person_finds_the_prompt_and_its_streak_going_on(world):
    second = TestPerson()

    def break_off(number):
        if number == 2:
            world.session.attach(second)
        return PersonInput()

    world.person.types = break_off
    world.play(*(failing(turn) for turn in range(9)))
    assert world.prompt().outcome is Outcome.GUARD_STOPPED
    assert world.decisions() == STOPPED
    assert (world.person.shown, second.shown) == ([], [REPEATED_FAILURE_STOP])


def test_a_restarted_process_begins_a_new_streak(world):
    world.play(failing(0), ModelFailure(500))
    world.prompt()
    world.restart()
    world.play(failing(1), failing(2), DONE)
    assert world.prompt("go on").outcome is Outcome.COMPLETED
    assert world.decisions() == ["tracked", "tracked", "warned"]
