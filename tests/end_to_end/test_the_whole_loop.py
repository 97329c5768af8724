"""Whole loop of `guardwave serve`: tokens, owners, real telemetry, crashes, restarts."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, LogRecordExportResult
from opentelemetry.sdk.resources import Resource

from guardwave.control_plane.client import Assignments
from guardwave.control_plane.stores.server.embedded import PID_FILE
from tests.end_to_end.serving import Api, Served, polls
from tests.support.web_workers import PATIENCE_S

ENVIRONMENT, GUARD, VERSION = "internal", "repeated_tool_failure", "1.4.2"
WHY = "a test of the whole loop"
PASTED = "pasted"
ROLLOUT = f"/environments/{ENVIRONMENT}/guards/{GUARD}"
ROOT = Path(__file__).parents[2]
OWNERS = [f"workspace-{number}" for number in range(60)]

# One server for all of them, if the runner keeps groups together.
pytestmark = pytest.mark.xdist_group("served")


class Deployment:
    """A served control plane with one environment, its rollout, its owners and its tokens."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.admin = Api(served.url, served.token("--role", "admin"))
        at = ("--environment", ENVIRONMENT)
        self.ingest = served.token("--role", "ingest", *at, "--trusted")
        self.runtime = served.token("--role", "runtime", *at)
        self.admin.put(f"/environments/{ENVIRONMENT}", {"reason": WHY})
        self.admin.put(ROLLOUT, {"version_pin": [VERSION], "reason": WHY})
        facts = [{"owner": owner, "ownership": "known", "trusted": True} for owner in OWNERS]
        stated = self.admin.ask("POST", f"/environments/{ENVIRONMENT}/owners", {"owners": facts})
        assert (stated.status, stated.document["owners_changed"]) == (200, len(OWNERS)), stated

    def assignment_id(self, owner: str) -> str:
        """Return an owner's id from the client, once the workers know the owner."""
        for _ in polls():
            assignments = Assignments(
                self.served.url, self.runtime, ENVIRONMENT, service_version=VERSION
            )
            found = assignments.resolve(GUARD, owner)
            assignments.close()
            if (found.mode, found.cohort) == ("shadow", "everyone"):
                assert found.assignment_id is not None
                return found.assignment_id
        raise AssertionError(f"{owner} got no assignment id: {self.served.log}")

    def started(self, owner: str) -> int:
        """Return how many prompts of an owner count, by its summary."""
        summary = self.admin.get(f"/environments/{ENVIRONMENT}/owners/{owner}")
        return sum(row["started"] for row in summary["evidence"])


@pytest.fixture(scope="module")
def deployment() -> Iterator[Deployment]:
    with tempfile.TemporaryDirectory(prefix="gw-") as directory:
        served = Served(Path(directory))
        try:
            served.start()
            yield Deployment(served)
        finally:
            served.end()


class RememberingExporter(OTLPLogExporter):
    """The real exporter, which also remembers the prompts that were acknowledged as stored."""

    def __init__(self, url: str, token: str) -> None:
        super().__init__(
            endpoint=f"{url}/v1/logs",
            headers={"Authorization": f"Bearer {token}"},
            compression=Compression.Gzip,
            timeout=PATIENCE_S,
        )
        self.acknowledged: list[str] = []
        self.given_up: list[str] = []

    def export(self, batch):
        result = super().export(batch)
        is_stored = result is LogRecordExportResult.SUCCESS
        kept = self.acknowledged if is_stored else self.given_up
        kept += [
            str(record.log_record.attributes["agent.guard.prompt.id"])
            for record in batch
            if record.log_record.event_name == "agent.guard.prompt.end"
        ]
        return result


