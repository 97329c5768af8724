import threading
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardwave.control_plane.core.state import SYSTEM, Action, AuditEntry, Environment
from guardwave.control_plane.stores.audit import StoredEntry, verify
from guardwave.control_plane.stores.environments import EnvironmentStore, Put, PutField
from guardwave.control_plane.stores.keys import EnvironmentKeys
from guardwave.control_plane.stores.server.function_library import call

AT = datetime(2026, 11, 29, 12, tzinfo=UTC)
NEW = Environment("internal", pseudonym_key="ab", tag_key="cd")
KEYS = EnvironmentKeys("internal")
THREADS, CHANGES = 6, 8


@pytest.fixture
def environments(any_store):
    return EnvironmentStore(any_store)


def entry_after(before: Environment | None, target: str) -> AuditEntry:
    return AuditEntry(
        sequence=1 if before is None else before.sequence + 1,
        at=AT,
        actor=SYSTEM,
        action=Action.OWNER_FACTS_STATED,
        target=target,
        reason="a test changes it",
        previous="" if before is None else before.head,
    )


def commit(environments: EnvironmentStore, before: Environment | None, target: str) -> bool:
    """Change the environment as a command does, and write its target beside it."""
    entry = entry_after(before, target)
    after = replace(
        before or NEW,
        sequence=entry.sequence,
        head=entry.hash,
        revision=1 if before is None else before.revision + 1,
    )
    writes = (PutField(KEYS.violations, target, b"done"), Put(KEYS.wave(target, 1), b"done"))
    return environments.commit(before, after, writes=writes, entry=entry)


def commit_at_last(environments: EnvironmentStore, target: str) -> None:
    while not commit(environments, environments.load("internal"), target):
        pass  # another change came in between


def test_changes_that_race_are_each_made_once_and_the_chain_is_unbroken(any_store, environments):
    commit(environments, None, "creation")
    together = threading.Barrier(THREADS)

    def work(worker: int) -> None:
        together.wait()
        for change in range(CHANGES):
            commit_at_last(environments, f"{worker}-{change}")

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    targets = {f"{worker}-{change}" for worker in range(THREADS) for change in range(CHANGES)}
    chain = environments.audit_chain("internal")
    found = environments.load("internal")
    assert found is not None
    assert verify(chain, head=found.head) is None
    assert found.sequence == found.revision == len(chain) == 1 + THREADS * CHANGES
    assert int(any_store.hget(KEYS.state, "revision")) == found.revision
    audited = [entry["target"] for entry in environments.audit_entries("internal", count=1000)]
    assert sorted(audited) == sorted(targets | {"creation"})
    assert set(map(bytes.decode, any_store.hkeys(KEYS.violations))) == targets | {"creation"}


def test_a_lost_race_writes_nothing(any_store, environments):
    commit(environments, None, "creation")
    stale = environments.load("internal")
    assert commit(environments, stale, "the winner")
    before = {key: any_store.dump(key) for key in any_store.keys("*")}

    assert not commit(environments, stale, "the loser")

    assert {key: any_store.dump(key) for key in any_store.keys("*")} == before


def test_only_one_of_two_creations_wins(environments):
    assert commit(environments, None, "first")
    assert not commit(environments, None, "second")
    assert environments.names() == ("internal",)


def test_two_equal_changes_by_different_callers_are_not_taken_for_one(environments):
    commit(environments, None, "creation")
    before = environments.load("internal")
    assert commit(environments, before, "the same words at the same time")
    assert not commit(environments, before, "the same words at the same time")
    assert len(environments.audit_chain("internal")) == 2


def test_a_commit_repeated_over_a_broken_connection_is_applied_once_and_succeeds(any_store):
    keys = [KEYS.state, KEYS.audit, KEYS.wave("g", 1)]
    first: list[str | bytes] = ["", "head-1", "{}", "{}", "nonce-1", '[["SET", 3]]', b"one"]
    second = ["head-1", "head-2", "{}", "{}", "nonce-2", "[]"]
    assert call(any_store, "gw_commit", keys=keys, arguments=first) == 1
    assert call(any_store, "gw_commit", keys=keys[:2], arguments=second) == 1
    assert call(any_store, "gw_commit", keys=keys, arguments=first) == 1
    assert any_store.xlen(KEYS.audit) == 2
    assert any_store.hget(KEYS.state, "head") == b"head-2"


def test_the_library_lost_in_between_is_loaded_again(any_store, environments):
    any_store.function_flush("SYNC")
    assert commit(environments, None, "creation")


def a_chain(targets: list[str]) -> tuple[list[StoredEntry], str]:
    environment, chain = None, []
    for target in targets:
        entry = entry_after(environment, target)
        chain.append(StoredEntry(entry.canonical(), entry.hash))
        environment = replace(NEW, sequence=entry.sequence, head=entry.hash)
    return chain, chain[-1].hash if chain else ""


@given(st.lists(st.text(max_size=5), max_size=6))
def test_a_chain_as_written_is_whole(targets):
    chain, head = a_chain(targets)
    assert verify(chain, head=head) is None


@given(st.data())
def test_an_entry_edited_with_or_without_its_hash_is_noticed(data):
    chain, head = a_chain(data.draw(st.lists(st.text("abc"), min_size=1, max_size=6)))
    at = data.draw(st.integers(0, len(chain) - 1))
    edited = chain[at].text.replace("a test changes it", "a test changed it")
    alone = StoredEntry(edited, chain[at].hash)
    entry = replace(entry_after(None, "forged"), sequence=at + 1)
    rehashed = StoredEntry(entry.canonical(), entry.hash)
    for forged in (alone, rehashed):
        fault = verify([*chain[:at], forged, *chain[at + 1 :]], head=head)
        assert fault is not None
        assert fault.place in {at + 1, at + 2}


@given(st.data())
def test_a_dropped_entry_is_noticed(data):
    chain, head = a_chain(data.draw(st.lists(st.text("abc"), min_size=1, max_size=6)))
    at = data.draw(st.integers(0, len(chain) - 1))
    fault = verify([*chain[:at], *chain[at + 1 :]], head=head)
    assert fault is not None
    assert fault.place == at + 1


@given(st.data())
def test_two_swapped_entries_are_noticed(data):
    chain, head = a_chain(data.draw(st.lists(st.text("abc"), min_size=2, max_size=6)))
    places = st.lists(st.integers(0, len(chain) - 1), min_size=2, max_size=2, unique=True)
    one, other = sorted(data.draw(places))
    chain[one], chain[other] = chain[other], chain[one]
    fault = verify(chain, head=head)
    assert fault is not None
    assert fault.place == one + 1


def test_an_entry_in_a_chain_of_an_emptied_environment_is_noticed():
    chain, _ = a_chain(["one"])
    fault = verify(chain, head="")
    assert fault is not None
    assert "head" in fault.sentence


def test_an_environment_that_is_not_there_is_none(environments):
    assert environments.load("internal") is None
    assert environments.rollout("internal", "identical_call") is None
    assert environments.wave("internal", "identical_call", 1) is None
    assert environments.audit_chain("internal") == ()
