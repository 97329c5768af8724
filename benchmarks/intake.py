"""What taking in a request of 200 events costs, beside parsing its protobuf and no more.

Everything runs in one process without HTTP: body in, answer out, the store written in between.
Ratios of one run are what to read.
"""

import io
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (  # noqa: E402  # path first
    ExportLogsServiceRequest,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue  # noqa: E402

from control_plane.access import create_token  # noqa: E402
from control_plane.data_plane.credential_cache import CredentialCache  # noqa: E402
from control_plane.ingest.door import Door  # noqa: E402
from control_plane.ingest.intake import Intake  # noqa: E402
from control_plane.otlp_door import OtlpRequest  # noqa: E402
from control_plane.settings import Settings  # noqa: E402
from control_plane.startup import open_store  # noqa: E402
from control_plane.stores.embedded import EmbeddedServer  # noqa: E402
from reducer.rollout.assignment import Assignment, issue  # noqa: E402
from reducer.rollout.pseudonym import pseudonym_of  # noqa: E402
from reducer.vocabulary import Cohort, Mode, Role  # noqa: E402
from tests.control_plane.worlds import (  # noqa: E402
    ENVIRONMENT,
    GUARD,
    VERSION,
    context_over,
    world_in,
)

EVENTS = 200
BODIES = 100
FEW = 20


class Rate(NamedTuple):
    """Events a second of wall time, and the CPU time of this process for one, in microseconds.

    The store is a process of its own: its CPU time is in the first and not in the second.
    """

    per_second: float
    cpu_us: float


def main() -> None:
    """Measure and print the table."""
    with (
        tempfile.TemporaryDirectory(prefix="gw-") as directory,
        EmbeddedServer.start(Path(directory)) as server,
    ):
        context = context_over(open_store(Settings(data_dir=server.data_dir)))
        world_in(context, Mode.SHADOW, owners=10)
        held = context.environments.load(ENVIRONMENT)
        assert held is not None
        keys = bytes.fromhex(held.pseudonym_key), bytes.fromhex(held.tag_key)
        context = replace(context, clock=replace(context.clock, wall_ns=time.time_ns))
        token = create_token(context, role=Role.INGEST, environment=ENVIRONMENT, is_trusted=True)
        door = Door(Intake(context), CredentialCache(context))
        few = [body(keys, at, owners=FEW) for at in range(BODIES)]
        many = [body(keys, BODIES + at, owners=None) for at in range(BODIES)]
        floor = rate(ExportLogsServiceRequest.FromString, few)
        read = rate(lambda content: send(door, token, content, signal="traces"), few)
        print(f"{'':36}{'events/s':>12}{'of parsing':>12}{'CPU us/event':>14}")
        show("parse protobuf only", floor, floor)
        show("authorise, read, answer (no decode)", read, floor)
        show("whole path, few owners", rate(lambda each: send(door, token, each), few), floor)
        show("whole path, sent again", rate(lambda each: send(door, token, each), few), floor)
        show(
            "whole path, each event another owner",
            rate(lambda each: send(door, token, each), many),
            floor,
        )


def body(keys: tuple[bytes, bytes], number: int, *, owners: int | None) -> bytes:
    """Return one request of prompts: a start and an end each."""
    request = ExportLogsServiceRequest()
    resource = request.resource_logs.add()
    for key, text in (
        ("service.name", "bench"),
        ("service.version", VERSION),
        ("service.instance.id", "bench"),
        ("deployment.environment.name", ENVIRONMENT),
    ):
        resource.resource.attributes.append(pair(key, text))
    scope = resource.scope_logs.add()
    scope.scope.name, scope.scope.version = "agent.guard", "1"
    now = time.time_ns()
    for at in range(EVENTS // 2):
        owner = f"owner-{at % owners}" if owners else f"owner-{number}-{at}"
        pseudonym = pseudonym_of(keys[0], owner)
        assigned = Assignment(GUARD, pseudonym, 1, Cohort.EVERYONE, Mode.SHADOW, 1)
        common = (
            pair("agent.guard.prompt.id", f"prompt-{number}-{at}"),
            pair("agent.guard.assignment.id", issue(keys[1], ENVIRONMENT, assigned)),
        )
        start = scope.log_records.add(time_unix_nano=now, event_name="agent.guard.prompt.start")
        start.attributes.extend((*common, pair("agent.guard.route", "interactive_foreground")))
        end = scope.log_records.add(time_unix_nano=now, event_name="agent.guard.prompt.end")
        end.attributes.extend(
            (
                *common,
                pair("agent.guard.prompt.outcome", "completed"),
                pair("agent.guard.prompt.duration", 1.5),
                pair("agent.guard.prompt.turns", 4),
                pair("agent.guard.prompt.tool_calls", 6),
                pair("agent.guard.prompt.transitions", 0),
                pair("gen_ai.usage.input_tokens", 4000),
                pair("gen_ai.usage.output_tokens", 800),
            )
        )
    return request.SerializeToString()


def pair(key: str, value: str | float) -> KeyValue:
    """Return one attribute."""
    match value:
        case str():
            return KeyValue(key=key, value=AnyValue(string_value=value))
        case int():
            return KeyValue(key=key, value=AnyValue(int_value=value))
        case float():
            return KeyValue(key=key, value=AnyValue(double_value=value))


def send(door: Door, token: str, content: bytes, *, signal: str = "logs") -> None:
    """Send one body and insist that all of it was taken in."""
    answer = door(
        OtlpRequest(
            signal=signal,
            content_type="application/x-protobuf",
            content_encoding=None,
            content_length=len(content),
            stream=io.BytesIO(content),
            authorization=f"Bearer {token}",
        )
    )
    if answer.status != 200 or answer.body:
        raise SystemExit(f"intake answered {answer.status}: {answer.body!r}")


def rate(work: Callable[[bytes], object], bodies: list[bytes]) -> Rate:
    """Return how fast the work was, on the wall and in this process."""
    began, began_cpu = time.perf_counter(), time.process_time()
    for content in bodies:
        work(content)
    events = EVENTS * len(bodies)
    cpu = time.process_time() - began_cpu
    return Rate(events / (time.perf_counter() - began), 1e6 * cpu / events)


def show(what: str, found: Rate, floor: Rate) -> None:
    """Print one row."""
    share = found.per_second / floor.per_second
    print(f"{what:36}{found.per_second:>12,.0f}{share:>12.3f}{found.cpu_us:>14.2f}")


if __name__ == "__main__":
    main()
