"""A sender that names without bound harms itself: what others send is counted as before."""

from datetime import timedelta

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from reducer.vocabulary import Mode
from tests.control_plane.hosts import Host, Prompt, assigned, logs
from tests.control_plane.worlds import ENVIRONMENT, NOW, VERSION, context_over, world_in

AT = NOW - timedelta(hours=2)
MOST_VOLUME_CELLS = 4096


@pytest.fixture
def context(store):
    return world_in(context_over(store), Mode.SHADOW).context


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
    for first in range(0, MOST_VOLUME_CELLS + 10, 1000):
        flood(loud, range(first, min(first + 1000, MOST_VOLUME_CELLS + 10)))
    assert context.evidence.health(ENVIRONMENT)["overflow:cells"] == 10

    host = loud if is_own else Host(context)
    prompt = Prompt("a prompt", [assigned(context, "owner-1")[1]], AT)
    assert host.send(logs(prompt.events())).status == 200
    (row,) = context.evidence.owner_days(ENVIRONMENT, "repeated_tool_failure", 1, [NOW.date()])
    assert (row.version, row.started) == (VERSION, 1)
    assert context.evidence.health(ENVIRONMENT)["overflow:cells"] == 10
