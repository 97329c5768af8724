"""Memory of the store for each part of evidence, for docs/store.md.

10,000 owners (or the number given), each with 10 prompts of 3 events on one day under one guard,
and as many cumulative streams of three points, on the embedded Valkey and on every other server on
PATH. The keys of one kind after the other are removed, and the server reports the freed memory. Two
runs differ by a few per cent, because of hash tables.
"""

import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import redis  # path first

from guardwave.control_plane.core.settings import Settings
from guardwave.control_plane.stores.evidence.delta.dedupe_keys import DedupeKey
from guardwave.control_plane.stores.evidence.delta.points import PointEvent, Stream
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
from guardwave.control_plane.stores.server.clients import connect
from guardwave.control_plane.stores.server.connection import check_version
from guardwave.control_plane.stores.server.embedded import EmbeddedServer
from guardwave.control_plane.stores.server.function_library import load_functions
from guardwave.reducer.vocabulary import Cohort, Mode, Outcome

OWNERS = 10_000
PROMPTS = 10
EVENTS = 3
NOON = datetime(2027, 1, 15, 12, tzinfo=UTC)
# Dedupe keys of events without a prompt are in one set a minute up to 4,096, which is compact, and
# then in further sets: one pace stays below that, one goes above.
EVENTS_A_MINUTE = {"few": 3_900, "many": 39_000}
AT_ONCE = 3_000
STRATUM = Stratum("repeated_tool_failure", "1.4.2", 1, Cohort.ENFORCED, Mode.ENFORCE)


def main() -> None:
    """Measure each available server, and print a table."""
    owners = int(sys.argv[1]) if len(sys.argv) > 1 else OWNERS
    print(
        f"{'bytes':22}{'owner-day':>10}{'prompt':>8}{'seen, few':>11}{'seen, many':>12}"
        f"{'stream':>8}"
    )
    for program in (None, *filter(None, map(shutil.which, ("valkey-server", "redis-server")))):
        with (
            tempfile.TemporaryDirectory(prefix="gw-") as directory,
            EmbeddedServer.start(
                Path(directory), program=None if program is None else Path(program)
            ) as server,
            connect(Settings(data_dir=server.data_dir)) as client,
        ):
            load_functions(client)
            # The data is temporary, and syncing each write would take most of the time.
            client.config_set("appendfsync", "no")
            # Removed memory must be free when the server reports it.
            client.config_set("lazyfree-lazy-user-del", "no")
            taken = measure(client, owners)
            events = owners * PROMPTS * EVENTS
            few, many = (
                measure_dedupe_keys(client, events, pace) for pace in EVENTS_A_MINUTE.values()
            )
            stream = measure_streams(client, owners)
            name = " ".join(check_version(client))
            print(
                f"{name:22}{taken['od']:>10.0f}{taken['ps']:>8.0f}{few:>11.0f}{many:>12.0f}"
                f"{stream:>8.0f}"
            )


def measure(client: redis.Redis, owners: int) -> dict[str, float]:
    """Fill an empty store and return the bytes of an owner-day and of a prompt and its events."""
    client.flushdb()
    evidence = EvidenceStore(client)
    dice = random.Random(1)
    noon = int(NOON.timestamp())
    for _ in range(owners):
        evidence.write("internal", EvidenceBatch(tuple(owner_day(dice, noon))))
    return {
        "ps": (freed(client, "ps:*") + freed(client, "due:*")) / (owners * PROMPTS),
        "od": freed(client, "od:*") / owners,
    }


def measure_dedupe_keys(client: redis.Redis, events: int, a_minute: int) -> float:
    """Fill an empty store with events of no prompt, so many a minute; return the bytes of each."""
    client.flushdb()
    evidence = EvidenceStore(client)
    dice = random.Random(1)
    stratum = Stratum(STRATUM.guard, STRATUM.version, mode=STRATUM.mode)
    for start in range(0, events, AT_ONCE):
        volume_events = [
            VolumeEvent(
                DedupeKey(
                    dice.getrandbits(63) - 2**62, int(NOON.timestamp()) + 60 * (at // a_minute)
                ),
                NOON.date(),
                stratum,
                "agent.guard.transition",
            )
            for at in range(start, min(start + AT_ONCE, events))
        ]
        evidence.write("internal", EvidenceBatch(tuple(volume_events)))
    return freed(client, "dd:*") / events


def measure_streams(client: redis.Redis, count: int) -> float:
    """Fill an empty store and return the bytes of a stream whose points came on three days."""
    client.flushdb()
    evidence, dice = EvidenceStore(client), random.Random(1)
    began = int(NOON.timestamp())
    names = [f"{dice.getrandbits(64):016x}" for _ in range(count)]
    for day in range(3):
        second = began + 86_400 * day + 60
        for at in range(0, count, 500):
            points = tuple(
                PointEvent(
                    DedupeKey(dice.getrandbits(63) - 2**62, second),
                    NOON.date() + timedelta(days=day),
                    hour=12,
                    stratum=STRATUM,
                    counter="agent.guard.turns",
                    stream=Stream(name, True, began * 10**6, second * 10**6),
                    value=1000 * (day + 1),
                )
                for name in names[at : at + 500]
            )
            evidence.write("internal", EvidenceBatch(points, producer="host", now_second=second))
    return (freed(client, "cs:*") + freed(client, "sn:*")) / count


def owner_day(dice: random.Random, start: int) -> Iterator[PromptEvent]:
    """Yield the events of one owner's day."""
    pseudonym = "".join(dice.choices("abcdefghijklmnopqrstuvwxyz234567", k=16))
    bucket = dice.randrange(256)
    for _ in range(PROMPTS):
        prompt = PromptKey(pseudonym, f"{dice.getrandbits(64):016x}", bucket)
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
            dedupe_key = DedupeKey(dice.getrandbits(63) - 2**62, start)
            yield PromptEvent(
                dedupe_key,
                prompt,
                day=NOON.date(),
                strata=(STRATUM,),
                is_conforming=True,
                delta=delta,
            )


def freed(client: redis.Redis, pattern: str) -> int:
    """Remove the keys of a pattern and return by how many bytes the server shrank."""
    before = used(client)
    keys = list(client.scan_iter(pattern, count=10_000))
    for at in range(0, len(keys), 5_000):
        client.delete(*keys[at : at + 5_000])
    return before - used(client)


def used(client: redis.Redis) -> int:
    """Return the server's memory in use, in bytes."""
    return int(client.info("memory")["used_memory"])


if __name__ == "__main__":
    main()
