"""Misbehaving owner: a violation sent over the real SDK, and the wait for the latch."""

import time
from collections.abc import Callable

import urllib3
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.resources import Resource

from guardwave.control_plane.client import Assignments
from guardwave.control_plane.core.errors import StartError
from guardwave.control_plane.demo.files import DemoFile
from guardwave.control_plane.demo.story import GUARD, VERSION
from guardwave.reducer import contract

WAIT_S = 10.0


def break_invariant(demo: DemoFile, *, environment: str, owner: str) -> str:
    """Send a reset with the reason `contract_violation`; return the owner's mode before it.

    Raises:
        StartError: the control plane gave no assignment id, which the violation needs.
    """
    assignments = Assignments(
        demo.url, demo.runtime[environment], environment, service_version=VERSION
    )
    assignment = assignments.resolve(GUARD, owner)
    if assignment.assignment_id is None:
        raise StartError(f"{environment} gave no assignment: {assignment.sentence}")
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
    provider.get_logger(contract.SCOPE, contract.SCOPE_VERSION).emit(
        timestamp=now,
        event_name=contract.TRANSITION,
        attributes={
            contract.GUARD: GUARD,
            contract.ASSIGNMENT_ID: assignment.assignment_id,
            contract.PROMPT_ID: f"misbehaving-{now}",
            contract.SEQUENCE: 1,
            contract.MODE: assignment.mode.value,
            contract.DECISION: "reset",
            contract.RESET_REASON: "contract_violation",
            contract.PHASE_FROM: "tracking",
            contract.PHASE_TO: "idle",
            contract.TERMINAL_STATUS: "success",
            contract.EXECUTION_STATUS: "error",
        },
    )
    provider.shutdown()
    return assignment.mode.value


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
