"""Cost of intake, beside parsing the same telemetry and beside answers without decoding.

Compare ratios of one run: absolute numbers depend on the machine. In process, the best of many
bodies counts, which ignores other work of the machine; over HTTP, CPU time is that of the web
worker alone. With `--profile` it prints a profile of the whole path.
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

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (  # path first
    ExportLogsServiceRequest,
)
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)

from benchmarks.intake_bodies import (
    EVENTS,
    FEW,
    OWNERS,
    POINTS,
    log_bodies,
    metric_body,
)
from benchmarks.intake_load import Cost, measure, serving
from guardwave.control_plane.core.otlp_request import Limits, OtlpRequest
from guardwave.control_plane.core.settings import Settings
from guardwave.control_plane.data_plane.credential_cache import CredentialCache
from guardwave.control_plane.ingest.decode.protobuf import bodies as otlp_proto
from guardwave.control_plane.ingest.dialects import wanted_scopes
from guardwave.control_plane.ingest.door import Door
from guardwave.control_plane.ingest.evidence.builder import EvidenceBuilder
from guardwave.control_plane.ingest.fast_path.layout_cache import LayoutCache, LayoutMatcher
from guardwave.control_plane.ingest.intake import Addition, Intake, write_batches
from guardwave.control_plane.ingest.model.otlp_values import ResourceLogs
from guardwave.control_plane.ingest.reading import RequestContext, read_logs
from guardwave.control_plane.rollouts.access import create_token
from guardwave.control_plane.rollouts.context import Context, open_store
from guardwave.control_plane.stores.evidence.delta.request import EvidenceBatch
from guardwave.control_plane.stores.server.embedded import EmbeddedServer
from guardwave.reducer.vocabulary import Mode, Role
from tests.support.otlp import published
from tests.support.worlds import ENVIRONMENT, context_over, world_in

BODIES, PASSES = 200, 5
LIMITS = Limits()

Methods = dict[str, Callable[[bytes], object]]


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
    """Print the cost of decoding metric points."""
    bodies = [metric_body(number) for number in range(BODIES)]
    print(f"metrics, {POINTS} points with nine attributes a body, CPU us for a point")
    compare(
        bodies,
        POINTS,
        {
            "parse by the published classes, no more": ExportMetricsServiceRequest.FromString,
            "decode": lambda body: otlp_proto.decode_metrics(
                body, limits=LIMITS, wanted_scopes=wanted_scopes().points
            ),
        },
        {"and walk all attributes": published.metrics},
    )


def measure_logs(keys: tuple[bytes, bytes]) -> None:
    """Print the cost of decoding log records and building evidence, without the store."""
    for owners in (FEW, OWNERS):
        bodies = list(islice(log_bodies(keys, owners=owners), BODIES))
        builder = EvidenceBuilder(ENVIRONMENT, keys[1], "token")
        request_context = RequestContext(ENVIRONMENT, time.time_ns(), layout_cache=LayoutCache())
        aggregate(bodies.pop(), builder=builder, request_context=request_context)
        print(f"\nlogs of {owners} owners, {EVENTS} events a body, CPU us for an event")
        compare(
            bodies,
            EVENTS,
            {
                "parse by the published classes, no more": ExportLogsServiceRequest.FromString,
                "decode, check and aggregate": partial(
                    aggregate, builder=builder, request_context=request_context
                ),
                "decode": partial(decode, layouts=layouts_of(request_context)),
            },
            {
                "decode without known layouts": decode,
                "and walk all attributes": published.logs,
            },
            # In a second pass no owner would be new.
            passes=PASSES if owners == FEW else 1,
        )


def decode(body: bytes, *, layouts: LayoutMatcher | None = None) -> tuple[ResourceLogs, ...]:
    """Decode log records to neutral values and record batches."""
    return otlp_proto.decode_logs(
        body, limits=LIMITS, wanted_scopes=wanted_scopes().logs, layouts=layouts
    )


def layouts_of(request_context: RequestContext) -> LayoutMatcher:
    """Return the layouts of earlier records."""
    assert request_context.layout_cache is not None
    return LayoutMatcher(
        request_context.layout_cache, request_context.now_ns, request_context.clock
    )


def aggregate(body: bytes, *, builder: EvidenceBuilder, request_context: RequestContext) -> bytes:
    """Return the evidence delta of a body, packed for the store."""
    request = read_logs(decode(body, layouts=layouts_of(request_context)), request_context)
    repeated = [builder.build_repeated(records) for records in request.repeated]
    additions: list[Addition] = [
        ((events,), activity) for built in repeated for events, activity in built.prompts
    ]
    deltas = [builder.build(record) for record in request.records]
    additions += [(delta.events, delta.activity) for delta in deltas]
    (batch,) = write_batches(additions)
    return EvidenceBatch(batch.events, batch.activity).packed()


def compare(bodies: list[bytes], items: int, *groups: Methods, passes: int = PASSES) -> None:
    """Print the CPU time for an item by each method, the best of all bodies, beside the first.

    The methods of a group take turns at each body, so that load of the machine affects all of them.
    A group that would fragment the memory of another runs after it.
    """
    floor = 0.0
    for methods in groups:
        best = dict.fromkeys(methods, math.inf)
        for body in bodies * passes:
            for label, method in methods.items():
                best[label] = min(best[label], cpu_of(method, body))
        for label, seconds in best.items():
            cost = seconds / items * 1e6
            floor = floor or cost
            print(f"{label:44}{cost:>8.2f}{floor / cost:>8.3f}")


def cpu_of(method: Callable[[bytes], object], body: bytes) -> float:
    """Return the CPU seconds that one body takes."""
    began = time.process_time()
    method(body)
    return time.process_time() - began


def measure_path(door: Door, token: str, keys: tuple[bytes, bytes]) -> None:
    """Print the rate of the whole path in one thread without HTTP, with writes to the store."""
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
    """Send one body and require that all of it was accepted."""
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
    """Print the rate of one web worker over HTTP, with and without decoding."""
    runs = {
        "answer without decoding": ("unread:app", FEW),
        f"whole path, {FEW} owners": ("guardwave.control_plane.server.wsgi:app", FEW),
        f"whole path, {OWNERS} owners": ("guardwave.control_plane.server.wsgi:app", OWNERS),
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
    """Print a profile of the whole path, in one thread without HTTP."""
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
