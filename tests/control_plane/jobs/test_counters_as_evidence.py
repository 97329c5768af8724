"""Counters as evidence: complete days, owner-days and a gate evaluation."""

import re
from collections import defaultdict
from dataclasses import replace
from datetime import date, timedelta

import orjson
import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)

from guardwave.control_plane.core.state import Action
from guardwave.control_plane.jobs.seal import seal_due_days
from guardwave.control_plane.queries.intake_health import environment_days
from guardwave.control_plane.queries.overview import guard_page
from guardwave.control_plane.rollouts.changes import Change, Note, change, put_rollout
from guardwave.control_plane.rollouts.days import wave_days
from guardwave.control_plane.stores.keys import EvidenceKeys
from guardwave.reducer.rollout.days import NoteMark, day_start
from guardwave.reducer.rollout.state import EvidenceSource
from guardwave.reducer.vocabulary import Metric, Mode
from tests.support.counting import CUMULATIVE, DELTA, Interval, hours_of, metrics
from tests.support.hosts import Prompt, partial_of
from tests.support.lives import Life
from tests.support.worlds import ENVIRONMENT, GUARD, OPERATOR, WHY

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


def live(
    life: Life,
    days: int = 1,
    *,
    temporality: int = DELTA,
    events: bool = False,
    lost: int = 0,
) -> None:
    """Let days pass on which each owner's own process exports its counters every hour.

    With `events` the host sends each prompt's events too, but for `lost` prompts of a day.
    """
    for _ in range(days):
        day = life.today + timedelta(days=1 if life.calendar.now.hour >= 12 else 0)
        life.beat(day)
        life.calendar.now = day_start(day) + timedelta(hours=24, minutes=30)
        sent = by_owner(life, day)
        body = ExportMetricsServiceRequest()
        for owner, prompts in sent.items():
            body.MergeFrom(exports(owner, prompts, temporality=temporality))
        assert partial_of(life.host.send(body), "metrics") == (0, "")
        if events:
            every = [prompt for prompts in sent.values() for prompt in prompts]
            assert life.host.send_prompts(*every[lost:]).body == b""
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
        counted = of_hour if is_delta else so_far
        request.MergeFrom(metrics(counted, interval, owner=owner, environment=ENVIRONMENT))
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
    estimated = {metric["metric"] for metric in result["metrics"] if metric["estimate"] is not None}
    assert {Metric.TOKENS, Metric.TURNS, Metric.LATENCY_P95, Metric.DISRUPTION} <= estimated


def test_events_of_a_rollout_by_counters_are_no_evidence_of_it(life):
    count_by_counters(life)
    life.live(2)
    days = wave_days(life.context, ENVIRONMENT, life.wave, COUNTERS)
    assert not any(day.is_complete for day in days)
    assert "no prompt ended on it" in {day.reason for day in days}


def send(life: Life, body: ExportMetricsServiceRequest) -> None:
    assert partial_of(life.host.send(body), "metrics") == (0, "")


def over_midnight(life: Life, day: date) -> ExportMetricsServiceRequest:
    """Return what a process counted from an hour before the day to an hour into it."""
    (_, prompts), *_ = by_owner(life, day).items()
    midnight, hour = day_start(day), timedelta(hours=1)
    interval = Interval(midnight - hour, midnight + hour)
    counted = [replace(prompts[0], decisions=())]
    return metrics(counted, interval, owner="another process", environment=ENVIRONMENT)


def test_a_day_that_counters_smear_counts_and_the_evaluation_says_so(life):
    count_by_counters(life)
    live(life, 7)
    assert life.promote(Mode.WARN).refusal is None
    live(life, 3)
    send(life, over_midnight(life, life.today))
    live(life, 5)
    smeared = [
        day for day in wave_days(life.context, ENVIRONMENT, life.wave, COUNTERS) if day.notes
    ]
    assert [day.is_complete for day in smeared] == [True, True]
    assert {note.mark for day in smeared for note in day.notes} == {NoteMark.SMEARED}
    page = guard_page(life.context, ENVIRONMENT, GUARD)
    assert [day.day for day in page.days if day.notes] == [day.day for day in smeared]
    result = orjson.loads(life.evaluate().result or "{}")
    (dwell,) = [check for check in result["checks"] if check["check"] == "dwell"]
    assert dwell["verdict"] == "within"
    assert dwell["numbers"]["noted"] == 2
    assert "2 of the days used are not exact" in dwell["sentence"]
    assert "cross midnight" in dwell["sentence"]


