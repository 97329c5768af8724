"""Plain texts: they stand for members of closed sets; the log names values that fit no field."""

import dataclasses
import enum
import logging

import pytest

from guardwave.control_plane.client import Assignment, GuardTelemetry, PromptEnd
from guardwave.reducer import contract as written
from guardwave.reducer.guards.transition import Transition
from guardwave.reducer.vocabulary import (
    DisruptionKind,
    ExecutionStatus,
    Invariant,
    LoopType,
    Mode,
    Outcome,
    Route,
    TerminalStatus,
)
from tests.control_plane.client.telemetry_doors import (
    ASSIGNED,
    DUPLICATE,
    REPEATED,
    STOP,
    TRACKED,
    Door,
)
from tests.control_plane.client.test_failing_telemetry import RaisingProcessor, logs_with

SECRET = "what_the_user_wrote"
LOGGER = "guardwave.control_plane.client.sink"


@pytest.fixture
def door():
    opened = Door()
    yield opened
    opened.close()


def as_plain_text(found):
    """Return the value with plain texts for members, however deep in dataclasses."""
    if isinstance(found, enum.Enum):
        return str(found.value)
    if not dataclasses.is_dataclass(found) or isinstance(found, type):
        return found
    fields = [field.name for field in dataclasses.fields(found)]
    return dataclasses.replace(
        found, **{name: as_plain_text(getattr(found, name)) for name in fields}
    )


def report_whole_prompt(telemetry, spell):
    """Report a prompt; `spell` gives the form of each member."""
    assignments = [spell(assignment) for assignment in ASSIGNED]
    telemetry.evaluated(assignments[0])
    prompt = telemetry.prompt(
        assignments=assignments, route=spell(Route.INTERACTIVE_FOREGROUND), prompt_id="prompt-1"
    )
    prompt.started()
    prompt.decided([spell(TRACKED), spell(STOP)], is_history_preserved=True)
    for status in ExecutionStatus:
        prompt.executed(spell(status))
    prompt.violated(DUPLICATE, spell(Invariant.EXISTING_GUARD_CHANGED))
    prompt.loop_detected(spell(LoopType.REPEATED_TOOL_EXECUTION_FAILURE))
    prompt.ended(spell(PromptEnd(Outcome.GUARD_STOPPED, duration_seconds=1.5, turns=2)))
    prompt.disrupted(spell(DisruptionKind.RETRY), offset_seconds=1)
    prompt.disrupted(spell(DisruptionKind.RETRY), offset_seconds=2)


def point_texts(door):
    """Return every point of the metrics, without its times and what is made of them."""
    same = {"start_ns": 0, "time_ns": 0, "identity": 0, "stream": 0}
    return sorted(repr(dataclasses.replace(record, **same)) for record in door.points().records)


def test_a_prompt_in_plain_words_is_the_prompt_in_members(door, caplog):
    spelling = Door()
    report_whole_prompt(door.telemetry, lambda word: word)
    report_whole_prompt(spelling.telemetry, as_plain_text)
    assert len(door.events()) == 7
    assert spelling.events() == door.events()
    assert point_texts(spelling) == point_texts(door) != []
    assert (spelling.telemetry.failures, spelling.records().rejected) == (0, ())
    assert caplog.records == []
    spelling.close()


@pytest.mark.parametrize("route", ["interactive", "acp_foreground", "interactive_foreground"])
def test_every_accepted_spelling_of_the_foreground_is_reported_as_the_one(door, route):
    door.telemetry.prompt(assignments=ASSIGNED, route=route).started()
    ((_, attributes),) = door.events()
    assert attributes[written.ROUTE] == "interactive_foreground"


@pytest.mark.parametrize(
    "field", [field.name for field in dataclasses.fields(Transition) if field.name != "guard"]
)
def test_a_transition_is_dropped_by_the_name_of_its_field(door, caplog, field):
    odd = dataclasses.replace(STOP)
    object.__setattr__(odd, field, f"{SECRET}/")
    prompt = door.telemetry.prompt(assignments=ASSIGNED)
    prompt.decided([odd, odd])
    assert door.events() == []
    assert door.telemetry.failures == 2
    (record,) = caplog.records
    assert (record.name, record.levelno) == (LOGGER, logging.WARNING)
    assert f"not reported: Transition.{field} is a text that does not fit; give " in caplog.text
    assert SECRET not in caplog.text


