"""Violations by count: the real SDK's cumulative counters, sent to `guardwave serve`."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource

from guardwave.control_plane.client import Assignments
from tests.end_to_end.serving import Api, Served, polls
from tests.support.web_workers import PATIENCE_S

ENVIRONMENT, GUARD, VERSION, OWNER = "internal", "repeated_tool_failure", "1.4.2", "workspace-1"
HERE = f"/environments/{ENVIRONMENT}"
WHY = "a test of violations that are reported by count"
OF_GUARD = {"agent.guard.name": GUARD, "agent.guard.mode": "shadow"}

pytestmark = pytest.mark.xdist_group("served")


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with tempfile.TemporaryDirectory(prefix="gw-") as directory:
        server = Served(Path(directory), variables={"GUARDWAVE_WORKERS": "1"})
        try:
            server.start()
            yield server
        finally:
            server.end()


@pytest.fixture(scope="module")
def admin(served: Served) -> Api:
    api = Api(served.url, served.token("--role", "admin"))
    api.put(HERE, {"reason": WHY})
    api.put(f"{HERE}/guards/{GUARD}", {"version_pin": [VERSION], "reason": WHY})
    facts = [{"owner": OWNER, "ownership": "known", "trusted": True}]
    assert api.ask("POST", f"{HERE}/owners", {"owners": facts}).status == 200
    return api


def assignment_id(served: Served) -> str:
    runtime = served.token("--role", "runtime", "--environment", ENVIRONMENT)
    for _ in polls():
        assignments = Assignments(served.url, runtime, ENVIRONMENT, service_version=VERSION)
        found = assignments.resolve(GUARD, OWNER)
        assignments.close()
        if found.assignment_id is not None:
            return found.assignment_id
    raise AssertionError(served.log)


def meters(served: Served, instance: str) -> MeterProvider:
    """Return the meters of a process that serves one owner; they export on demand."""
    token = served.token("--role", "ingest", "--environment", ENVIRONMENT, "--trusted")
    exporter = OTLPMetricExporter(
        endpoint=f"{served.url}/v1/metrics",
        headers={"Authorization": f"Bearer {token}"},
        timeout=PATIENCE_S,
    )
    resource = Resource.create(
        {
            "service.name": "agent-host",
            "service.version": VERSION,
            "service.instance.id": instance,
            "deployment.environment.name": ENVIRONMENT,
            "agent.guard.assignment.id": assignment_id(served),
        }
    )
    reader = PeriodicExportingMetricReader(exporter, export_interval_millis=float("inf"))
    return MeterProvider([reader], resource)


def recorded(admin: Api) -> list[str]:
    """Return the invariants that were recorded as violated, oldest first."""
    found = admin.get(f"{HERE}/guards/{GUARD}/violations")["items"]
    return [violation["invariant"] for violation in reversed(found)]


def latch(admin: Api) -> Any:
    return admin.get(HERE)["latch"]


def acknowledge(admin: Api) -> None:
    answer = admin.ask("GET", HERE)
    held = answer.document["latch"]
    released = admin.ask(
        "POST",
        f"{HERE}/rollbacks/{held['rollback']}/acknowledgement",
        {"last_violation": held["newest_violation"], "reason": WHY},
        If_Match=answer.headers["ETag"],
    )
    assert released.status == 200, released


def test_a_counter_latches_when_it_rises_and_never_by_being_exported_again(served, admin):
    provider = meters(served, "host-1")
    reports = provider.get_meter("agent.guard", "1").create_counter("agent.guard.violations")
    labels = {**OF_GUARD, "agent.guard.invariant": "existing_guard_changed"}
    before = recorded(admin)
    try:
        for times in (1, 2):
            reports.add(1, labels)
            assert provider.force_flush()
            assert recorded(admin) == [*before, *["existing_guard_changed"] * times]
            acknowledge(admin)
            for _ in range(2):
                assert provider.force_flush()
            assert latch(admin) is None
            assert recorded(admin) == [*before, *["existing_guard_changed"] * times]
    finally:
        provider.shutdown()


def test_labels_that_exclude_each_other_latch(served, admin):
    provider = meters(served, "host-2")
    decided = provider.get_meter("agent.guard", "1").create_counter("agent.guard.transitions")
    labels = {
        **OF_GUARD,
        "agent.guard.decision": "reset",
        "agent.guard.terminal.status": "success",
        "agent.guard.execution.status": "error",
    }
    before = recorded(admin)
    try:
        decided.add(1, labels)
        assert provider.force_flush()
    finally:
        provider.shutdown()
    assert recorded(admin) == [*before, "contract_violation"]
    assert latch(admin) is not None
    acknowledge(admin)
