"""The compact forms that docs/store.md promises, as the embedded server keeps them."""

from dataclasses import replace
from datetime import date

from control_plane.stores.cells import Cell
from control_plane.stores.evidence import EvidenceStore
from control_plane.stores.evidence_events import EvidenceBatch, Seen, VolumeEvent
from reducer.vocabulary import Mode

POINT = VolumeEvent(
    Seen(0, 1_800_000_000), date(2027, 1, 15), Cell("identical_call", "1.0.0", mode=Mode.WARN), "n"
)


def test_four_thousand_identities_of_a_minute_stay_an_integer_set(store):
    digests = range(-(2**62), 2**62, 2**63 // 4096)
    points = tuple(replace(POINT, seen=Seen(digest, POINT.seen.second)) for digest in digests)
    assert EvidenceStore(store).write("internal", EvidenceBatch(points)).new == 4096
    (key,) = store.keys("dd:*")
    assert store.object("encoding", key) == b"intset"
    assert store.memory_usage(key) / 4096 < 10
