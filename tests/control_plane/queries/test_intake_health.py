"""Intake health: counts, remedies, processes and days, as a person reads them."""

import re
from dataclasses import replace
from datetime import timedelta
from hashlib import blake2b
from pathlib import Path

import pytest

from guardwave.control_plane.commands.rollback import roll_back
from guardwave.control_plane.core.reject_reasons import IgnoreReason, RejectReason
from guardwave.control_plane.jobs.seal import seal_due_days
from guardwave.control_plane.queries import cards
from guardwave.control_plane.queries.intake_health import (
    IntakeCounts,
    environment_days,
    intake_health,
)
from guardwave.control_plane.queries.page_models import TelemetryState
from guardwave.reducer.rollout.assignment import Assignment
from guardwave.reducer.rollout.days import DayNote, NoteMark, day_start
from guardwave.reducer.vocabulary import Cohort, Mode
from tests.support.counting import Interval, metrics
from tests.support.hosts import Calendar, Host, Prompt, issue_id, logs, pseudonym_in
from tests.support.lives import BEGAN, Life
from tests.support.worlds import (
    ENVIRONMENT,
    GUARD,
    NOW,
    OPERATOR,
    VERSION,
    WHY,
    context_over,
    world_in,
)


@pytest.fixture
def calendar():
    return Calendar(NOW)


@pytest.fixture
def context(any_store, calendar):
    return world_in(context_over(any_store, clock=calendar.clock), Mode.ENFORCE).context


@pytest.fixture
def host(context):
    return Host(context)


def prompt(context, **changed) -> Prompt:
    owner = pseudonym_in(context, "owner-0")
    enforced = Assignment(GUARD, owner, 2, Cohort.ENFORCED, Mode.ENFORCE, 2)
    made = Prompt(
        "p-1", [issue_id(context, enforced)], NOW - timedelta(minutes=1), mode=Mode.ENFORCE
    )
    return replace(made, **changed)


def source(context, version: str):
    sources = intake_health(context, ENVIRONMENT).sources
    (found,) = [source for source in sources if source.version == version]
    return found


def test_accepted_and_repeated_items_are_reported_by_producer_and_version(context, host):
    other = Host(context)
    for _ in range(2):
        host.send(logs(prompt(context).events()))
    other.send(logs(prompt(context, prompt_id="p-2").events(), version="1.5.0"))
    health = intake_health(context, ENVIRONMENT)
    assert (health.counts.accepted, health.counts.duplicate) == (4, 2)
    assert len({(source.producer, source.version) for source in health.sources}) == 2
    mine = source(context, VERSION)
    assert (mine.counts.accepted, mine.counts.duplicate) == (2, 2)
    assert mine.producer != source(context, "1.5.0").producer
    assert mine.last_record_at == health.last_record_at == NOW


def test_rejected_items_are_reported_by_reason_and_version(context, host):
    host.send(logs([prompt(context, at=NOW - timedelta(days=3)).start()]))
    host.send(logs([prompt(context, ids=["a1.forged"]).start()], version="1.5.0"))
    health = intake_health(context, ENVIRONMENT)
    assert health.counts.refused == {"forged_assignment": 1, "late": 1}
    assert source(context, VERSION).counts.refused == {"late": 1}
    assert source(context, "1.5.0").counts.refused == {"forged_assignment": 1}
    assert set(health.counts.refused) <= set(RejectReason)


@pytest.mark.parametrize(
    ("resource", "remedy"),
    [
        pytest.param(
            {"deployment.environment.name": ""},
            "2 items were quarantined (environment_missing): set the resource attribute "
            "deployment.environment.name",
            id="no environment",
        ),
        pytest.param(
            {"deployment.environment": "public-cloud"},
            "2 items were quarantined (environment_conflict): set deployment.environment.name "
            "alone, or deployment.environment to the same value",
            id="two environments",
        ),
        pytest.param(
            {"service.version": ""},
            "2 items were quarantined (version_missing): set the resource attribute "
            "service.version",
            id="no version",
        ),
        pytest.param(
            {"deployment.environment.name": "public-cloud"},
            "2 items were refused (environment_mismatch): send with a token of that environment, "
            "or correct deployment.environment.name",
            id="the environment of another token",
        ),
    ],
)
def test_a_host_that_is_set_up_wrongly_is_shown_what_to_set(context, host, resource, remedy):
    host.send(logs(prompt(context).events(), resource=resource))
    assert intake_health(context, ENVIRONMENT).counts.remedies == (remedy,)
    # The page says it too, before the first record was accepted.
    found = cards.telemetry(context, ENVIRONMENT)
    assert (found.state, found.remedies) == (TelemetryState.NO_RECORDS, (remedy,))


