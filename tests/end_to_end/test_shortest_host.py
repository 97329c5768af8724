"""Shortest host of docs/embed.md: its report of a turn that a guard ends."""

import re
from collections import Counter
from pathlib import Path

import pytest

from guardwave.reducer import contract
from guardwave.reducer.guards.messages import REPEATED_FAILURE_REMINDER, REPEATED_FAILURE_STOP
from guardwave.reducer.vocabulary import Outcome, Route
from tests.control_plane.client.telemetry_doors import Door

DOCS = Path(__file__).parents[2] / "docs" / "embed.md"
SHORTEST = re.compile(r"<!-- a test runs this -->\n```python\n(.*?)```", re.DOTALL)
OWN_TELEMETRY = "telemetry = GuardTelemetry()"


@pytest.fixture
def door():
    made = Door()
    yield made
    made.close()


def run(door, *changes):
    """Run the documented source with the SDK of a test behind it; return its names."""
    (source,) = SHORTEST.findall(DOCS.read_text())
    for before, after in ((OWN_TELEMETRY, "telemetry = DOOR"), *changes):
        assert source.count(before) == 1, before
        source = source.replace(before, after)
    names = {"DOOR": door.telemetry}
    exec(compile(source, str(DOCS), "exec"), names)  # the documentation's own words
    assert door.telemetry.failures == 0
    return names


def reported(door, name):
    return [attributes for event, attributes in door.events() if event == name]


def test_the_reminder_and_the_stop_stand_once_in_the_history(door, capsys):
    history = run(door)["history"]
    failed = ["the page did not load"] * 4
    assert history == [
        *failed,
        *failed,
        REPEATED_FAILURE_REMINDER,
        *failed,
        REPEATED_FAILURE_STOP,
    ]
    assert capsys.readouterr().out == f"{REPEATED_FAILURE_STOP}\n"


def test_a_stop_is_reported_with_its_loop_its_outcome_and_what_came_after(door):
    run(door)
    assert Counter(name for name, _ in door.events()) == {
        contract.PROMPT_START: 1,
        contract.TRANSITION: 3,
        contract.LOOP_DETECTED: 1,
        contract.PROMPT_END: 1,
        contract.DISRUPTION: 1,
    }
    decided = [event[contract.DECISION] for event in reported(door, contract.TRANSITION)]
    assert decided == ["tracked", "warned", "stopped"]
    assert reported(door, contract.TRANSITION)[-1][contract.HISTORY_PRESERVED] is True
    (loop,) = reported(door, contract.LOOP_DETECTED)
    assert loop[contract.LOOP_TYPE] == "repeated_tool_execution_failure"
    (end,) = reported(door, contract.PROMPT_END)
    assert (end[contract.OUTCOME], end[contract.TURNS], end[contract.TOOL_CALLS]) == (
        "guard_stopped",
        3,
        12,
    )
    assert end[contract.TRANSITIONS] == 3


def test_intake_takes_everything_the_shortest_host_reports(door):
    run(door)
    reading = door.records()
    assert (len(reading.records), reading.rejected) == (7, ())


def test_a_history_that_cannot_be_written_is_an_error_and_no_claim(door):
    outcome = "assert (len(requests), len(ran), outcome) == (3, 12, Outcome.GUARD_STOPPED)"
    names = run(
        door,
        (
            "        history.append(text)  # system context",
            "        raise OSError  # system context",
        ),
        (outcome, ""),
    )
    assert names["outcome"] == "failed"
    assert reported(door, contract.TRANSITION)[-1][contract.HISTORY_PRESERVED] is False
    assert reported(door, contract.LOOP_DETECTED) == []


def test_a_mode_that_did_not_hold_is_a_violation(door):
    held = "guards.repeated.mode is not modes"
    run(door, (held, held.replace("is not", "is")))
    names = {
        metric.name
        for resource in door.reader.get_metrics_data().resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    assert contract.VIOLATIONS_METRIC in names


@pytest.mark.parametrize(
    ("asked", "ending"),
    [
        pytest.param("pages = range(0)", "completed", id="a model that concludes"),
        pytest.param("pages = range(101)", "limit", id="a batch beyond the total of calls"),
    ],
)
def test_every_other_end_has_its_outcome(door, asked, ending):
    outcome = "assert (len(requests), len(ran), outcome) == (3, 12, Outcome.GUARD_STOPPED)"
    names = run(door, ("pages = range(4)", asked), (outcome, ""))
    assert (names["outcome"], names["ran"]) == (ending, [])
    assert [event[contract.OUTCOME] for event in reported(door, contract.PROMPT_END)] == [ending]


@pytest.mark.parametrize("word", [*Outcome, *Route])
def test_every_outcome_and_route_is_explained(word):
    _, _, words = DOCS.read_text().partition("## The words")
    assert f"`{word.name}`" in words
