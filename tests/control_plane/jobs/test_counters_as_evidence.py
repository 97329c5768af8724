"""A rollout whose evidence comes from counters: complete days, owner-days and a gate evaluation."""

from collections import defaultdict
from dataclasses import replace
from datetime import timedelta

import orjson
import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)

from control_plane.commands.changes import Change, Note, change, put_rollout
from control_plane.jobs.sealing import seal_due_days
from control_plane.queries.days import wave_days
from control_plane.state import Action
from reducer.rollout.days import day_start
from reducer.rollout.state import EvidenceSource
from reducer.vocabulary import Metric, Mode
from tests.control_plane.counting import CUMULATIVE, DELTA, Interval, hours_of, metrics
from tests.control_plane.hosts import Prompt, partial_of
from tests.control_plane.lives import Life
from tests.control_plane.worlds import ENVIRONMENT, GUARD, OPERATOR, WHY

COUNTERS = EvidenceSource.COUNTERS
NOT_COUNTED = {
    "covered": 0,
    "durations": (),
    "scale": 7,
    "source": EvidenceSource.EVENTS,
    "loops": None,
}


@pytest.fixture
def life(store):
    return Life.begin(store)


def live(life: Life, days: int = 1, *, temporality: int = DELTA, events: bool = False) -> None:
    """Let days pass on which each owner's own process exports its counters every hour."""
    for _ in range(days):
        day = life.today + timedelta(days=1 if life.calendar.now.hour >= 12 else 0)
        life.beat(day)
        life.calendar.now = day_start(day) + timedelta(hours=24, minutes=30)
        told = by_owner(life, day)
        body = ExportMetricsServiceRequest()
        for owner, prompts in told.items():
            body.MergeFrom(exports(owner, prompts, temporality=temporality))
        assert partial_of(life.host.send(body), "metrics") == (0, "")
        if events:
            assert life.host.tell(*(each for own in told.values() for each in own)).body == b""
        life.calendar.now = day_start(day) + timedelta(hours=27)
        seal_due_days(life.context, ENVIRONMENT)


def by_owner(life: Life, day) -> dict[str, list[Prompt]]:
    found: defaultdict[str, list[Prompt]] = defaultdict(list)
    for prompt in life.prompts(day):
        at = prompt.at if prompt.at.hour else prompt.at + timedelta(hours=1)
        is_odd = prompt.at.minute % 3 == 0
        found[prompt.prompt_id.split("/")[0]].append(
            replace(prompt, at=at, decisions=("tracked", "would_stop"), is_disrupted=is_odd)
        )
    return found


def exports(owner: str, prompts: list[Prompt], *, temporality: int) -> ExportMetricsServiceRequest:
    """Return what an owner's process exports on a day, hour by hour."""
    request = ExportMetricsServiceRequest()
    begun = day_start(prompts[0].at.date())
    before = begun
    so_far: list[Prompt] = []
    for hour, of_hour in hours_of(prompts).items():
        so_far += of_hour
        is_delta = temporality == DELTA
        interval = Interval(before if is_delta else begun, hour, temporality)
        told = of_hour if is_delta else so_far
        request.MergeFrom(metrics(told, interval, owner=owner, environment=ENVIRONMENT))
        before = hour
    return request


def count_by_counters(life: Life) -> None:
    """Let the rollout take its evidence from counters."""
    after = replace(life.rollout, evidence_source=COUNTERS)
    note = Note(OPERATOR, Action.PROMOTED, GUARD, WHY)
    writes = (put_rollout(after),)
    change(life.context, ENVIRONMENT, lambda before: Change(before, writes, note, None))


@pytest.mark.parametrize(
    "temporality", [pytest.param(DELTA, id="delta"), pytest.param(CUMULATIVE, id="cumulative")]
)
def test_owner_days_by_counters_are_those_by_events(life, temporality):
    live(life, temporality=temporality, events=True)
    day = life.today - timedelta(days=1)
    by_events = life.context.evidence.owner_days(ENVIRONMENT, GUARD, 1, [day])
    by_counters = life.context.evidence.owner_days(ENVIRONMENT, GUARD, 1, [day], source=COUNTERS)
    assert len(by_events) == len(life.owners)
    assert [replace(row, **NOT_COUNTED) for row in by_counters] == [
        replace(row, **NOT_COUNTED) for row in by_events
    ]
    assert {row.scale for row in by_counters} == {5}
    assert ({row.loops for row in by_counters}, {row.loops for row in by_events}) == ({None}, {0})


def test_a_wave_with_counters_alone_reaches_a_complete_gate_evaluation(life):
    count_by_counters(life)
    live(life, 7)
    assert life.promote(Mode.WARN).refusal is None
    live(life, 8)
    done = life.evaluate()
    assert done.result is not None
    result = orjson.loads(done.result)
    assert len(done.days_used) == 7
    verdicts = {check["check"]: check["verdict"] for check in result["checks"]}
    assert verdicts["coverage"] == "no_data"
    assert verdicts["dwell"] == "within"
    assert verdicts["contract"] == "within"
    assert done.verdict != "within"
    assert verdicts["invariants"] == "no_data"
    told = {metric["metric"] for metric in result["metrics"] if metric["estimate"] is not None}
    assert {Metric.TOKENS, Metric.TURNS, Metric.LATENCY_P95, Metric.DISRUPTION} <= told


def test_events_of_a_rollout_by_counters_are_no_evidence_of_it(life):
    count_by_counters(life)
    life.live(2)
    days = wave_days(life.context, ENVIRONMENT, life.wave, COUNTERS)
    assert not any(each.is_complete for each in days)
    assert "no prompt ended on it" in {each.reason for each in days}