def test_every_reason_has_its_remedy_and_the_items_of_one_are_counted_with_it():
    counts = IntakeCounts.of({f"refused:{reason}": 1 for reason in RejectReason})
    assert counts.remedies == tuple(
        f"1 item was refused ({reason}): {reason.remedy}" for reason in RejectReason
    )


def test_a_host_whose_items_all_count_gets_no_remedy(context, host):
    host.send(logs(prompt(context).events()))
    assert intake_health(context, ENVIRONMENT).counts.remedies == ()


def test_every_code_of_intake_is_explained_in_the_documents():
    document = (Path(__file__).parents[3] / "docs" / "telemetry.md").read_text()
    explained = re.findall(r"^\| `([a-z_]+)` \| ", document, re.MULTILINE)
    assert explained == [*RejectReason, *IgnoreReason]


def test_records_without_a_version_are_quarantined_under_an_empty_one(context, host):
    host.send(logs([prompt(context).start()], resource={"service.version": ""}))
    assert source(context, "").counts.quarantined == {"version_missing": 1}
    assert source(context, "").last_record_at is None


@pytest.mark.parametrize(
    ("offset", "is_skewed"),
    [
        pytest.param(timedelta(seconds=-60), False, id="an export's interval behind"),
        pytest.param(timedelta(minutes=4), True, id="ahead, and still accepted"),
        pytest.param(timedelta(hours=-3), True, id="hours behind"),
    ],
)
def test_a_clock_that_is_off_within_the_window_is_shown_as_skewed(context, host, offset, is_skewed):
    host.send(logs([prompt(context, at=NOW + offset).start()]))
    found = source(context, VERSION)
    assert found.ahead_seconds == offset.total_seconds()
    assert found.is_skewed is is_skewed


def test_a_host_that_cannot_distinguish_failures_is_counted_once_for_each_prompt(context, host):
    unreliable = {"reset__reason": "unreliable_input"}
    of = prompt(context)
    resets = [of.transition(at, "reset", **unreliable) for at in (1, 2)]
    host.send(logs([of.start(), *resets]))
    assert source(context, VERSION).counts.unreliable_prompts == 1


def test_gaps_of_streams_are_reported_by_version(context, host):
    for start, end in ((30, 25), (20, 15)):
        interval = Interval(NOW - timedelta(minutes=start), NOW - timedelta(minutes=end))
        host.send(metrics([prompt(context)], interval, owner="owner-0", environment=ENVIRONMENT))
    streams = source(context, VERSION).counts.streams
    assert set(streams) == {"gap"}
    assert streams == intake_health(context, ENVIRONMENT).counts.streams


def test_records_without_an_instance_are_reported_by_version_with_what_to_set(context, host):
    weak = {"service.instance.id": ""}
    for at in range(2):
        host.send(logs(prompt(context, prompt_id=f"p-{at}").events(), resource=weak))
    host.send(logs(prompt(context, prompt_id="p-2").events(), version="1.5.0"))
    health = intake_health(context, ENVIRONMENT)
    assert health.counts.weak_identity == 4
    assert source(context, VERSION).counts.weak_identity == 4
    assert source(context, "1.5.0").counts.weak_identity == 0
    assert source(context, "1.5.0").counts.remedies == ()
    (remedy,) = source(context, VERSION).counts.remedies
    assert remedy.startswith("4 records came without service.instance.id: set this resource")


def test_a_body_that_is_written_in_portions_counts_its_weak_identity_once(context, host):
    starts = [prompt(context, prompt_id=f"p-{at}").start() for at in range(1200)]
    host.send(logs(starts, resource={"service.instance.id": ""}))
    assert intake_health(context, ENVIRONMENT).counts.weak_identity == 1200
    assert source(context, VERSION).counts.weak_identity == 1200


