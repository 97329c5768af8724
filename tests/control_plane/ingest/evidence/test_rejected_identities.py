"""Identities of rejected records: the same as if the records were accepted."""

from dataclasses import replace

import pytest

from guardwave.control_plane.ingest.evidence.rejected_items import record_identity
from guardwave.control_plane.ingest.model.records import (
    CounterPoint,
    Origin,
    PromptStart,
    Transition,
)
from guardwave.reducer.vocabulary import Decision, Mode, Route

FORGED = ("a1.forged",)
ORIGIN = Origin("host", "1.0.0", "host-1", "internal", 1, ())
START = PromptStart(
    origin=ORIGIN,
    time_ns=7,
    prompt_id="p-1",
    assignment_ids=FORGED,
    route=Route.INTERACTIVE_FOREGROUND,
)
FIRST = Transition(
    origin=ORIGIN,
    time_ns=7,
    prompt_id="p-1",
    assignment_ids=FORGED,
    guard="identical_call",
    sequence=1,
    ordinal=None,
    route=Route.INTERACTIVE_FOREGROUND,
    mode=Mode.SHADOW,
    phase_from=None,
    phase_to=None,
    decision=Decision.TRACKED,
    reset_reason=None,
    failure_bucket=None,
    batch_bucket=None,
    batch_complete=None,
    tool_type=None,
    terminal_status=None,
    execution_status=None,
    error_type=None,
    history_preserved=None,
)
COUNT = CounterPoint(
    origin=replace(ORIGIN, assignment_ids=FORGED),
    metric="agent.guard.prompts",
    guard="identical_call",
    mode=Mode.SHADOW,
    labels=(),
    start_ns=1,
    time_ns=7,
    value=1,
    identity=99,
)


@pytest.mark.parametrize(
    ("record", "again"),
    [
        pytest.param(START, replace(START, route=Route.CRON), id="a start by another route"),
        pytest.param(
            FIRST, replace(FIRST, batch_complete=True), id="a transition with more attributes"
        ),
        pytest.param(COUNT, replace(COUNT, labels=(("a", "b"),)), id="a point of one identity"),
    ],
)
def test_a_record_is_recognised_by_its_identity_alone(record, again):
    assert record_identity(again) == record_identity(record)


@pytest.mark.parametrize(
    ("record", "other"),
    [
        pytest.param(START, FIRST, id="a start and a transition"),
        pytest.param(START, replace(START, prompt_id="p-2"), id="of another prompt"),
        pytest.param(START, replace(START, time_ns=8), id="of another time"),
        pytest.param(START, replace(START, assignment_ids=("b",)), id="under another id"),
        pytest.param(START, replace(START, assignment_ids=(*FORGED, "b")), id="under one id more"),
        pytest.param(
            START, replace(START, origin=replace(ORIGIN, service_version="2")), id="of a version"
        ),
        pytest.param(FIRST, replace(FIRST, sequence=2), id="the transition after it"),
        pytest.param(FIRST, replace(FIRST, guard="side_effect"), id="of another guard"),
        pytest.param(FIRST, replace(FIRST, mode=Mode.WARN), id="in another mode"),
        pytest.param(COUNT, replace(COUNT, identity=98), id="another point"),
        pytest.param(COUNT, replace(COUNT, origin=ORIGIN), id="a point without an id"),
        pytest.param(
            COUNT,
            replace(COUNT, origin=replace(COUNT.origin, service_version="2")),
            id="a point of another version",
        ),
    ],
)
def test_a_record_with_another_identity_is_another(record, other):
    assert record_identity(other) != record_identity(record)
