"""Floods: a sender with too many versions or streams harms only itself."""

from datetime import timedelta

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)

from guardwave.control_plane.core.clock import NANOSECONDS, to_ns
from guardwave.control_plane.core.otlp_request import Encoding
from guardwave.control_plane.stores.keys import EvidenceKeys
from guardwave.reducer.vocabulary import Role
from tests.support.hosts import Host, Prompt, assignment_for, logs, partial_of
from tests.support.otlp.bodies import counter_request
from tests.support.worlds import ENVIRONMENT, NOW, VERSION

AT = NOW - timedelta(hours=2)
MOST_VOLUME_STRATA = 4096
MOST_STREAMS, MOST_STARTS = 65_536, 32
TURNS = {"agent.guard.name": "repeated_tool_failure", "agent.guard.mode": "shadow"}
DELTA, CUMULATIVE = 1, 2


def flood(host: Host, versions: range) -> None:
    """Send a prompt's start without an assignment id from each of many versions."""
    request = ExportLogsServiceRequest()
    for at in versions:
        start = Prompt(f"of {at}", [], AT).start()
        request.MergeFrom(logs([start], version=f"9.{at}"))
    assert host.send(request).status == 200


@pytest.mark.parametrize(
    "is_own", [pytest.param(True, id="of its own"), pytest.param(False, id="of another token")]
)
def test_a_flood_of_versions_leaves_a_prompt_the_version_of_its_host(context, is_own):
    loud = Host(context, is_trusted=False)
    for first in range(0, MOST_VOLUME_STRATA + 10, 1000):
        flood(loud, range(first, min(first + 1000, MOST_VOLUME_STRATA + 10)))
    assert context.evidence.health(ENVIRONMENT)["overflow:cells"] == 10

    host = loud if is_own else Host(context)
    prompt = Prompt("a prompt", [assignment_for(context, "owner-1")[1]], AT)
    assert host.send(logs(prompt.events())).status == 200
    (row,) = context.evidence.owner_days(ENVIRONMENT, "repeated_tool_failure", 1, [NOW.date()])
    assert (row.version, row.started) == (VERSION, 1)
    assert context.evidence.health(ENVIRONMENT)["overflow:cells"] == 10


def turns(value: int, *, route: str, minute: int, temporality: int = CUMULATIVE, start: int = 0):
    """Return a point of turns, so many minutes after the first; each route has a stream."""
    began = to_ns(AT) + start * NANOSECONDS
    return counter_request(
        {**TURNS, "agent.guard.route": route},
        metric="agent.guard.turns",
        temporality=temporality,
        as_int=value,
        start_time_unix_nano=began,
        time_unix_nano=to_ns(AT) + minute * 60 * NANOSECONDS,
    )


def body(*requests: ExportMetricsServiceRequest) -> ExportMetricsServiceRequest:
    whole = ExportMetricsServiceRequest()
    for request in requests:
        whole.MergeFrom(request)
    return whole


@pytest.mark.parametrize("encoding", Encoding)
def test_points_of_streams_beyond_a_tokens_bound_are_reported_to_the_sender(
    context, store, encoding
):
    host = Host(context)
    (token,) = [token for token in context.credentials.tokens() if token.role is Role.INGEST]
    now = int(NOW.timestamp())
    known = {f"stream {at}": now for at in range(MOST_STREAMS - 1)}
    store.zadd(f"sn:{EvidenceKeys(ENVIRONMENT).slot}:{token.id}", known)
    sent = body(
        turns(5, route="cron", minute=5),
        turns(3, route="background", minute=5),
        turns(4, route="channel", minute=5),
        turns(2, route="notification", minute=5, temporality=DELTA),
    )
    rejected, why = partial_of(host.send(sent, encoding), "metrics")
    assert rejected == 2
    assert why.startswith(
        "stream_limit: a point is of a new stream, and its token has sent "
        f"{MOST_STREAMS:,} within 48 hours, or 262,144 within 7 days; "
    )
    assert "send deltas" in why
    assert why.endswith("(2 of 4 rejected: stream_limit 2)")
    assert sum(context.evidence.counters(ENVIRONMENT, NOW.date()).values()) == 5 + 2


def test_a_point_of_a_forgotten_start_is_reported_to_the_sender(context):
    host = Host(context)
    starts = range(MOST_STARTS + 1)
    for start in starts:
        point = turns(1, route="cron", minute=start + 1, start=60 * start)
        assert partial_of(host.send(point), "metrics") == (0, "")
    rejected, why = partial_of(host.send(turns(9, route="cron", minute=50)), "metrics")
    assert (rejected, why.partition(":")[0]) == (1, "stream_forgotten")
    assert sum(context.evidence.counters(ENVIRONMENT, NOW.date()).values()) == len(starts)