def assign(**given):
    """Return what makes an assignment with fields of any type."""
    return lambda door: door.prompt(
        assignments=[Assignment(**{"guard": REPEATED, "mode": Mode.WARN, **given})]
    )


def prompt_end(outcome, **given):
    """Return an end with fields of any type."""
    return PromptEnd(outcome, **given)


def during(do):
    """Return what does something with a prompt."""
    return lambda door: do(door.prompt(assignments=ASSIGNED))


def after_its_end(do):
    """Return what does something with a prompt that ended."""

    def ended(door):
        prompt = door.prompt(assignments=ASSIGNED)
        prompt.ended(PromptEnd(Outcome.COMPLETED))
        do(prompt)

    return ended


@pytest.mark.parametrize(
    ("do", "message"),
    [
        pytest.param(
            during(lambda prompt: prompt.executed("succeeded")),
            "executed(status) is a text that does not fit; give one of success, error, not_started",
            id="a word that is none",
        ),
        pytest.param(
            during(lambda prompt: prompt.executed(TerminalStatus.ERROR)),
            "executed(status) is of type TerminalStatus; give one of success, error",
            id="a word of another set",
        ),
        pytest.param(
            during(lambda prompt: prompt.executed(None)),
            "executed(status) is None; give one of success",
            id="no word",
        ),
        pytest.param(
            during(lambda prompt: prompt.ended(prompt_end(SECRET))),
            "PromptEnd.outcome is a text that does not fit; give one of completed, failed",
            id="an outcome",
        ),
        pytest.param(
            during(lambda prompt: prompt.ended("completed")),
            "ended(end) is a text that does not fit; give a PromptEnd",
            id="an outcome alone",
        ),
        pytest.param(
            during(lambda prompt: prompt.ended(prompt_end("completed", turns="3"))),
            "PromptEnd.turns is a text that does not fit; give a whole number, or None",
            id="a number as text",
        ),
        pytest.param(
            during(lambda prompt: prompt.ended(prompt_end("completed", duration_seconds=b"3"))),
            "PromptEnd.duration_seconds is of type bytes; give seconds, or None",
            id="a duration as bytes",
        ),
        pytest.param(
            during(lambda prompt: prompt.loop_detected(SECRET)),
            "loop_detected(loop) is a text that does not fit; give one of repeated_tool_execution",
            id="a loop",
        ),
        pytest.param(
            during(lambda prompt: prompt.violated(REPEATED, SECRET)),
            "violated(invariant) is a text that does not fit; give one of contract_violation",
            id="an invariant",
        ),
        pytest.param(
            during(lambda prompt: prompt.violated([SECRET], Invariant.MODE_MISMATCH)),
            "violated(guard) is of type list; give the guard's name",
            id="a guard that is none",
        ),
        pytest.param(
            during(lambda prompt: prompt.decided(STOP)),
            "transitions is of type Transition; give a sequence of Transition",
            id="one transition for a sequence",
        ),
        pytest.param(
            during(lambda prompt: prompt.decided([SECRET])),
            "transitions[] is a text that does not fit; give a Transition",
            id="a text for a transition",
        ),
        pytest.param(
            during(lambda prompt: prompt.decided([STOP], is_history_preserved=1)),
            "is_history_preserved is of type int; give True, False or",
            id="a number for a truth",
        ),
        pytest.param(
            after_its_end(lambda prompt: prompt.disrupted(SECRET, offset_seconds=1)),
            "disrupted(kind) is a text that does not fit; give one of disconnect, retry",
            id="a disruption",
        ),
        pytest.param(
            after_its_end(lambda prompt: prompt.disrupted("retry", offset_seconds="1")),
            "disrupted(offset_seconds) is a text that does not fit; give seconds since the end",
            id="an offset as text",
        ),
        pytest.param(
            lambda door: door.evaluated(SECRET),
            "assignments[] is a text that does not fit; give an Assignment",
            id="an evaluation of none",
        ),
        pytest.param(
            lambda door: door.prompt(assignments=ASSIGNED[0]),
            "assignments is of type Assignment; give a sequence of Assignment",
            id="one assignment for a sequence",
        ),
        pytest.param(
            lambda door: door.prompt(assignments={SECRET: ASSIGNED[0]}),
            "assignments[] is a text that does not fit; give an Assignment",
            id="assignments by guard",
        ),
        pytest.param(
            lambda door: door.prompt(assignments=[ASSIGNED[0], ASSIGNED[0]]),
            "assignments holds two of one guard; give one per guard",
            id="one guard twice",
        ),
        pytest.param(
            lambda door: door.prompt(assignments=ASSIGNED, route=SECRET),
            "prompt(route) is a text that does not fit; give one of interactive_foreground",
            id="a route",
        ),
        pytest.param(
            lambda door: door.prompt(assignments=ASSIGNED, prompt_id=7),
            "prompt_id is of type int; give a text, or None for a random id",
            id="a prompt's id as number",
        ),
        pytest.param(
            assign(mode=SECRET),
            "Assignment.mode is a text that does not fit; give one of off, shadow, warn, enforce",
            id="a mode",
        ),
        pytest.param(
            assign(guard=f"/{SECRET}"),
            "Assignment.guard is a text that does not fit; give the guard's name",
            id="a path for a guard",
        ),
        pytest.param(
            assign(generation="7"),
            "Assignment.generation is a text that does not fit; give the whole number",
            id="a generation as text",
        ),
        pytest.param(
            assign(assignment_id=f"/{SECRET}"),
            "Assignment.assignment_id is a text that does not fit; give the id",
            id="a path for an assignment id",
        ),
    ],
)
def test_a_drop_is_logged_once_with_field_and_remedy_and_counted_each_time(
    door, caplog, do, message
):
    do(door.telemetry)
    do(door.telemetry)
    assert door.telemetry.failures == 2
    (record,) = caplog.records
    assert (record.name, record.levelno) == (LOGGER, logging.WARNING)
    assert f"not reported: {message}" in caplog.text
    assert "(logged once; GuardTelemetry.failures counts each time)" in caplog.text
    assert SECRET not in caplog.text
    assert SECRET not in repr(door.events())


