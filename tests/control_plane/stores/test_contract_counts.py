"""What the contract check counts: records, however many guards one of them is about."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from control_plane.stores.evidence_events import EvidenceBatch, PromptEvent
from control_plane.stores.prompt_news import Disrupted, Ended, PromptNews, Started
from control_plane.stores.seen import Seen
from reducer.vocabulary import DisruptionKind, Outcome
from tests.control_plane.stores.one_prompt import FRIDAY, GUARD, HERE, NOW, OTHER_GUARD, OWNER

SECOND = int(datetime(2026, 11, 27, 23, tzinfo=UTC).timestamp())
THIRD_GUARD = replace(GUARD, guard="duplicate_call_id")
NEWS: tuple[PromptNews, ...] = (
    Started(hour=23),
    Ended(Outcome.COMPLETED, 120, 3, 400, transitions=0, calls_after_would_stop=0, hour=23),
    *(Disrupted(kind) for kind in DisruptionKind),
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
                Seen(10 * kind + digests[guard], SECOND), OWNER, FRIDAY, (guard,), True, news
            )
            for kind, news in enumerate(NEWS)
            for guard in sent
        ]
        evidence.write(HERE, EvidenceBatch(tuple(events)))
    assert evidence.seal(HERE, FRIDAY, at=NOW, longest_outage_seconds=61.0)
    (sealed,) = evidence.sealed_days(HERE, [FRIDAY])
    assert (sealed.records, sealed.conforming) == (4, 4)
