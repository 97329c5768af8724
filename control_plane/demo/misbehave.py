"""One simulated owner breaks an invariant, over the real SDK, and the environment falls."""

import time
from collections.abc import Callable

import urllib3
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.resources import Resource

from control_plane.client import Assignments
from control_plane.demo.files import DemoFile
from control_plane.demo.story import GUARD, VERSION
from control_plane.errors import StartError

WAIT_S = 10.0


def break_invariant(demo: DemoFile, *, environment: str, owner: str) -> str:
    """Send a reset with the reason `contract_violation`; return the owner's mode before it.

    Raises:
        StartError: the control plane gave no assignment id to send it under.
    """
    assignments = Assignments(
        demo.url, demo.runtime[environment], environment, service_version=VERSION
    )
    assigned = assignments.resolve(GUARD, owner)
    if assigned.assignment_id is None:
        raise StartError(f"{environment} gave no assignment: {assigned.sentence}")
    resource = Resource.create(
        {
            "service.name": "simulated-host",
            "service.version": VERSION,
            "service.instance.id": "misbehaving-host",
            "deployment.environment.name": environment,
        }
    )
    token = demo.ingest[environment]
    exporter = OTLPLogExporter(
        endpoint=f"{demo.url}/v1/logs", headers={"Authorization": f"Bearer {token}"}
    )
    provider = LoggerProvider(resource=resource)
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    now = time.time_ns()
    provider.get_logger("agent.guard", "1").emit(
        timestamp=now,
        event_name="agent.guard.transition",
        attributes={
            "agent.guard.name": GUARD,
            "agent.guard.assignment.id": assigned.assignment_id,
            "agent.guard.prompt.id": f"misbehaving-{now}",
            "agent.guard.sequence": 1,
            "agent.guard.mode": assigned.mode.value,
            "agent.guard.decision": "reset",
            "agent.guard.reset.reason": "contract_violation",
            "agent.guard.phase.from": "tracking",
            "agent.guard.phase.to": "idle",
            "agent.guard.terminal.status": "success",
            "agent.guard.execution.status": "error",
        },
    )
    provider.shutdown()
    return assigned.mode.value


def wait_for_latch(
    demo: DemoFile, *, environment: str, monotonic: Callable[[], float] = time.monotonic
) -> float | None:
    """Return the seconds until the API shows the latch, None when it does not within 10 s."""
    pool = urllib3.PoolManager(retries=False, timeout=2.0)
    headers = {"Authorization": f"Bearer {demo.operator}"}
    began = monotonic()
    while monotonic() - began < WAIT_S:
        answer = pool.request(
            "GET", f"{demo.url}/api/v1/environments/{environment}", headers=headers
        )
        if answer.status == 200 and answer.json().get("latch"):
            return monotonic() - began
    return None