def test_each_field_is_logged_once(door, caplog):
    prompt = door.telemetry.prompt(assignments=ASSIGNED)
    for _ in range(3):
        prompt.executed("ok")
        prompt.loop_detected("loop")
    assert [record.getMessage().split()[2] for record in caplog.records] == [
        "executed(status)",
        "loop_detected(loop)",
    ]
    assert door.telemetry.failures == 6


def test_another_telemetry_logs_it_again(door, caplog):
    for telemetry in (door.telemetry, GuardTelemetry()):
        during(lambda prompt: prompt.executed("ok"))(telemetry)
    assert len(caplog.records) == 2


def test_an_sdk_that_raises_is_logged_once_without_its_message(caplog):
    telemetry = GuardTelemetry(logger_provider=logs_with(RaisingProcessor()))
    report_whole_prompt(telemetry, lambda word: word)
    assert telemetry.failures == 7
    (record,) = caplog.records
    assert "the OpenTelemetry SDK raised Broken for an event; see how it is set up" in (
        record.getMessage()
    )


class Relaying(logging.Handler):
    """A log handler that reports through the telemetry that it logs."""

    def __init__(self, telemetry):
        super().__init__()
        self.telemetry = telemetry
        self.seen = 0

    def emit(self, record):
        self.seen += 1
        self.telemetry.prompt(assignments=ASSIGNED).executed("ok")
        raise RuntimeError


def test_a_log_that_leads_back_and_raises_neither_loops_nor_ends_a_prompt(door):
    relaying = Relaying(door.telemetry)
    log = logging.getLogger(LOGGER)
    log.addHandler(relaying)
    try:
        door.telemetry.prompt(assignments=ASSIGNED).executed("ok")
    finally:
        log.removeHandler(relaying)
    assert (relaying.seen, door.telemetry.failures) == (1, 2)
