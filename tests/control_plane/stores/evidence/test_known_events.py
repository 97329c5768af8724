"""Known events of a prompt: each counts once, however many there are."""

import itertools
import random
from dataclasses import replace
from datetime import date

import pytest
import redis
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from guardwave.control_plane.stores.evidence.delta.dedupe_keys import DedupeKey
from guardwave.control_plane.stores.evidence.delta.prompt_events import (
    PromptEvents,
    PromptKey,
    SharedAttributes,
    StartDelta,
    TransitionDelta,
)
from guardwave.control_plane.stores.evidence.delta.request import (
    EvidenceBatch,
    OwnerActivity,
    PromptEvent,
)
from guardwave.control_plane.stores.evidence.store import EvidenceStore, WriteResult
from guardwave.control_plane.stores.keys import EvidenceKeys
from guardwave.control_plane.stores.server.connection import reply_int, reply_text
from guardwave.reducer.vocabulary import Mode
from tests.support.stores.one_prompt import GUARD, HERE, OWNER
from tests.support.stores.prompt_histories import DAY

SECOND = 1_800_000_000
# The tokens in the value of a prompt; later ones are in a set beside it.
KNOWN_INSIDE = 512


def decided(digest: int, *, sequence: int = 1, second: int = SECOND) -> PromptEvent:
    delta = TransitionDelta(sequence, True, False, False)
    return PromptEvent(DedupeKey(digest, second), OWNER, DAY, (GUARD,), True, delta)


def write(evidence: EvidenceStore, *events: PromptEvent) -> WriteResult:
    return evidence.write(HERE, EvidenceBatch(events))


def would_stopped(evidence: EvidenceStore) -> int:
    start = PromptEvent(DedupeKey(-77, SECOND), OWNER, DAY, (GUARD,), True, StartDelta(7))
    write(evidence, start)
    (row,) = evidence.owner_days(HERE, GUARD.guard, GUARD.wave, [DAY])
    return row.would_stopped


@pytest.mark.parametrize(
    "digests",
    [
        pytest.param([0, 1, -1, 2**62 - 1, -(2**62)], id="the smallest and the largest"),
        pytest.param([5, 5 ^ 2**40, 5 ^ 2**52, 5 ^ 2**61], id="those that differ in a high bit"),
        pytest.param([2**61 + at for at in range(8)], id="those that differ in a low bit"),
    ],
)
@pytest.mark.parametrize("before", [0, KNOWN_INSIDE - 2, KNOWN_INSIDE], ids="{} came before".format)
def test_each_of_identities_that_are_close_counts_once(evidence, digests, before):
    dice = random.Random(7)
    write(evidence, *(decided(dice.getrandbits(61)) for _ in range(before)))
    events = [decided(digest) for digest in digests]
    assert write(evidence, *events, *events) == WriteResult(len(events), len(events))
    assert write(evidence, *reversed(events)) == WriteResult(0, len(events))
    assert would_stopped(evidence) == before + len(events)


def test_an_identity_that_lies_across_two_others_is_new(evidence):
    first, second, third = 0x0102030405060708, 0x1112131415161718, 0x0506070811121314
    # With the minute 0 an identity is kept as it is.
    write(evidence, decided(first, second=0), decided(second, second=0))
    assert write(evidence, decided(third, second=0)) == WriteResult(1, 0)
    assert write(evidence, decided(third, second=0)) == WriteResult(0, 1)


@pytest.mark.parametrize("before", [0, KNOWN_INSIDE], ids="{} came before".format)
def test_an_identity_of_another_minute_is_another_event(evidence, before):
    write(evidence, *(decided(1000 + at) for at in range(before)))
    assert write(evidence, decided(7), decided(7, second=SECOND + 60)) == WriteResult(2, 0)
    assert write(evidence, decided(7, second=SECOND + 59)) == WriteResult(0, 1)


def test_a_known_event_leaves_its_prompt_as_it_is(any_store, evidence):
    write(evidence, decided(7))
    (key,) = any_store.keys("ps:*")
    any_store.persist(key)
    write(evidence, decided(7))
    assert any_store.ttl(key) == -1


def test_a_thousand_events_of_a_prompt_take_ten_bytes_each_at_most(any_store, evidence):
    write(evidence, decided(0))
    (key,) = any_store.keys("ps:*")
    least = any_store.memory_usage(key)
    dice = random.Random(1)
    many = [decided(dice.getrandbits(61), sequence=at) for at in range(2, 1000)]
    write(evidence, *many)
    (beyond,) = any_store.keys("pd:*")
    assert any_store.object("encoding", beyond) == b"intset"
    assert any_store.scard(beyond) == 999 - KNOWN_INSIDE
    assert any_store.ttl(beyond) > 48 * 3600
    grown = any_store.memory_usage(key) - least + any_store.memory_usage(beyond)
    assert grown / len(many) <= 10
    assert write(evidence, *many).new == 0


