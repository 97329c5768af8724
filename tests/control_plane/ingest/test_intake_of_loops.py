"""Loop events: volume, and evidence for the other guards of the prompt."""

from datetime import timedelta

import pytest

from guardwave.control_plane.core.otlp_request import Encoding
from guardwave.control_plane.ingest.model.otlp_values import Value
from guardwave.reducer.rollout.assignment import Assignment
from guardwave.reducer.vocabulary import Cohort, Mode
from tests.support.hosts import Event, Prompt, issue_id, logs, partial_of, pseudonym_in
from tests.support.worlds import ENVIRONMENT, GUARD, NOW

AT = NOW - timedelta(hours=2)
OTHER = "identical_call"
NAME = "agent.guard.loop_detected"


@pytest.fixture
def phase():
    return Mode.ENFORCE


@pytest.fixture
def prompt(context):
    """A prompt of an owner that two guards watch."""
    pseudonym = pseudonym_in(context, "owner-1")
    ids = [
        issue_id(context, Assignment(guard, pseudonym, 2, Cohort.CONTROL, Mode.WARN, 2))
        for guard in (GUARD, OTHER)
    ]
    return Prompt("p-1", ids, AT, outcome="limit")


def loop(prompt: Prompt, loop_type: str, *, guard: str | None = None, seconds: int = 20) -> Event:
    named: dict[str, Value] = {} if guard is None else {"agent.guard.name": guard}
    ids: Value = tuple(prompt.ids)
    attributes: dict[str, Value] = {
        "agent.guard.prompt.id": prompt.prompt_id,
        "agent.guard.loop.type": loop_type,
        **({"agent.guard.assignment.id": ids} if prompt.ids else {}),
        **named,
    }
    return Event(NAME, AT + timedelta(seconds=seconds), attributes)


def loops_of(context) -> dict[str, int | None]:
    """Return the loop events of the one owner-day that each guard has."""
    rows = {
        guard: context.evidence.owner_days(ENVIRONMENT, guard, 2, [AT.date()])
        for guard in (GUARD, OTHER)
    }
    return {guard: row.loops for guard, (row,) in rows.items()}


@pytest.mark.parametrize(
    ("loop_type", "named", "counted"),
    [
        pytest.param(
            "total_tool_calls",
            None,
            {GUARD: 1, OTHER: 1},
            id="a protection without a rollout is other to every guard",
        ),
        pytest.param(
            "identical_tool_call",
            None,
            {GUARD: 1, OTHER: 0},
            id="the loop type names the guard that stopped",
        ),
        pytest.param(
            "repeated_tool_execution_failure",
            GUARD,
            {GUARD: 0, OTHER: 1},
            id="the event names the guard, and its type agrees",
        ),
        pytest.param(
            "identical_tool_call",
            "one_of_ours",
            {GUARD: 1, OTHER: 1},
            id="the guard that is named is the one that stopped",
        ),
    ],
)
def test_a_loop_event_is_evidence_of_every_guard_but_its_own(
    context, host, prompt, loop_type, named, counted
):
    host.send(logs([prompt.start(), loop(prompt, loop_type, guard=named), prompt.end()]))
    assert loops_of(context) == counted


def test_a_loop_event_counts_once_however_often_and_encoded_it_is_sent(context, host, prompt):
    events = [loop(prompt, "total_tool_calls"), loop(prompt, "total_tool_calls", seconds=21)]
    for encoding in (Encoding.PROTOBUF, Encoding.JSON, Encoding.PROTOBUF):
        assert partial_of(host.send(logs([*events, *prompt.events()]), encoding)) == (0, "")
    assert loops_of(context) == {GUARD: 2, OTHER: 2}


def test_its_volume_stays_one_count_without_a_guard(context, host, prompt):
    host.send(logs([*prompt.events(), loop(prompt, "total_tool_calls")]))
    counted = context.evidence.counters(ENVIRONMENT, AT.date())
    assert {(stratum.guard, name): count for (stratum, name), count in counted.items()} == {
        ("unnamed", NAME): 1
    }


def test_without_an_id_it_is_only_volume(context, host, prompt):
    unknown = Prompt(prompt.prompt_id, [], AT)
    host.send(logs([*prompt.events(), loop(unknown, "total_tool_calls")]))
    assert loops_of(context) == {GUARD: 0, OTHER: 0}
    counted = context.evidence.counters(ENVIRONMENT, AT.date())
    assert {name: count for (_, name), count in counted.items()} == {NAME: 1}


def test_a_loop_event_does_not_make_a_prompt_that_conforms_count_twice(context, host, prompt):
    host.send(logs([*prompt.events(), loop(prompt, "total_tool_calls")]))
    context.evidence.seal(ENVIRONMENT, AT.date(), at=NOW, longest_outage_seconds=0.0)
    (day,) = context.evidence.sealed_days(ENVIRONMENT, [AT.date()])
    assert (day.records, day.conforming, day.ended) == (2, 2, 1)