class SdkHost:
    """An agent host on the real OpenTelemetry SDK."""

    def __init__(self, deployment: Deployment) -> None:
        self.exporter = RememberingExporter(deployment.served.url, deployment.ingest)
        self.provider = LoggerProvider(
            resource=Resource.create(
                {
                    "service.name": "agent-host",
                    "service.version": VERSION,
                    "service.instance.id": "host-1",
                    "deployment.environment.name": ENVIRONMENT,
                }
            )
        )
        self.provider.add_log_record_processor(
            # It would drop, unseen, what comes while a full queue waits for the store.
            BatchLogRecordProcessor(
                self.exporter, schedule_delay_millis=50, max_queue_size=1_000_000
            )
        )
        self.logger = self.provider.get_logger("agent.guard", "1")

    def prompt(self, prompt_id: str, assignment_id: str) -> None:
        """Report one prompt that began and ended well."""
        common: dict[str, str | int | float] = {
            "agent.guard.prompt.id": prompt_id,
            "agent.guard.assignment.id": assignment_id,
        }
        ended: dict[str, str | int | float] = {
            "agent.guard.prompt.outcome": "completed",
            "agent.guard.prompt.duration": 1.0,
            "agent.guard.prompt.turns": 3,
            "agent.guard.prompt.tool_calls": 2,
            "agent.guard.prompt.transitions": 0,
            "gen_ai.usage.input_tokens": 900,
            "gen_ai.usage.output_tokens": 100,
        }
        now = time.time_ns()
        self.logger.emit(
            timestamp=now - 10**9, event_name="agent.guard.prompt.start", attributes=common
        )
        self.logger.emit(
            timestamp=now, event_name="agent.guard.prompt.end", attributes={**common, **ended}
        )


def test_what_a_host_reports_with_the_real_sdk_is_in_its_owners_summary(deployment):
    host = SdkHost(deployment)
    owner = OWNERS[0]
    assignment_id = deployment.assignment_id(owner)
    for number in range(3):
        host.prompt(f"sdk-{number}", assignment_id)
    host.provider.shutdown()
    assert host.exporter.given_up == []
    summary = deployment.admin.get(f"/environments/{ENVIRONMENT}/owners/{owner}")
    (evidence,) = summary["evidence"]
    assert {key: evidence[key] for key in ("started", "completed", "tokens", "turns")} == {
        "started": 3,
        "completed": 3,
        "tokens": 3000,
        "turns": 9,
    }
    assert [version["name"] for version in summary["facts"]["versions"]] == [VERSION]
    assert summary["facts"]["producers"][0]["trusted"] is True


def commands_of(document: str, heading: str, *, served: Served) -> list[str]:
    """Return the commands below a heading, for this server and an environment of their own."""
    _, below = (ROOT / document).read_text().split(f"\n## {heading}\n")
    section, *_ = below.split("\n## ")
    for ours, theirs in (
        ("localhost:8080", served.url.removeprefix("http://")),
        ("internal", PASTED),
        ("guardwave token", f"{sys.executable} -m guardwave.control_plane.cli token"),
    ):
        section = section.replace(ours, theirs)
    return re.findall(r"```console\n(.*?)```", section, re.DOTALL)