def test_a_histogram_with_bounds_of_its_own_is_reported_with_what_to_set(context, host):
    interval = Interval(NOW - timedelta(minutes=5), NOW)
    body = metrics([prompt(context)], interval, owner="owner-0", environment=ENVIRONMENT)
    (found,) = [
        metric
        for metric in body.resource_metrics[0].scope_metrics[0].metrics
        if metric.name == "agent.guard.prompt.duration"
    ]
    (point,) = found.exponential_histogram.data_points
    shape = {
        word: getattr(point, word)
        for word in ("start_time_unix_nano", "time_unix_nano", "count", "sum", "attributes")
    }
    found.histogram.aggregation_temporality = 1  # type: ignore[assignment]  # number
    found.histogram.data_points.add(**shape, bucket_counts=[1])
    host.send(body)
    counts = source(context, VERSION).counts
    assert counts.streams == {"explicit_bounds": 1}
    (remedy,) = counts.remedies
    assert "1 point of agent.guard.prompt.duration" in remedy
    assert "base2_exponential_bucket_histogram" in remedy


def named(instance: str) -> str:
    return blake2b(instance.encode(), digest_size=8).hexdigest()


def test_processes_with_a_wrong_clock_are_reported_by_the_digest_of_their_id(context, host):
    early, late = prompt(context, at=NOW + timedelta(minutes=9)), NOW - timedelta(days=3)
    for _ in range(2):
        host.send(logs([early.start()], resource={"service.instance.id": "fast"}))
    slow = {"service.instance.id": "slow"}
    host.send(logs(prompt(context, at=late).events(), resource=slow, version="1.5.0"))
    host.send(logs([prompt(context, ids=["a1.forged"]).start()]))
    instances = intake_health(context, ENVIRONMENT).instances
    assert [(process.instance, process.version) for process in instances] == [
        (named("slow"), "1.5.0"),
        (named("fast"), VERSION),
    ]
    counts = [(process.late, process.future, process.gaps) for process in instances]
    assert counts == [(2, 0, 0), (0, 1, 0)]
    assert {process.last_at for process in instances} == {NOW}


def test_gaps_are_reported_of_the_process_until_late_points_fill_them(context, host):
    def send(start: int, end: int) -> None:
        interval = Interval(NOW - timedelta(minutes=start), NOW - timedelta(minutes=end))
        host.send(metrics([prompt(context)], interval, owner="owner-0", environment=ENVIRONMENT))

    send(30, 25)
    send(20, 15)
    (process,) = intake_health(context, ENVIRONMENT).instances
    assert process.instance == named("process of owner-0")
    assert process.gaps == intake_health(context, ENVIRONMENT).counts.streams["gap"]
    send(25, 20)
    assert intake_health(context, ENVIRONMENT).instances == ()


def test_the_processes_that_showed_something_last_are_known(context, host, calendar):
    for at in range(40):
        calendar.now = NOW + timedelta(seconds=at)
        early = prompt(context, prompt_id=f"p-{at}", at=calendar.now + timedelta(hours=1))
        host.send(logs([early.start()], resource={"service.instance.id": f"process {at}"}))
    health = intake_health(context, ENVIRONMENT)
    assert {instance.instance for instance in health.instances} == {
        named(f"process {at}") for at in range(8, 40)
    }
    assert health.counts.refused == {"future": 40}


def test_processes_that_outlive_a_rollback_are_still_enforcing(context, host, calendar):
    host.send(logs([prompt(context).start()]))
    assert intake_health(context, ENVIRONMENT).still_enforcing == ()
    calendar.now = NOW + timedelta(minutes=10)
    roll_back(context, ENVIRONMENT, actor=OPERATOR, reason=WHY)
    assert intake_health(context, ENVIRONMENT).still_enforcing == ()
    calendar.now = NOW + timedelta(minutes=20)
    host.send(logs([prompt(context).end()]))
    (found,) = intake_health(context, ENVIRONMENT).still_enforcing
    assert (found.guard, found.mode, found.generation) == (GUARD, Mode.ENFORCE, 2)
    assert (found.records, found.last_at) == (2, calendar.now)