def test_a_day_whose_counters_lost_their_attributes_does_not_count(life):
    count_by_counters(life)
    live(life, 2)
    (_, prompts), *_ = by_owner(life, life.today).items()
    noon = life.calendar.now
    body = metrics(
        prompts[:1],
        Interval(noon - timedelta(hours=1), noon),
        owner="more",
        environment=ENVIRONMENT,
    )
    for metric in body.resource_metrics[0].scope_metrics[0].metrics[:1]:
        (point,) = metric.sum.data_points
        del point.attributes[:]
        point.attributes.add(key="otel.metric.overflow").value.bool_value = True
    send(life, body)
    live(life, 1)
    *_, day = wave_days(life.context, ENVIRONMENT, life.wave, COUNTERS, newest=1)
    before, day = wave_days(life.context, ENVIRONMENT, life.wave, COUNTERS)[-3:-1]
    assert before.is_complete
    assert not day.is_complete
    assert day.reason == "1 point came without attributes, beyond the cardinality limit of an SDK"
    days = environment_days(life.context, ENVIRONMENT)
    (by_events,) = [shown for shown in days if shown.day == day.day]
    assert by_events.reason == "no prompt ended on it"
    (overflowed,) = [note for note in by_events.notes if note.mark is NoteMark.OVERFLOWED]
    assert overflowed.sentence.startswith("1 point of counters came without attributes")


def test_the_fields_of_a_day_are_those_that_its_key_documents(life, store):
    live(life, 2, events=True)
    send(life, over_midnight(life, life.today))
    documented = set(re.findall(r"`([a-z_]+:?)`", EvidenceKeys.day.__doc__ or ""))
    held = {name.decode() for key in store.scan_iter("dy:*") for name in store.hkeys(key)}
    hours = {f"{prefix}h{hour}" for prefix in ("", "c") for hour in range(24)}
    named = {name.partition(":")[0] + ":" if ":" in name else name for name in held - hours}
    by_counters = {f"c{name}" for name in ("ended", "records", "conforming", "smeared")}
    assert named == by_counters | {
        *("sealed_at", "outage", "revision", "ended", "covered", "records", "conforming"),
        *("told:", "shown:", "shown_since:", "smeared"),
    }
    assert named - by_counters <= documented


def test_a_smeared_day_changes_nothing_where_events_are_the_evidence(life):
    live(life, 2, events=True)
    send(life, over_midnight(life, life.today))
    live(life, 5, events=True)
    assert any(day.notes for day in wave_days(life.context, ENVIRONMENT, life.wave))
    assert not any(day.notes for day in guard_page(life.context, ENVIRONMENT, GUARD).days)
    result = orjson.loads(life.evaluate().result or "{}")
    (dwell,) = [check for check in result["checks"] if check["check"] == "dwell"]
    assert "not exact" not in dwell["sentence"]


def test_prompts_that_no_event_reports_are_noted_where_events_are_the_evidence(store):
    life = Life.begin(store, owners=60)
    live(life, 2, events=True)
    live(life, events=True, lost=1)
    live(life, 5, events=True)
    (noted,) = [day for day in guard_page(life.context, ENVIRONMENT, GUARD).days if day.notes]
    assert noted.is_complete
    assert [note.mark for note in noted.notes] == [NoteMark.UNTOLD]
    result = orjson.loads(life.evaluate().result or "{}")
    (dwell,) = [check for check in result["checks"] if check["check"] == "dwell"]
    assert (dwell["verdict"], dwell["numbers"]["noted"]) == ("within", 1)
    reason = f"({noted.day.isoformat()}: counters show 1 prompt that no event reports)"
    assert f"1 of the days used is not exact {reason}" in dwell["sentence"]
