"""Client fixtures: a stand-in control plane, and a client that may wait long for it."""

import pytest

from guardwave.control_plane.client import Assignments
from guardwave.control_plane.client import assignments as module
from tests.control_plane.client.answering_plane import ControlPlane, Seconds
from tests.support.web_workers import PATIENCE_S


@pytest.fixture
def plane():
    running = ControlPlane()
    yield running
    running.stop()


@pytest.fixture
def seconds():
    return Seconds()


@pytest.fixture
def patience(monkeypatch):
    """Let an answer come late, as on a busy machine; the limit has a test of its own."""
    monkeypatch.setattr(module, "NETWORK_TIMEOUT_SECONDS", PATIENCE_S)
    monkeypatch.setattr(module, "LONGEST_WAIT_SECONDS", PATIENCE_S)


@pytest.fixture
def assignments(plane, seconds, patience):
    made = Assignments(
        plane.address,
        "gw_x_y",
        "internal",
        service_version="1.4.0",
        monotonic=seconds,
        timeout_seconds=PATIENCE_S,
    )
    yield made
    made.close()
