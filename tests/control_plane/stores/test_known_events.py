"""A prompt knows which of its events were counted: each once, however many they are."""

import itertools
import random
from dataclasses import replace
from datetime import date

import pytest
import redis
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from control_plane.stores.evidence import EvidenceStore, Written
from control_plane.stores.evidence_events import EvidenceBatch, PromptEvent, Sighting
from control_plane.stores.keys import EvidenceKeys
from control_plane.stores.prompt_events import Like, PromptEvents, PromptKey
from control_plane.stores.prompt_news import Started, Transitioned
from control_plane.stores.replies import text, whole
from control_plane.stores.seen import Seen
from reducer.vocabulary import Mode
from tests.control_plane.stores.one_prompt import GUARD, HERE, OWNER
from tests.control_plane.stores.prompt_histories import DAY

SECOND = 1_800_000_000
# What a prompt knows in its own value; what comes then is in a set beside it.
OWN = 512


def decided(digest: int, *, sequence: int = 1, second: int = SECOND) -> PromptEvent:
    news = Transitioned(sequence, True, False, False)
    return PromptEvent(Seen(digest, second), OWNER, DAY, (GUARD,), True, news)


def write(evidence: EvidenceStore, *events: PromptEvent) -> Written:
    return evidence.write(HERE, EvidenceBatch(events))


def would_stopped(evidence: EvidenceStore) -> int:
    start = PromptEvent(Seen(-77, SECOND), OWNER, DAY, (GUARD,), True, Started(7))
    write(evidence, start)
    (row,) = evidence.owner_days(HERE, GUARD.guard, GUARD.wave, [DAY])
    return row.would_stopped


@pytest.mark.parametrize(
    "digests",
    [
        pytest.param([0, 1, -1, 2**62 - 1, -(2**62)], id="the ends of what there is"),
        pytest.param([5, 5 ^ 2**40, 5 ^ 2**52, 5 ^ 2**61], id="those that differ in a high bit"),
        pytest.param([2**61 + at for at in range(8)], id="those that differ in a low bit"),
    ],
)
@pytest.mark.parametrize("before", [0, OWN - 2, OWN], ids="{} came before".format)
def test_each_of_identities_that_are_close_counts_once(evidence, digests, before):
    dice = random.Random(7)
    write(evidence, *(decided(dice.getrandbits(61)) for _ in range(before)))
    events = [decided(digest) for digest in digests]
    assert write(evidence, *events, *events) == Written(len(events), len(events))
    assert write(evidence, *reversed(events)) == Written(0, len(events))
    assert would_stopped(evidence) == before + len(events)


def test_an_identity_that_lies_across_two_others_is_new(evidence):
    first, second, third = 0x0102030405060708, 0x1112131415161718, 0x0506070811121314
    # With the minute 0 an identity is kept as it is.
    write(evidence, decided(first, second=0), decided(second, second=0))
    assert write(evidence, decided(third, second=0)) == Written(1, 0)
    assert write(evidence, decided(third, second=0)) == Written(0, 1)


@pytest.mark.parametrize("before", [0, OWN], ids="{} came before".format)
def test_an_identity_of_another_minute_is_another_event(evidence, before):
    write(evidence, *(decided(1000 + at) for at in range(before)))
    assert write(evidence, decided(7), decided(7, second=SECOND + 60)) == Written(2, 0)
    assert write(evidence, decided(7, second=SECOND + 59)) == Written(0, 1)


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
    assert any_store.scard(beyond) == 999 - OWN
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
    assert sum(sets.values()) == 6000 - OWN
    assert {any_store.object("encoding", key) for key in sets} == {b"intset"}
    assert min(map(any_store.ttl, sets)) > 48 * 3600
    assert write(evidence, *many) == Written(0, 6000)
    assert would_stopped(evidence) == 6000


def sources_of(client: redis.Redis, environment: str) -> dict[str, int]:
    """Return what is counted by version and of treatment, without when."""
    slot = EvidenceKeys(environment).slot
    held = {**client.hgetall(f"hs:{slot}"), **client.hgetall(f"ti:{slot}")}
    counts = {text(name): whole(count) for name, count in held.items()}
    return {name: count for name, count in counts.items() if not name.endswith(("last", '_s"]'))}


def test_events_told_together_count_by_version_as_those_told_one_by_one(any_store, evidence):
    cells = (GUARD, replace(GUARD, version="1.1.0", mode=Mode.WARN))
    one_by_one = [
        replace(decided(at, sequence=at), cells=(cell,), health=health, generation=generation)
        for at, (cell, health, generation, _) in enumerate(
            itertools.product(cells, ((), ("noted", "noticed")), (3, 4), range(3)), start=1
        )
    ]
    for event in (*one_by_one, *one_by_one[:5]):
        evidence.write("one", EvidenceBatch((event,)))

    likes: dict[str, Like] = {}
    told = []
    for event in (*one_by_one, *one_by_one[:5]):
        like = likes.setdefault(repr(replace(event.like(), numbers=())), event.like())
        told.append(event.booked()._replace(like=like))
    written = evidence.write("other", EvidenceBatch((PromptEvents.of(OWNER, told),)))

    assert len(likes) == 8
    assert written == Written(24, 5)
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
def test_a_prompt_is_booked_on_the_day_that_its_start_names(any_store, day):
    """The day goes to the store as a number, which knows no calendar of its own."""
    evidence, here = EvidenceStore(any_store), f"of-{day}"
    start = PromptEvent(Seen(1, SECOND), OWNER, day, (GUARD,), True, Started(7))
    evidence.write(here, EvidenceBatch((start,)))
    (row,) = evidence.owner_days(here, GUARD.guard, GUARD.wave, [day])
    assert (row.day, row.started) == (day, 1)


def test_one_call_takes_more_prompts_and_owners_than_one_command_would(any_store, evidence):
    names = [f"{number:016d}" for number in range(4_100)]
    started = [
        PromptEvent(
            Seen(at, SECOND), PromptKey(name, name, at % 256), DAY, (GUARD,), True, Started(7)
        )
        for at, name in enumerate(names)
    ]
    seen = frozenset(Sighting(name, "1.0.0", "token", DAY, DAY, True) for name in names)
    batch = EvidenceBatch(tuple(started), seen)
    assert evidence.write(HERE, batch) == Written(4_100, 0)
    assert evidence.write(HERE, batch) == Written(0, 4_100)
    slot = EvidenceKeys(HERE).slot
    assert any_store.zcard(f"due:{slot}") == 4_100
    assert any_store.hlen(f"ow:{slot}") == 4_100
    ranks = [int(rank) for _, rank in any_store.zrange(f"oc:{slot}", 0, -1, withscores=True)]
    assert ranks == list(range(1, 4_101))
    rows = evidence.owner_days(HERE, GUARD.guard, GUARD.wave, [DAY])
    assert [(row.owner, row.started) for row in rows] == [(name, 1) for name in names]
