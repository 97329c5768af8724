"""Sizes: the compact forms that docs/store.md promises, on every server."""

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import date

from guardwave.control_plane.stores.evidence.delta.dedupe_keys import DedupeKey
from guardwave.control_plane.stores.evidence.delta.prompt_events import (
    EndDelta,
    PromptKey,
    StartDelta,
    TransitionDelta,
)
from guardwave.control_plane.stores.evidence.delta.request import (
    EvidenceBatch,
    PromptEvent,
    VolumeEvent,
)
from guardwave.control_plane.stores.evidence.delta.strata import Stratum
from guardwave.control_plane.stores.evidence.store import EvidenceStore
from guardwave.control_plane.stores.keys import EvidenceKeys
from guardwave.reducer.vocabulary import Cohort, Mode, Outcome

POINT = VolumeEvent(
    DedupeKey(0, 1_800_000_000),
    date(2027, 1, 15),
    Stratum("identical_call", "1.0.0", mode=Mode.WARN),
    "n",
)


def test_four_thousand_identities_of_a_minute_stay_an_integer_set(any_store):
    digests = range(-(2**62), 2**62, 2**63 // 4000)
    points = tuple(
        replace(POINT, dedupe_key=DedupeKey(digest, POINT.dedupe_key.second)) for digest in digests
    )
    assert EvidenceStore(any_store).write("internal", EvidenceBatch(points)).new == len(digests)
    (key,) = any_store.keys("dd:*")
    assert any_store.object("encoding", key) == b"intset"
    assert any_store.memory_usage(key) / len(digests) < 10


def test_twenty_thousand_identities_of_a_minute_stay_integer_sets_and_are_known(any_store):
    evidence, dice = EvidenceStore(any_store), random.Random(1)
    digests = {dice.getrandbits(63) - 2**62 for _ in range(20_000)}
    points = tuple(
        replace(POINT, dedupe_key=DedupeKey(digest, POINT.dedupe_key.second)) for digest in digests
    )
    # 3,000 at a time: one of the writes begins in the first set and ends in others
    parts = [EvidenceBatch(points[at : at + 3_000]) for at in range(0, len(points), 3_000)]
    assert sum(evidence.write("internal", part).new for part in parts) == len(digests)
    keys = any_store.keys("dd:*")
    assert {any_store.object("encoding", key) for key in keys} == {b"intset"}
    assert sum(map(any_store.memory_usage, keys)) / len(digests) < 10
    assert {any_store.ttl(key) > 71 * 3600 for key in keys} == {True}
    assert [evidence.write("internal", part).new for part in reversed(parts)] == [0] * len(parts)


def test_a_minute_that_an_older_version_kept_in_one_large_set_is_still_known(any_store):
    held = range(5_000)
    any_store.sadd(f"dd:{EvidenceKeys('internal').slot}:{POINT.dedupe_key.bucket}", *held)
    points = tuple(
        replace(POINT, dedupe_key=DedupeKey(at, POINT.dedupe_key.second))
        for at in range(4_990, 5_010)
    )
    evidence = EvidenceStore(any_store)
    assert evidence.write("internal", EvidenceBatch(points)).new == 10
    assert evidence.write("internal", EvidenceBatch(points)).new == 0


# As many owners as one of the 256 hashes of a stratum and day holds of 10,000.
OWNERS, PROMPTS = 40, 10
STRATUM = Stratum("repeated_tool_failure", "1.4.2", 1, Cohort.ENFORCED, Mode.ENFORCE)


def owner_days() -> Iterator[PromptEvent]:
    """Yield the events of 40 owners with 10 prompts each, of durations far apart."""
    dice = random.Random(1)
    for _ in range(OWNERS):
        pseudonym = "".join(dice.choices("abcdefghijklmnopqrstuvwxyz234567", k=16))
        for _ in range(PROMPTS):
            prompt = PromptKey(pseudonym, f"{dice.getrandbits(64):016x}", 17)
            ended = EndDelta(
                outcome=Outcome.COMPLETED,
                tokens=dice.randrange(50_000),
                turns=dice.randrange(40),
                duration_bucket=dice.randrange(200, 900),
                transitions=1,
                calls_after_would_stop=0,
                hour=12,
            )
            for delta in (StartDelta(12), TransitionDelta(1, False, False, False), ended):
                dedupe_key = DedupeKey(dice.getrandbits(63) - 2**62, 1_800_000_000)
                yield PromptEvent(dedupe_key, prompt, date(2027, 1, 15), (STRATUM,), True, delta)


def test_an_owner_day_of_ten_prompts_takes_at_most_ninety_bytes(any_store):
    EvidenceStore(any_store).write("internal", EvidenceBatch(tuple(owner_days())))
    (key,) = any_store.keys("od:*")
    assert any_store.object("encoding", key) == b"listpack"
    assert any_store.memory_usage(key) / OWNERS <= 90
