"""Refusals of a running guardwave: the host gets status, the server's detail and a remedy."""

import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from guardwave.control_plane.client import Assignments, FallbackReason
from guardwave.control_plane.client import assignments as module
from guardwave.control_plane.core.settings import Settings
from guardwave.control_plane.stores.server.clients import connect
from guardwave.control_plane.stores.server.embedded import EmbeddedServer
from guardwave.control_plane.stores.server.function_library import load_functions
from guardwave.reducer.vocabulary import Mode, Role
from tests.control_plane.client.answering_plane import why
from tests.support.web_workers import PATIENCE_S, web_worker
from tests.support.worlds import ENVIRONMENT, GUARD, VERSION, context_over, world_in

# One server for all of them: nothing here changes what it holds.
pytestmark = pytest.mark.xdist_group("refusals")

UNKNOWN = "gw_abcdefghijkm_" + "s" * 43


@pytest.fixture(scope="module")
def guardwave():
    """Yield the address of a guardwave in shadow, and tokens of roles that are easily mixed up."""
    with (
        tempfile.TemporaryDirectory(prefix="gw-") as directory,
        EmbeddedServer.start(Path(directory)) as server,
        connect(Settings(data_dir=server.data_dir)) as store,
    ):
        load_functions(store)
        world = world_in(context_over(store), Mode.SHADOW)
        tokens = {role: world.token(role) for role in (Role.RUNTIME, Role.INGEST)}
        with web_worker(server) as address:
            yield address, tokens


@pytest.fixture
def asked(guardwave, monkeypatch):
    """Return what asks this guardwave once, with one thing wrong."""
    monkeypatch.setattr(module, "NETWORK_TIMEOUT_SECONDS", PATIENCE_S)
    monkeypatch.setattr(module, "LONGEST_WAIT_SECONDS", PATIENCE_S)
    address, tokens = guardwave

    def ask(*, path="", role=Role.RUNTIME, environment=ENVIRONMENT, guard=GUARD, token=None):
        client = Assignments(
            address + path,
            token or tokens[role],
            environment,
            service_version=VERSION,
            timeout_seconds=PATIENCE_S,
        )
        with closing(client):
            return client.resolve(guard, "owner-7")

    return ask


def test_with_nothing_wrong_the_control_plane_itself_answers_shadow(asked):
    found = asked()
    assert (found.mode, found.is_fallback) == (Mode.SHADOW, False)


@pytest.mark.parametrize(
    ("wrong", "detail", "remedy"),
    [
        pytest.param(
            {"token": UNKNOWN},
            "401 (send a token that is known and not revoked: Authorization: Bearer",
            "`guardwave token create --role runtime --environment internal`",
            id="a token that nobody made",
        ),
        pytest.param(
            {"role": Role.INGEST},
            "is ingest of internal; this needs runtime of this environment)",
            "give as token one of role runtime for environment internal",
            id="a token for telemetry",
        ),
        pytest.param(
            {"environment": "interal"},
            "is runtime of internal; this needs runtime of this environment)",
            "for environment interal, or as environment the one that the token is for",
            id="a typing error in the environment",
        ),
        pytest.param(
            {"guard": "repeated_tool_failures"},
            "404 (guard 'repeated_tool_failures' has no rollout in environment 'internal')",
            "compare endpoint (the server's address, without /api/v1), environment and guard",
            id="a typing error in the guard",
        ),
        pytest.param(
            {"path": "/api/v1"},
            "404 (there is no '/api/v1/api/v1/environments/",
            "the server's address, without /api/v1",
            id="the API's address for the server's",
        ),
    ],
)
def test_a_refusal_has_the_servers_detail_and_a_remedy(asked, caplog, wrong, detail, remedy):
    found = asked(**wrong)
    assert why(found) is FallbackReason.REFUSED
    assert found.sentence.startswith("Mode shadow: the control plane refused with ")
    assert detail in found.sentence
    assert remedy in found.sentence
    assert found.sentence.removeprefix("Mode shadow: ").removesuffix(".") in caplog.text
    assert UNKNOWN not in caplog.text + found.sentence
    assert "owner-7" not in caplog.text