def paste(script: str, variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run commands as a shell does into which they are pasted."""
    return subprocess.run(
        ["bash", "-c", script],
        env=variables,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def poll_assignment_id(ask: str, variables: Mapping[str, str]) -> str:
    """Ask until the worker that answers knows rollout and owner, and return the assignment id."""
    for _ in polls():
        asked = paste(f"{ask}echo $ID", variables)
        if '"cohort":"everyone"' in asked.stderr:
            return asked.stdout.strip()
    raise AssertionError("no answer had cohort everyone")


def test_a_prompt_by_hand_after_the_set_up_of_the_readme_counts_once(deployment):
    served = deployment.served
    _, set_up, trust = commands_of("README.md", "Run it for real", served=served)
    ask, send, show = commands_of("docs/telemetry.md", "One prompt, by hand", served=served)
    names = ("ADMIN", "RUNTIME", "INGEST")
    pasted = paste(f"{set_up}{trust}\necho\necho $ADMIN $RUNTIME $INGEST", served.environment)
    tokens = pasted.stdout.splitlines()[-1].split()
    variables = {**served.environment, **dict(zip(names, tokens, strict=True))}
    variables["ID"] = poll_assignment_id(ask, variables)
    send = send.replace("NOW=$(date +%s)", f"NOW={int(time.time())}")
    for _ in range(2):
        assert paste(send, variables).stdout == "{}"
    (evidence,) = json.loads(paste(show, variables).stdout)["evidence"]
    assert (evidence["started"], evidence["completed"]) == (1, 1)


def test_a_prompt_by_hand_without_an_assignment_id_is_not_sent(deployment):
    _, send, _ = commands_of("docs/telemetry.md", "One prompt, by hand", served=deployment.served)
    sent = paste(send, {**os.environ, "INGEST": deployment.ingest})
    assert (sent.stdout, sent.stderr.count("see the answer above")) == ("", 1)


def test_a_lowered_mode_reaches_the_answers_of_every_worker(deployment):
    where = f"{ROLLOUT}/assignments/{OWNERS[1]}?service.version={VERSION}"
    as_host = Api(deployment.served.url, deployment.runtime)
    set_mode = f"{ROLLOUT}/cohorts/everyone"

    def is_answered_by_all(mode: str) -> bool:
        """Whether twenty answers in a row agree; the connections go to either worker."""
        in_a_row = 0
        for _ in polls():
            # A worker learns of a new rollout with its next look at the store: 404 until then.
            answer = as_host.ask("GET", where)
            is_so = answer.status == 200 and answer.document["mode"] == mode
            in_a_row = in_a_row + 1 if is_so else 0
            if in_a_row == 20:
                return True
        return False

    assert is_answered_by_all("shadow")
    try:
        assert deployment.admin.put(set_mode, {"mode": "off", "reason": WHY})["changed"] is True
        assert is_answered_by_all("off")
    finally:
        etag = deployment.admin.ask("GET", ROLLOUT).headers["ETag"]
        deployment.admin.put(set_mode, {"mode": "shadow", "reason": WHY}, If_Match=etag)
    assert is_answered_by_all("shadow")


def test_no_acknowledged_prompt_is_lost_or_doubled_when_the_store_is_killed(deployment):
    host = SdkHost(deployment)
    owners = OWNERS[20:60]
    ids = {owner: deployment.assignment_id(owner) for owner in owners}
    stop = threading.Event()
    sent: list[str] = []

    def talk() -> None:
        while not stop.wait(0.005):
            owner = owners[len(sent) % len(owners)]
            prompt_id = f"{owner}/{len(sent)}"
            host.prompt(prompt_id, ids[owner])
            sent.append(prompt_id)

    talker = threading.Thread(target=talk, daemon=True)
    talker.start()
    pid_file = deployment.served.data_dir / PID_FILE
    for _ in range(2):
        seen, victim = len(host.exporter.acknowledged), int(pid_file.read_text())
        assert any(len(host.exporter.acknowledged) > seen + 20 for _ in polls())
        os.kill(victim, signal.SIGKILL)
        assert any(int(pid_file.read_text() or victim) != victim for _ in polls())
    seen = len(host.exporter.acknowledged)
    assert any(len(host.exporter.acknowledged) > seen + 20 for _ in polls())
    stop.set()
    talker.join()
    host.provider.shutdown()
    acknowledged, given_up = host.exporter.acknowledged, host.exporter.given_up
    assert sorted(acknowledged + given_up) == sorted(sent)
    for owner in owners:
        stored = sum(prompt_id.startswith(f"{owner}/") for prompt_id in acknowledged)
        unsure = sum(prompt_id.startswith(f"{owner}/") for prompt_id in given_up)
        # What the exporter gave up on may have been stored before its answer was lost.
        assert stored <= deployment.started(owner) <= stored + unsure


def test_a_crash_of_every_process_at_once_loses_nothing(deployment):
    served, owner = deployment.served, OWNERS[3]
    host = SdkHost(deployment)
    host.prompt("before the crash", deployment.assignment_id(owner))
    host.provider.shutdown()
    assert host.exporter.given_up == []
    served.crash()
    served.start()
    assert deployment.started(owner) == 1
    assert deployment.admin.get(ROLLOUT)["phase"] == "shadow"


def test_ctrl_c_stops_everything_and_a_restart_goes_on_where_it_was(deployment):
    served = deployment.served
    owner = OWNERS[2]
    host = SdkHost(deployment)
    assignment_id = deployment.assignment_id(owner)
    host.prompt("before the restart", assignment_id)
    host.provider.force_flush()
    assert served.interrupt() == 0, served.log
    assert served.processes() == ()
    served.start()
    assert deployment.started(owner) == 1
    host.prompt("before the restart", assignment_id)
    host.prompt("after the restart", assignment_id)
    host.provider.shutdown()
    assert deployment.started(owner) == 2
    assert "Traceback" not in served.log
