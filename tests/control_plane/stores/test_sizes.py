"""The compact forms that docs/store.md promises, as every server keeps them."""

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import date

from control_plane.stores.cells import Cell
from control_plane.stores.evidence import EvidenceStore
from control_plane.stores.evidence_events import (
    Ended,
    EvidenceBatch,
    PromptEvent,
    PromptKey,
    Seen,
    Started,
    Transitioned,
    VolumeEvent,
)
from reducer.vocabulary import Cohort, Mode, Outcome

POINT = VolumeEvent(
    Seen(0, 1_800_000_000), date(2027, 1, 15), Cell("identical_call", "1.0.0", mode=Mode.WARN), "n"
)


def test_four_thousand_identities_of_a_minute_stay_an_integer_set(any_store):
    digests = range(-(2**62), 2**62, 2**63 // 4000)
    points = tuple(replace(POINT, seen=Seen(digest, POINT.seen.second)) for digest in digests)
    assert EvidenceStore(any_store).write("internal", EvidenceBatch(points)).new == len(digests)
    (key,) = any_store.keys("dd:*")
    assert any_store.object("encoding", key) == b"intset"
    assert any_store.memory_usage(key) / len(digests) < 10


# As many owners as one of the 256 hashes of a cell and day holds of 10,000.
OWNERS, PROMPTS = 40, 10
CELL = Cell("repeated_tool_failure", "1.4.2", 1, Cohort.ENFORCED, Mode.ENFORCE)


def owner_days() -> Iterator[PromptEvent]:
    """Yield the events of 40 owners with 10 prompts each, of durations far apart."""
    dice = random.Random(1)
    for _ in range(OWNERS):
        pseudonym = "".join(dice.choices("abcdefghijklmnopqrstuvwxyz234567", k=16))
        for _ in range(PROMPTS):
            prompt = PromptKey(pseudonym, f"{dice.getrandbits(64):016x}", 17)
            ended = Ended(
                outcome=Outcome.COMPLETED,
                tokens=dice.randrange(50_000),
                turns=dice.randrange(40),
                duration_bucket=dice.randrange(200, 900),
                transitions=1,
                calls_after_would_stop=0,
                hour=12,
            )
            for news in (Started(12), Transitioned(1, False, False, False), ended):
                seen = Seen(dice.getrandbits(63) - 2**62, 1_800_000_000)
                yield PromptEvent(seen, prompt, date(2027, 1, 15), (CELL,), True, news)


def test_an_owner_day_of_ten_prompts_takes_at_most_ninety_bytes(any_store):
    EvidenceStore(any_store).write("internal", EvidenceBatch(tuple(owner_days())))
    (key,) = any_store.keys("od:*")
    assert any_store.object("encoding", key) == b"listpack"
    assert any_store.memory_usage(key) / OWNERS <= 90
