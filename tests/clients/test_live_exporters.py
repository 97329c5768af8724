"""Real exporters of two languages against a real server, also through a 503."""

import pytest

from tests.clients.conftest import output_of
from tests.clients.tap import Tap
from tests.support.web_workers import until

PYTHON = ["http/protobuf", "http/json", "grpc"]
JAVASCRIPT = ["json", "protobuf"]
# One server and one folder of JavaScript modules for all of them.
pytestmark = pytest.mark.xdist_group("clients")


@pytest.fixture
def tap(deployment):
    """A way to the web worker that notes its answers."""
    between = Tap(deployment.http_port)
    yield between
    between.close()


@pytest.mark.parametrize("protocol", PYTHON)
def test_what_the_python_exporters_send_is_stored(deployment, protocol):
    owner = f"owner-{PYTHON.index(protocol)}"
    port = deployment.grpc_port if protocol == "grpc" else deployment.http_port
    before = deployment.executions()
    host = deployment.python_host(protocol, deployment.assignment_id(owner), port=port)
    assert "fail" not in output_of(host).lower()
    assert deployment.started(owner) == 1
    assert deployment.executions() == before + 3


@pytest.mark.parametrize("encoding", JAVASCRIPT)
def test_what_the_javascript_exporters_send_is_stored(deployment, node_modules, encoding):
    owner = f"owner-{10 + JAVASCRIPT.index(encoding)}"
    before = deployment.executions()
    assignment_id = deployment.assignment_id(owner)
    host = deployment.js_host(encoding, assignment_id, port=deployment.http_port)
    assert "error" not in output_of(host).lower()
    assert deployment.started(owner) == 1
    assert deployment.executions() == before + 3


def through_an_absence(deployment, tap, host):
    """Let a host send while the store is away; start the store once the host was answered."""
    assert until(lambda: 503 in tap.statuses), "nobody was answered 503"
    deployment.server.ensure_running()
    return output_of(host)


@pytest.mark.parametrize("protocol", ["http/protobuf", "http/json"])
def test_the_python_exporters_send_again_what_met_a_store_that_was_away(deployment, tap, protocol):
    owner = f"owner-{20 + PYTHON.index(protocol)}"
    assignment_id = deployment.assignment_id(owner)
    deployment.server.kill()
    host = deployment.python_host(protocol, assignment_id, port=tap.port)
    through_an_absence(deployment, tap, host)
    assert tap.statuses[-1] == 200
    assert deployment.started(owner) == 1


@pytest.mark.parametrize("encoding", JAVASCRIPT)
def test_the_javascript_exporters_send_again_what_met_a_store_that_was_away(
    deployment, node_modules, tap, encoding
):
    owner = f"owner-{30 + JAVASCRIPT.index(encoding)}"
    assignment_id = deployment.assignment_id(owner)
    deployment.server.kill()
    host = deployment.js_host(encoding, assignment_id, port=tap.port)
    through_an_absence(deployment, tap, host)
    assert tap.statuses[-1] == 200
    assert deployment.started(owner) == 1


def test_the_grpc_exporter_sends_again_what_met_a_store_that_was_away(deployment):
    assignment_id = deployment.assignment_id("owner-25")
    deployment.server.kill()
    host = deployment.python_host("grpc", assignment_id, port=deployment.grpc_port)
    assert host.stdout is not None
    lines = []
    for line in host.stdout:
        lines.append(line)
        if "UNAVAILABLE" in line:
            break
    deployment.server.ensure_running()
    output_of(host)
    assert "retrying in 1.00s" in lines[-1]
    assert deployment.started("owner-25") == 1