def test_unverified_violations_change_nothing_and_are_reported(context, host):
    broken = prompt(context, ids=[]).transition(1, "reset", reset__reason="contract_violation")
    host.send(logs([broken]))
    counts = intake_health(context, ENVIRONMENT).counts
    assert counts.unvouched_violations == {"contract_violation": 1}
    assert counts.untrusted_violations == {}


def test_each_day_of_an_environment_says_why_it_is_not_complete(store):
    life = Life.begin(store)
    began = life.today
    life.live(2)
    days = environment_days(life.context, ENVIRONMENT)
    assert [day.day for day in days] == [began + timedelta(days=at) for at in range(3)]
    assert days[0].reason == "no heartbeat shows that intake was up"
    assert [day.reason for day in days[1:]] == [None, None]
    life.calendar.now += timedelta(days=20)
    assert len(environment_days(life.context, ENVIRONMENT)) == 14


def test_each_hash_of_a_day_is_read_once_for_all_that_is_shown_of_days(store):
    life = Life.begin(store)
    life.live(2)
    life.calendar.now += timedelta(days=20)
    store.config_resetstat()
    assert len(environment_days(life.context, ENVIRONMENT)) == 14
    shown, compared, beside = 14, 7, 2
    assert store.info("commandstats")["cmdstat_hgetall"]["calls"] == shown + compared + beside


def test_days_before_an_environment_existed_are_not_missed(store):
    life = Life.begin(store)
    assert environment_days(life.context, ENVIRONMENT) == ()
    life.calendar.now += timedelta(minutes=20)
    (day,) = environment_days(life.context, ENVIRONMENT)
    assert (day.day, day.reason) == (BEGAN.date(), "it is not sealed yet")


def test_evidence_from_before_an_environment_was_created_here_is_shown(store):
    life = Life.begin(store)
    life.context.imports.open(ENVIRONMENT, today=BEGAN.date()).add_day(
        BEGAN.date() - timedelta(days=3), {}
    )
    days = environment_days(life.context, ENVIRONMENT)
    assert [day.day for day in days] == [BEGAN.date() - timedelta(days=at) for at in (3, 2, 1)]


def lose(prompts: list[Prompt], lost: int, life: Life) -> None:
    """Let a host send a day's prompts and count them all, while its log queue drops some."""
    day = life.today
    life.beat(day)
    life.calendar.now = day_start(day) + timedelta(hours=24, minutes=30)
    life.host.send_prompts(*prompts[lost:])
    noon = day_start(day) + timedelta(hours=12)
    counted = metrics(
        prompts,
        Interval(noon, noon + timedelta(minutes=1)),
        owner="all",
        environment=ENVIRONMENT,
        resource={"agent.guard.assignment.id": ""},
    )
    life.host.send(counted)
    life.calendar.now = day_start(day) + timedelta(hours=27)
    seal_due_days(life.context, ENVIRONMENT)


@pytest.mark.parametrize(
    ("lost", "reason", "note"),
    [
        pytest.param(0, None, None, id="all arrived"),
        pytest.param(
            3,
            "counters show 3 prompts that no event reports, besides 197 that ended: events were "
            "lost on the way",
            "counters show 3 prompts that no event reports",
            id="three of 200 were dropped whole",
        ),
        pytest.param(
            2, None, "counters show 2 prompts that no event reports", id="two of 200 were"
        ),
    ],
)
def test_prompts_that_a_log_queue_dropped_whole_are_missed(store, lost, reason, note):
    life = Life.begin(store)
    life.live(1)
    prompts = [
        replace(prompt, prompt_id=f"{prompt.prompt_id}-{copy}")
        for prompt in life.prompts(life.today, per_owner=5)
        for copy in range(2)
    ][:200]
    lose(prompts, lost, life)
    day = environment_days(life.context, ENVIRONMENT)[-1]
    assert day.reason == reason
    assert day.notes == (() if note is None else (DayNote(NoteMark.UNTOLD, note),))
    (counts,) = day.prompts
    assert (counts.version, counts.by_events, counts.by_counters) == (VERSION, 200 - lost, 200)
    assert counts.untold == lost
