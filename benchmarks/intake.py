"""What taking in telemetry costs, beside parsing it and beside answering without decoding.

Ratios of one run are what to read: the absolute numbers are this machine's. In process, the best
of many bodies counts, which leaves out what else the machine was doing; over HTTP, CPU time is the
web worker's own. With `--profile` it prints where the time of the whole path goes.
"""

import argparse
import cProfile
import io
import math
import pstats
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (  # noqa: E402  # path first
    ExportLogsServiceRequest,
)
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (  # noqa: E402
    ExportMetricsServiceRequest,
)

from benchmarks.intake_bodies import (  # noqa: E402
    EVENTS,
    FEW,
    OWNERS,
    POINTS,
    log_bodies,
    metric_body,
)
from benchmarks.intake_load import Cost, measure, serving  # noqa: E402
from control_plane.access import create_token  # noqa: E402
from control_plane.context import Context  # noqa: E402
from control_plane.data_plane.credential_cache import CredentialCache  # noqa: E402
from control_plane.ingest import otlp_proto  # noqa: E402
from control_plane.ingest.dialects.registry import wanted  # noqa: E402
from control_plane.ingest.door import Door  # noqa: E402
from control_plane.ingest.evidence import Bookkeeper  # noqa: E402
from control_plane.ingest.forms import Forms, Known  # noqa: E402
from control_plane.ingest.intake import Intake  # noqa: E402
from control_plane.ingest.otlp import ResourceLogs  # noqa: E402
from control_plane.ingest.portions import Addition, portions  # noqa: E402
from control_plane.ingest.reading import Receiving, read_logs  # noqa: E402
from control_plane.otlp_door import Limits, OtlpRequest  # noqa: E402
from control_plane.settings import Settings  # noqa: E402
from control_plane.startup import open_store  # noqa: E402
from control_plane.stores.embedded import EmbeddedServer  # noqa: E402
from control_plane.stores.evidence_events import EvidenceBatch  # noqa: E402
from reducer.vocabulary import Mode, Role  # noqa: E402
from tests.control_plane.ingest import published  # noqa: E402
from tests.control_plane.worlds import ENVIRONMENT, context_over, world_in  # noqa: E402

BODIES, PASSES = 200, 5
LIMITS = Limits()

Ways = dict[str, Callable[[bytes], object]]


def main() -> None:
    """Measure and print the tables."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--profile", action="store_true", help="print a profile, and no tables")
    options.add_argument("--seconds", type=float, default=4.0, help="of each measurement over HTTP")
    chosen = options.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="gw-") as directory,
        EmbeddedServer.start(Path(directory)) as server,
    ):
        context = context_over(open_store(Settings(data_dir=server.data_dir)))
        world_in(context, Mode.SHADOW, owners=10)
        context = replace(context, clock=replace(context.clock, wall_ns=time.time_ns))
        token = create_token(context, role=Role.INGEST, environment=ENVIRONMENT, is_trusted=True)
        keys = keys_of(context)
        if chosen.profile:
            profile(Door(Intake(context), CredentialCache(context)), token, keys)
            return
        measure_points()
        measure_logs(keys)
        measure_path(Door(Intake(context), CredentialCache(context)), token, keys)
        measure_http(server, token, keys, seconds=chosen.seconds)


def keys_of(context: Context) -> tuple[bytes, bytes]:
    """Return the environment's keys for pseudonyms and for the tags of assignment ids."""
    held = context.environments.load(ENVIRONMENT)
    assert held is not None
    return bytes.fromhex(held.pseudonym_key), bytes.fromhex(held.tag_key)


def measure_points() -> None:
    """Print what decoding metric points costs."""
    bodies = [metric_body(number) for number in range(BODIES)]
    print(f"metrics, {POINTS} points with nine attributes a body, CPU us for a point")
    compare(
        bodies,
        POINTS,
        {
            "parse by the published classes, no more": ExportMetricsServiceRequest.FromString,
            "decode": lambda body: otlp_proto.decode_metrics(
                body, limits=LIMITS, wanted=wanted().points
            ),
        },
        {"and walk all attributes": published.metrics},
    )


def measure_logs(keys: tuple[bytes, bytes]) -> None:
    """Print what decoding log records and making evidence of them costs, store apart."""
    for owners in (FEW, OWNERS):
        bodies = list(islice(log_bodies(keys, owners=owners), BODIES))
        bookkeeper = Bookkeeper(ENVIRONMENT, keys[1], "token")
        receiving = Receiving(ENVIRONMENT, time.time_ns(), forms=Forms())
        aggregate(bodies.pop(), bookkeeper=bookkeeper, receiving=receiving)
        print(f"\nlogs of {owners} owners, {EVENTS} events a body, CPU us for an event")
        compare(
            bodies,
            EVENTS,
            {
                "parse by the published classes, no more": ExportLogsServiceRequest.FromString,
                "decode, check and aggregate": partial(
                    aggregate, bookkeeper=bookkeeper, receiving=receiving
                ),
                "decode": partial(decode, known=known_of(receiving)),
            },
            {
                "decode what never came before": decode,
                "and walk all attributes": published.logs,
            },
            # a second time an owner would be known
            passes=PASSES if owners == FEW else 1,
        )


def decode(body: bytes, *, known: Known | None = None) -> tuple[ResourceLogs, ...]:
    """Decode log records to neutral values and runs."""
    return otlp_proto.decode_logs(body, limits=LIMITS, wanted=wanted().logs, known=known)


