"""Contract counts: one record of several guards counts once."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from guardwave.control_plane.stores.evidence.delta.dedupe_keys import DedupeKey
from guardwave.control_plane.stores.evidence.delta.prompt_events import (
    DisruptionDelta,
    EndDelta,
    PromptDelta,
    StartDelta,
)
from guardwave.control_plane.stores.evidence.delta.request import EvidenceBatch, PromptEvent
from guardwave.reducer.vocabulary import DisruptionKind, Outcome
from tests.support.stores.one_prompt import FRIDAY, GUARD, HERE, NOW, OTHER_GUARD, OWNER

SECOND = int(datetime(2026, 11, 27, 23, tzinfo=UTC).timestamp())
THIRD_GUARD = replace(GUARD, guard="duplicate_call_id")
NEWS: tuple[PromptDelta, ...] = (
    StartDelta(hour=23),
    EndDelta(Outcome.COMPLETED, 120, 3, 400, transitions=0, calls_after_would_stop=0, hour=23),
    *(DisruptionDelta(kind) for kind in DisruptionKind),
)


@pytest.mark.parametrize(
    ("first", "then"),
    [
        pytest.param((GUARD, OTHER_GUARD), (), id="sent once"),
        pytest.param((GUARD,), (OTHER_GUARD,), id="sent again for another guard"),
        pytest.param((GUARD,), (OTHER_GUARD, GUARD), id="sent again for more guards"),
        pytest.param((GUARD, OTHER_GUARD), (THIRD_GUARD, GUARD), id="sent again for others"),
    ],
)
def test_a_record_about_several_guards_is_one_record_of_the_contract(evidence, first, then):
    digests = {GUARD: 1, OTHER_GUARD: 2, THIRD_GUARD: 3}
    for sent in (first, then):
        events = [
            PromptEvent(
                DedupeKey(10 * kind + digests[guard], SECOND), OWNER, FRIDAY, (guard,), True, delta
            )
            for kind, delta in enumerate(NEWS)
            for guard in sent
        ]
        evidence.write(HERE, EvidenceBatch(tuple(events)))
    assert evidence.seal(HERE, FRIDAY, at=NOW, longest_outage_seconds=61.0)
    (sealed,) = evidence.sealed_days(HERE, [FRIDAY])
    assert (sealed.records, sealed.conforming) == (4, 4)
