from datetime import date, timedelta

import pytest

from guardwave.control_plane.stores.evidence.delta.request import EvidenceBatch, OwnerActivity
from guardwave.control_plane.stores.evidence.store import EvidenceStore
from guardwave.control_plane.stores.owners import OwnerStore, StatedFacts
from guardwave.reducer.rollout.eligibility import OwnerFacts, Ownership

HERE = "internal"
TODAY = date(2026, 11, 29)
KNOWN = StatedFacts(Ownership.KNOWN, is_trusted=True)
UNKNOWN = StatedFacts(Ownership.UNKNOWN, is_trusted=False)


@pytest.fixture
def owners(any_store):
    return OwnerStore(any_store)


@pytest.fixture
def see(any_store):
    """Write the owner activity of one request, as intake does."""

    def write(*activity: OwnerActivity) -> None:
        EvidenceStore(any_store).write(HERE, EvidenceBatch((), frozenset(activity)))

    return write


def owner_activity(
    owner: str = "a", version: str = "1.0.0", *, day: date = TODAY, is_of_prompt: bool = True
) -> OwnerActivity:
    return OwnerActivity(owner, version, "collector", day, day - timedelta(days=16), is_of_prompt)


def test_stated_facts_are_counted_when_they_change_something(owners):
    assert owners.state_facts(HERE, {"a": KNOWN, "b": UNKNOWN}) == 2
    assert owners.state_facts(HERE, {"a": KNOWN, "b": KNOWN}) == 1
    assert owners.state_facts(HERE, {}) == 0
    assert owners.facts(HERE, ["a", "stranger"]) == {
        "a": OwnerFacts(ownership=Ownership.KNOWN, is_trusted=True)
    }


def test_versions_producers_and_prompt_days_are_learned_from_records(owners, see):
    yesterday = TODAY - timedelta(days=1)
    see(owner_activity(day=yesterday), owner_activity(version="1.1.0", is_of_prompt=False))
    see(owner_activity(day=yesterday))
    facts = owners.facts(HERE, ["a"])["a"]
    assert facts.ownership is None
    assert facts.versions == {"1.0.0": yesterday, "1.1.0": TODAY}
    assert facts.producers == {"collector": TODAY}
    assert facts.prompt_days == {yesterday}


def test_late_activity_takes_nothing_back(owners, see):
    see(owner_activity())
    see(owner_activity(day=TODAY - timedelta(days=2)))
    facts = owners.facts(HERE, ["a"])["a"]
    assert facts.versions == {"1.0.0": TODAY}
    assert facts.prompt_days == {TODAY, TODAY - timedelta(days=2)}


def test_what_is_older_than_sixteen_days_is_forgotten(owners, see):
    see(owner_activity(version="0.9.0", day=TODAY - timedelta(days=17)))
    see(owner_activity())
    assert owners.facts(HERE, ["a"])["a"].versions == {"1.0.0": TODAY}
    assert owners.facts(HERE, ["a"])["a"].prompt_days == {TODAY}


def test_only_owners_that_changed_since_are_answered(owners, see):
    owners.state_facts(HERE, {"a": KNOWN, "b": KNOWN})
    first = owners.changes(HERE, since=0)
    assert set(first.facts) == {"a", "b"}
    assert owners.changes(HERE, since=first.last_change).facts == {}

    see(owner_activity("b"))
    owners.state_facts(HERE, {"a": KNOWN})

    assert set(owners.changes(HERE, since=first.last_change).facts) == {"b"}


def test_seeing_the_same_again_is_no_change(owners, see):
    see(owner_activity())
    last_change = owners.changes(HERE, since=0).last_change
    see(owner_activity())
    assert owners.changes(HERE, since=last_change).last_change == last_change


def test_changes_are_read_page_by_page(owners):
    owners.state_facts(HERE, {f"owner-{number}": KNOWN for number in range(7)})
    changes = owners.changes(HERE, since=0, at_most=3)
    assert len(changes.facts) == 7
    assert changes.facts == owners.all_facts(HERE)
    assert changes.last_change == 7