def test_six_thousand_events_of_a_prompt_are_all_known_in_compact_sets(any_store, evidence):
    dice = random.Random(2)
    many = [decided(dice.getrandbits(61), sequence=at) for at in range(1, 6001)]
    for start in range(0, len(many), 500):
        write(evidence, *many[start : start + 500])
    sets = {key: any_store.scard(key) for key in any_store.keys("pd:*")}
    assert max(sets.values()) == 4096
    assert sum(sets.values()) == 6000 - KNOWN_INSIDE
    assert {any_store.object("encoding", key) for key in sets} == {b"intset"}
    assert min(map(any_store.ttl, sets)) > 48 * 3600
    assert write(evidence, *many) == WriteResult(0, 6000)
    assert would_stopped(evidence) == 6000


def sources_of(client: redis.Redis, environment: str) -> dict[str, int]:
    """Return the counters by version and treatment, without the times."""
    slot = EvidenceKeys(environment).slot
    held = {**client.hgetall(f"hs:{slot}"), **client.hgetall(f"ti:{slot}")}
    counts = {reply_text(name): reply_int(count) for name, count in held.items()}
    return {name: count for name, count in counts.items() if not name.endswith(("last", '_s"]'))}


def test_events_packed_together_count_by_version_like_single_events(any_store, evidence):
    strata = (GUARD, replace(GUARD, version="1.1.0", mode=Mode.WARN))
    one_by_one = [
        replace(decided(at, sequence=at), strata=(stratum,), health=health, generation=generation)
        for at, (stratum, health, generation, _) in enumerate(
            itertools.product(strata, ((), ("noted", "noticed")), (3, 4), range(3)), start=1
        )
    ]
    for event in (*one_by_one, *one_by_one[:5]):
        evidence.write("one", EvidenceBatch((event,)))

    shared: dict[str, SharedAttributes] = {}
    packed = []
    for event in (*one_by_one, *one_by_one[:5]):
        attributes = shared.setdefault(
            repr(replace(event.shared_attributes(), numbers=())), event.shared_attributes()
        )
        packed.append(event.row()._replace(shared=attributes))
    written = evidence.write("other", EvidenceBatch((PromptEvents.of(OWNER, packed),)))

    assert len(shared) == 8
    assert written == WriteResult(24, 5)
    assert evidence.health("other") == evidence.health("one")
    assert evidence.health("one")["noted"] == 12
    counted = sources_of(any_store, "one")
    assert counted['["","1.0.0","duplicate"]'] == 5
    assert counted[f"{GUARD.guard}|enforce|3|records"] == 6
    assert sources_of(any_store, "other") == counted


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@example(date(1970, 1, 1))
@example(date(2000, 2, 29))
@example(date(2100, 2, 28))
@example(date(2100, 3, 1))
@given(st.dates(date(1970, 1, 1), date(2400, 12, 31)))
def test_a_prompt_counts_on_the_day_of_its_start(any_store, day):
    """The store gets the day as a number and has no calendar of its own."""
    evidence, here = EvidenceStore(any_store), f"of-{day}"
    start = PromptEvent(DedupeKey(1, SECOND), OWNER, day, (GUARD,), True, StartDelta(7))
    evidence.write(here, EvidenceBatch((start,)))
    (row,) = evidence.owner_days(here, GUARD.guard, GUARD.wave, [day])
    assert (row.day, row.started) == (day, 1)


def test_one_call_takes_more_prompts_and_owners_than_one_command_would(any_store, evidence):
    names = [f"{number:016d}" for number in range(4_100)]
    started = [
        PromptEvent(
            DedupeKey(at, SECOND),
            PromptKey(name, name, at % 256),
            DAY,
            (GUARD,),
            True,
            StartDelta(7),
        )
        for at, name in enumerate(names)
    ]
    seen = frozenset(OwnerActivity(name, "1.0.0", "token", DAY, DAY, True) for name in names)
    batch = EvidenceBatch(tuple(started), seen)
    assert evidence.write(HERE, batch) == WriteResult(4_100, 0)
    assert evidence.write(HERE, batch) == WriteResult(0, 4_100)
    slot = EvidenceKeys(HERE).slot
    assert any_store.zcard(f"due:{slot}") == 4_100
    assert any_store.hlen(f"ow:{slot}") == 4_100
    ranks = [int(rank) for _, rank in any_store.zrange(f"oc:{slot}", 0, -1, withscores=True)]
    assert ranks == list(range(1, 4_101))
    rows = evidence.owner_days(HERE, GUARD.guard, GUARD.wave, [DAY])
    assert [(row.owner, row.started) for row in rows] == [(name, 1) for name in names]
