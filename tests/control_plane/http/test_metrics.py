"""Prometheus metrics: their series, and the tokens that may read them."""

from dataclasses import replace
from datetime import timedelta

import pytest
from prometheus_client.parser import text_string_to_metric_families

from guardwave.control_plane.commands.environments import create_environment
from guardwave.control_plane.ingest.model.rejections import IgnoreReason, RejectReason
from guardwave.control_plane.rollouts.access import create_token
from guardwave.control_plane.server.app import create_app
from guardwave.reducer.vocabulary import Invariant, Mode, Role
from tests.support.hosts import Host, Prompt, assignment_for, logs
from tests.support.lives import Life
from tests.support.worlds import ENVIRONMENT, GUARD, NOW, OPERATOR, WHY, context_over, world_in

# Every label of every series, and what it may be.
LABELS = {
    "environment": {ENVIRONMENT},
    "guard": {GUARD},
    "outcome": {"accepted", "duplicate", "refused", "quarantined", "ignored"},
    "reason": {"", *RejectReason, *IgnoreReason},
    "invariant": set(Invariant),
    "cause": {"untrusted", "unvouched"},
    "fault": {
        *("reset", "gap", "conflict", "fall", "unknown_start", "forgotten"),
        *("over_limit", "overflow", "explicit_bounds"),
    },
    "what": {"cells", "counters", "versions", "producers", "prompt_days"},
}


@pytest.fixture
def context(store):
    return world_in(context_over(store), Mode.SHADOW).context


@pytest.fixture
def client(context):
    return create_app(context).test_client()


def scrape(client, context, *, role: Role = Role.VIEWER, environment: str | None = ENVIRONMENT):
    token = create_token(context, role=role, environment=environment)
    return client.get("/metrics", headers={"Authorization": f"Bearer {token}"})


def samples(answer):
    assert answer.status_code == 200
    families = text_string_to_metric_families(answer.get_data(as_text=True))
    return [sample for family in families for sample in family.samples]


def value(answer, name: str, **labels: str) -> float:
    (found,) = [
        float(sample.value)
        for sample in samples(answer)
        if sample.name == name and labels.items() <= sample.labels.items()
    ]
    return found


def send_every_kind(context) -> None:
    """Let something of every kind arrive: accepted, repeated, refused, violating, ignored."""
    host, stranger = Host(context), Host(context, is_trusted=False)
    prompt = Prompt("p-1", [assignment_for(context, "owner-1")[1]], NOW)
    broken = prompt.transition(1, "reset", reset__reason="contract_violation")
    for _ in range(2):
        host.send(logs(prompt.events()))
    host.send(logs([Prompt("p-2", ["a1.forged"], NOW).start()]))
    host.send(logs([prompt.start()], resource={"service.version": ""}))
    stranger.send(logs([broken]))
    host.send(logs([prompt.transition(2, "reset", reset__reason="contract_violation")]))
    unnamed = {"service.instance.id": ""}
    host.send(logs([replace(prompt, prompt_id="p-3").start()], resource=unnamed))


def test_the_series_say_what_became_of_telemetry(client, context):
    send_every_kind(context)
    answer = scrape(client, context)
    records = "guard_telemetry_records_total"
    assert value(answer, records, outcome="accepted") == 5
    assert value(answer, "guard_telemetry_weak_identity_records_total") == 1
    assert value(answer, records, outcome="duplicate") == 2
    assert value(answer, records, outcome="refused", reason="forged_assignment") == 1
    assert value(answer, records, outcome="quarantined", reason="version_missing") == 1
    violations = value(answer, "guard_invariant_violations_total", invariant="contract_violation")
    assert violations == 1
    uncounted = "guard_telemetry_uncounted_violations_total"
    assert value(answer, uncounted, cause="untrusted", invariant="contract_violation") == 1
    last = value(answer, "guard_telemetry_last_record_timestamp_seconds")
    assert last == NOW.timestamp()


def test_no_label_names_an_owner_a_version_or_a_producer(client, context):
    send_every_kind(context)
    for sample in samples(scrape(client, context)):
        if sample.name == "guard_control_plane_build_info":
            continue
        for label, word in sample.labels.items():
            assert word in LABELS[label], sample


def test_without_any_record_there_is_no_time_of_the_last_one(client, context):
    names = {sample.name for sample in samples(scrape(client, context))}
    assert "guard_telemetry_last_record_timestamp_seconds" not in names
    assert "guard_control_plane_build_info" in names


def test_wrong_clocks_and_incomplete_days_are_reported(store):
    life = Life.begin(store)
    life.live(2)
    client = create_app(life.context).test_client()
    before = scrape(client, life.context)
    assert value(before, "guard_telemetry_skewed_sources") == 1  # it reported a whole day at once
    assert value(before, "guard_telemetry_incomplete_days") == 1  # that of the creation
    now = life.calendar.now
    life.host.send_prompts(
        replace(next(iter(life.prompts(now.date()))), at=now - timedelta(minutes=1))
    )
    life.calendar.now = now + timedelta(days=1)
    after = scrape(client, life.context)
    assert value(after, "guard_telemetry_skewed_sources") == 0
    assert value(after, "guard_telemetry_incomplete_days") == 2  # and one that is not sealed


def test_a_token_of_one_environment_reads_no_other(client, context):
    create_environment(context, "public-cloud", requires=None, actor=OPERATOR, reason=WHY)
    here = {sample.labels.get("environment") for sample in samples(scrape(client, context))}
    assert here == {None, ENVIRONMENT}
    admin = samples(scrape(client, context, role=Role.ADMIN, environment=None))
    assert {sample.labels.get("environment") for sample in admin} == {
        None,
        ENVIRONMENT,
        "public-cloud",
    }


@pytest.mark.parametrize(
    ("role", "status"),
    [
        pytest.param(None, 401, id="no token"),
        pytest.param(Role.INGEST, 403, id="a host's"),
        pytest.param(Role.RUNTIME, 403, id="a runtime's"),
        pytest.param(Role.OPERATOR, 200, id="an operator's"),
    ],
)
def test_series_are_for_those_who_may_view(client, context, role, status):
    if role is None:
        assert client.get("/metrics").status_code == status
    else:
        assert scrape(client, context, role=role).status_code == status
