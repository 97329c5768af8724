import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from guardwave.control_plane.core.errors import StoreUnavailable
from guardwave.control_plane.core.settings import Settings
from guardwave.control_plane.stores.evidence.delta.dedupe_keys import DedupeKey
from guardwave.control_plane.stores.evidence.delta.prompt_events import (
    EndDelta,
    PromptDelta,
    PromptKey,
    StartDelta,
)
from guardwave.control_plane.stores.evidence.delta.request import EvidenceBatch, PromptEvent
from guardwave.control_plane.stores.evidence.delta.strata import Stratum
from guardwave.control_plane.stores.evidence.store import EvidenceStore
from guardwave.control_plane.stores.server.clients import connect
from guardwave.control_plane.stores.server.embedded import EmbeddedServer
from guardwave.control_plane.stores.server.function_library import load_functions
from guardwave.reducer.vocabulary import Cohort, Mode, Outcome
from tests.support.web_workers import PATIENCE_S

HERE = "internal"
DAY = date(2027, 1, 15)
SECOND = 1_800_000_000
STRATUM = Stratum("repeated_tool_failure", "1.0.0", 1, Cohort.ENFORCED, Mode.ENFORCE)
END = EndDelta(Outcome.COMPLETED, 10, 2, 5, transitions=0, calls_after_would_stop=0, hour=8)
WRITERS, BATCHES, PROMPTS = 4, 150, 10
KILLS = 8


@pytest.fixture
def server() -> Iterator[EmbeddedServer]:
    with (
        tempfile.TemporaryDirectory(prefix="gw-") as directory,
        EmbeddedServer.start(Path(directory)) as running,
    ):
        yield running


def batch(writer: int, number: int) -> EvidenceBatch:
    """Return the starts and ends of ten prompts that no other batch holds."""
    events: list[PromptEvent] = []
    for at in range(PROMPTS):
        place = (writer * BATCHES + number) * PROMPTS + at
        prompt = PromptKey(f"owner-{writer}-{at:08}", f"{place:016x}", at)
        both: tuple[PromptDelta, ...] = (StartDelta(8), END)
        events += [
            PromptEvent(
                DedupeKey(2 * place + which, SECOND + number), prompt, DAY, (STRATUM,), True, delta
            )
            for which, delta in enumerate(both)
        ]
    return EvidenceBatch(tuple(events))


class Writer(threading.Thread):
    """A host that sends until each of its batches is acknowledged."""

    def __init__(self, number: int, data_dir: Path, acknowledged: threading.Semaphore) -> None:
        super().__init__(daemon=True)
        self.number = number
        self.refusals = 0
        self._data_dir = data_dir
        self._acknowledged = acknowledged

    def run(self) -> None:
        with connect(Settings(data_dir=self._data_dir)) as client:
            evidence = EvidenceStore(client)
            for number in range(BATCHES):
                self._send(evidence, batch(self.number, number))
                self._acknowledged.release()

    def _send(self, evidence: EvidenceStore, body: EvidenceBatch) -> None:
        pause = threading.Event()
        while True:
            try:
                evidence.write(HERE, body)
            except StoreUnavailable:
                self.refusals += 1
                pause.wait(0.01)
            else:
                return


def test_a_store_killed_again_and_again_under_load_loses_and_doubles_nothing(server):
    with connect(Settings(data_dir=server.data_dir)) as client:
        load_functions(client)
    acknowledged = threading.Semaphore(0)
    writers = [Writer(number, server.data_dir, acknowledged) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    for _ in range(KILLS):
        for _ in range(WRITERS * BATCHES // (KILLS + 1)):
            assert acknowledged.acquire(timeout=PATIENCE_S)
        server.kill()
        assert server.ensure_running()
    for writer in writers:
        writer.join(timeout=PATIENCE_S)
        assert not writer.is_alive()

    assert sum(writer.refusals for writer in writers) > 0, "no kill met any traffic"
    with connect(Settings(data_dir=server.data_dir)) as client:
        evidence = EvidenceStore(client)
        rows = evidence.owner_days(HERE, STRATUM.guard, STRATUM.wave, [DAY])
        started = Counter({row.owner: row.started for row in rows})
        assert started == {
            f"owner-{writer}-{at:08}": BATCHES for writer in range(WRITERS) for at in range(PROMPTS)
        }
        assert all(row.completed == row.ended == row.covered == row.started for row in rows)
        assert all(row.durations == ((END.duration_bucket, BATCHES),) for row in rows)
        bodies = (batch(host, number) for host in range(WRITERS) for number in range(BATCHES))
        assert all(evidence.write(HERE, body).new == 0 for body in bodies)