def known_of(receiving: Receiving) -> Known:
    """Return what earlier records said."""
    assert receiving.forms is not None
    return Known(receiving.forms, receiving.now_ns, receiving.clock)


def aggregate(body: bytes, *, bookkeeper: Bookkeeper, receiving: Receiving) -> bytes:
    """Return what the store is sent for a body."""
    decoded = read_logs(decode(body, known=known_of(receiving)), receiving)
    rebooked = [bookkeeper.book_runs(each) for each in decoded.repeated]
    additions: list[Addition] = [
        ((events,), seen) for each in rebooked for events, seen in each.prompts
    ]
    booked = [bookkeeper.book(record) for record in decoded.records]
    additions += [(each.events, each.sightings) for each in booked]
    (portion,) = portions(additions)
    return EvidenceBatch(portion.events, portion.sightings).packed()


def compare(bodies: list[bytes], items: int, *groups: Ways, passes: int = PASSES) -> None:
    """Print the CPU time of each way for an item, the best of all bodies, beside the first.

    The ways of a group take turns at each body, so that all of them meet the machine as it is then.
    One group comes behind another whose memory it would scatter.
    """
    floor = 0.0
    for ways in groups:
        best = dict.fromkeys(ways, math.inf)
        for body in bodies * passes:
            for what, way in ways.items():
                best[what] = min(best[what], cpu_of(way, body))
        for what, seconds in best.items():
            cost = seconds / items * 1e6
            floor = floor or cost
            print(f"{what:44}{cost:>8.2f}{floor / cost:>8.3f}")


def cpu_of(way: Callable[[bytes], object], body: bytes) -> float:
    """Return the CPU seconds that one body takes."""
    began = time.process_time()
    way(body)
    return time.process_time() - began


def measure_path(door: Door, token: str, keys: tuple[bytes, bytes]) -> None:
    """Print the rate of the whole path in one thread without HTTP, the store written in between."""
    print("\nwhole path in process, one thread, wall clock")
    for owners in (FEW, OWNERS):
        bodies = list(islice(log_bodies(keys, owners=owners, first=owners), BODIES))
        for what in ("new", "sent again"):
            began = time.perf_counter()
            for body in bodies:
                send(door, token, body)
            rate = EVENTS * BODIES / (time.perf_counter() - began)
            print(f"{f'{owners} owners, {what}':44}{rate:>12,.0f} events/s")


def send(door: Door, token: str, content: bytes) -> None:
    """Send one body and insist that all of it was taken in."""
    answer = door(
        OtlpRequest(
            signal="logs",
            content_type="application/x-protobuf",
            content_encoding=None,
            content_length=len(content),
            stream=io.BytesIO(content),
            authorization=f"Bearer {token}",
        )
    )
    if answer.status != 200 or answer.body:
        raise SystemExit(f"intake answered {answer.status}: {answer.body!r}")


def measure_http(
    server: EmbeddedServer, token: str, keys: tuple[bytes, bytes], *, seconds: float
) -> None:
    """Print what one web worker takes in over HTTP, and what it answers when it reads nothing."""
    runs = {
        "answer without decoding": ("unread:app", FEW),
        f"whole path, {FEW} owners": ("control_plane.wsgi:app", FEW),
        f"whole path, {OWNERS} owners": ("control_plane.wsgi:app", OWNERS),
    }
    print(f"\nHTTP, one worker, {EVENTS} events a request")
    print(f"{'':30}{'events/s':>10}{'of first':>9}{'CPU us':>8}{'p50 ms':>8}{'p99 ms':>8}")
    first: Cost | None = None
    for at, (what, (app, owners)) in enumerate(runs.items(), start=1):
        bodies = log_bodies(keys, owners=owners, first=at * 10_000_000)
        with serving(app, server) as worker:
            full = measure(worker, requests(bodies, token), seconds=seconds)
            first = first or full
            show(what, full, first)
            rate = full.per_second / 2
            half = measure(worker, requests(bodies, token), seconds=seconds, rate=rate)
            show("  at half of that load", half, first)


def requests(bodies: Iterable[bytes], token: str) -> Iterator[bytes]:
    """Yield the bodies as HTTP requests."""
    for body in bodies:
        head = (
            "POST /v1/logs HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\n"
            f"Authorization: Bearer {token}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        yield head.encode() + body


def show(what: str, cost: Cost, first: Cost) -> None:
    """Print one row, in events."""
    rate, share = cost.per_second * EVENTS, cost.per_second / first.per_second
    latency = f"{cost.p50_ms:>8.1f}{cost.p99_ms:>8.1f}"
    print(f"{what:30}{rate:>10,.0f}{share:>9.3f}{cost.cpu_us / EVENTS:>8.2f}{latency}")


def profile(door: Door, token: str, keys: tuple[bytes, bytes]) -> None:
    """Print where the time of the whole path goes, in one thread without HTTP."""
    bodies = list(islice(log_bodies(keys, owners=FEW), 2 * BODIES))
    for body in bodies[:BODIES]:
        send(door, token, body)
    watched = cProfile.Profile()
    watched.enable()
    for body in bodies[BODIES:]:
        send(door, token, body)
    watched.disable()
    pstats.Stats(watched).sort_stats("tottime").print_stats(25)


if __name__ == "__main__":
    main()
