"""Retention: what no gate can use any more is deleted, and nothing else."""

from datetime import timedelta

import pytest

from guardwave.control_plane.jobs.retain import Retention
from guardwave.control_plane.queries.intake_health import intake_health
from guardwave.control_plane.stores.evidence.store import KEPT_DAYS
from guardwave.reducer.vocabulary import Mode
from tests.support.hosts import Calendar, Host, Prompt, assignment_for, logs, pseudonym_in
from tests.support.worlds import ENVIRONMENT, NOW, VERSION, context_over, world_in

LONG = timedelta(days=KEPT_DAYS + 1)


@pytest.fixture
def calendar():
    return Calendar(NOW)


@pytest.fixture
def context(any_store, calendar):
    return world_in(context_over(any_store, clock=calendar.clock), Mode.SHADOW, owners=4).context


def record_prompt(context, owner: str, *, at=NOW, version: str = VERSION) -> None:
    """Let a prompt of an owner come in."""
    prompt = Prompt(f"{owner} {at}", [assignment_for(context, owner)[1]], at)
    assert Host(context).send(logs([prompt.start()], version=version)).status == 200


def versions(context, owner: str) -> set[str]:
    facts = context.owners.all_facts(ENVIRONMENT).get(pseudonym_in(context, owner))
    return set() if facts is None else set(facts.versions)


def retain(context) -> None:
    retention = Retention(context)
    while retention.forget_next(ENVIRONMENT):
        pass


def test_an_owner_that_was_not_seen_for_long_is_forgotten(context, calendar):
    for owner in ("owner-1", "a stranger"):
        record_prompt(context, owner)
    calendar.now = NOW + LONG
    record_prompt(context, "owner-2", at=calendar.now)
    retain(context)
    assert versions(context, "owner-1") == set()
    assert versions(context, "owner-2") == {VERSION}
    known = context.owners.all_facts(ENVIRONMENT)
    # What a person stated of owner-1 stays; of the stranger nothing was.
    assert pseudonym_in(context, "owner-1") in known
    assert pseudonym_in(context, "a stranger") not in known


def test_recent_owners_and_versions_stay(context, calendar):
    record_prompt(context, "owner-1")
    calendar.now = NOW + LONG - timedelta(days=2)
    retain(context)
    assert versions(context, "owner-1") == {VERSION}
    assert [source.version for source in intake_health(context, ENVIRONMENT).sources] == [VERSION]


def test_versions_that_no_longer_send_leave_health(context, calendar):
    record_prompt(context, "owner-1", version="0.9.0")
    calendar.now = NOW + LONG
    record_prompt(context, "owner-1", at=calendar.now)
    retain(context)
    assert [source.version for source in intake_health(context, ENVIRONMENT).sources] == [VERSION]


def record_rejected_event(context, version: str, *, at=NOW) -> None:
    """Let an event come in that is refused, of a version of which nothing else comes."""
    prompt = Prompt(f"late {at}", [assignment_for(context, "owner-1")[1]], at - timedelta(days=3))
    assert b"late" in Host(context).send(logs([prompt.start()], version=version)).body


def health_versions(context) -> list[str]:
    return [source.version for source in intake_health(context, ENVIRONMENT).sources]


def test_versions_with_only_rejected_items_leave_health(context, calendar):
    record_rejected_event(context, "0.8.0")
    calendar.now = NOW + LONG - timedelta(days=2)
    retain(context)
    assert health_versions(context) == ["0.8.0"]
    record_rejected_event(context, "0.9.0", at=calendar.now)
    calendar.now = NOW + LONG
    retain(context)
    assert health_versions(context) == ["0.9.0"]


def test_a_producer_that_only_repeats_what_another_sent_leaves_health(context, calendar):
    started = logs([Prompt("p-1", [assignment_for(context, "owner-1")[1]], NOW).start()])
    Host(context).send(started)
    Host(context).send(started)
    assert sorted(
        source.counts.duplicate for source in intake_health(context, ENVIRONMENT).sources
    ) == [0, 1]
    calendar.now = NOW + LONG - timedelta(days=2)
    retain(context)
    assert health_versions(context) == [VERSION, VERSION]
    calendar.now = NOW + LONG
    retain(context)
    assert health_versions(context) == []


def test_a_day_whose_evidence_ended_is_no_day_any_more(context, any_store):
    record_prompt(context, "owner-1")
    assert context.evidence.days(ENVIRONMENT) == (NOW.date(),)
    retain(context)
    assert context.evidence.days(ENVIRONMENT) == (NOW.date(),)
    any_store.delete(*any_store.keys("dy:*"))
    retain(context)
    assert context.evidence.days(ENVIRONMENT) == ()


def test_a_version_that_is_not_used_any_more_leaves_no_stratum(context, calendar):
    record_prompt(context, "owner-1", version="0.9.0")
    calendar.now = NOW + LONG + timedelta(days=10)
    record_prompt(context, "owner-1", at=calendar.now)
    retain(context)
    assert {stratum.version for _, stratum in context.evidence.strata(ENVIRONMENT)} == {VERSION}


def test_every_part_of_evidence_ends_by_itself(context, any_store):
    record_prompt(context, "owner-1")
    kept = {"ps": 4, "od": KEPT_DAYS, "dy": KEPT_DAYS}
    for kind, days in kept.items():
        (key,) = any_store.keys(f"{kind}:*")
        assert 0 < any_store.ttl(key) <= days * 86_400, kind


def test_the_day_is_done_once(context):
    retention = Retention(context)
    assert retention.forget_next(ENVIRONMENT)
    assert not retention.forget_next(ENVIRONMENT)


def test_thousands_of_owners_are_looked_at_a_thousand_at_a_time(any_store, context, calendar):
    record_prompt(context, "owner-1")
    (key,) = any_store.keys("ow:*")
    (held,) = any_store.hvals(key)
    any_store.hset(key, mapping={f"owner number {at}": held for at in range(5000)})
    calendar.now = NOW + LONG
    retention = Retention(context)
    parts = 0
    while retention.forget_next(ENVIRONMENT):
        parts += 1
    assert parts > 3
    assert any_store.hlen(key) == 0
