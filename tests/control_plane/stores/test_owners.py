from datetime import date, timedelta

import pytest

from control_plane.stores.evidence import EvidenceStore
from control_plane.stores.evidence_events import EvidenceBatch, Sighting
from control_plane.stores.owners import OwnerStore, StatedFacts
from reducer.rollout.eligibility import OwnerFacts, Ownership

HERE = "internal"
TODAY = date(2026, 11, 29)
KNOWN = StatedFacts(Ownership.KNOWN, is_trusted=True)
UNKNOWN = StatedFacts(Ownership.UNKNOWN, is_trusted=False)


@pytest.fixture
def owners(any_store):
    return OwnerStore(any_store)


@pytest.fixture
def see(any_store):
    """Write sightings of one request, as intake does."""

    def write(*sightings: Sighting) -> None:
        EvidenceStore(any_store).write(HERE, EvidenceBatch((), frozenset(sightings)))

    return write


def sighting(
    owner: str = "a", version: str = "1.0.0", *, day: date = TODAY, is_of_prompt: bool = True
) -> Sighting:
    return Sighting(owner, version, "collector", day, day - timedelta(days=16), is_of_prompt)


def test_stated_facts_are_counted_when_they_change_something(owners):
    assert owners.state(HERE, {"a": KNOWN, "b": UNKNOWN}) == 2
    assert owners.state(HERE, {"a": KNOWN, "b": KNOWN}) == 1
    assert owners.state(HERE, {}) == 0
    assert owners.facts(HERE, ["a", "stranger"]) == {
        "a": OwnerFacts(ownership=Ownership.KNOWN, is_trusted=True)
    }


def test_versions_producers_and_prompt_days_are_learned_from_records(owners, see):
    yesterday = TODAY - timedelta(days=1)
    see(sighting(day=yesterday), sighting(version="1.1.0", is_of_prompt=False))
    see(sighting(day=yesterday))
    facts = owners.facts(HERE, ["a"])["a"]
    assert facts.ownership is None
    assert facts.versions == {"1.0.0": yesterday, "1.1.0": TODAY}
    assert facts.producers == {"collector": TODAY}
    assert facts.prompt_days == {yesterday}


def test_a_late_sighting_takes_nothing_back(owners, see):
    see(sighting())
    see(sighting(day=TODAY - timedelta(days=2)))
    facts = owners.facts(HERE, ["a"])["a"]
    assert facts.versions == {"1.0.0": TODAY}
    assert facts.prompt_days == {TODAY, TODAY - timedelta(days=2)}


def test_what_is_older_than_sixteen_days_is_forgotten(owners, see):
    see(sighting(version="0.9.0", day=TODAY - timedelta(days=17)))
    see(sighting())
    assert owners.facts(HERE, ["a"])["a"].versions == {"1.0.0": TODAY}
    assert owners.facts(HERE, ["a"])["a"].prompt_days == {TODAY}


def test_only_owners_that_changed_since_are_answered(owners, see):
    owners.state(HERE, {"a": KNOWN, "b": KNOWN})
    first = owners.changes(HERE, since=0)
    assert set(first.facts) == {"a", "b"}
    assert owners.changes(HERE, since=first.upto).facts == {}

    see(sighting("b"))
    owners.state(HERE, {"a": KNOWN})

    assert set(owners.changes(HERE, since=first.upto).facts) == {"b"}


def test_seeing_the_same_again_is_no_change(owners, see):
    see(sighting())
    upto = owners.changes(HERE, since=0).upto
    see(sighting())
    assert owners.changes(HERE, since=upto).upto == upto


def test_changes_are_read_page_by_page(owners):
    owners.state(HERE, {f"owner-{number}": KNOWN for number in range(7)})
    changes = owners.changes(HERE, since=0, at_most=3)
    assert len(changes.facts) == 7
    assert changes.facts == owners.all_facts(HERE)
    assert changes.upto == 7
