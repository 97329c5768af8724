"""Launcher of docs/qwen-code.md: the telemetry of its process counts for the owner."""

import os
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import orjson
import pytest
import urllib3
from opentelemetry.sdk.resources import OTELResourceDetector

from tests.end_to_end.canaries import TIMES, newest_ns
from tests.end_to_end.serving import Api, Served, polls
from tests.support.otlp.qwen import ITEMS, VERSION, cases
from tests.support.web_workers import PATIENCE_S

ENVIRONMENT, OWNER, WHY = "internal", "workspace-17", "a test of the launcher"
GUARD_PATH = f"/environments/{ENVIRONMENT}/guards/repeated_tool_failure"
DOCS = Path(__file__).parents[2] / "docs" / "qwen-code.md"
LAUNCHER = re.compile(r"<!-- a test runs this.*?```console\n(.*?)```", re.DOTALL)
CLIENT = f"""#!/bin/sh
if [ "$1" = --version ]; then echo {VERSION}; else env -0; fi
"""

pytestmark = pytest.mark.xdist_group("served")


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with tempfile.TemporaryDirectory(prefix="gw-") as directory:
        found = Served(Path(directory))
        try:
            found.start()
            yield found
        finally:
            found.end()


def launch(served: Served, tokens: dict[str, str], directory: Path) -> dict[str, str]:
    """Run the launcher with a client that prints its environment, and return that."""
    client = directory / "qwen"
    client.write_text(CLIENT)
    client.chmod(0o755)
    block = LAUNCHER.search(DOCS.read_text())
    assert block is not None
    script = block[1].replace("http://localhost:8080", served.url)
    path = f"{directory}:{os.environ['PATH']}"
    ran = subprocess.run(
        ["sh", "-euc", script],
        env={**os.environ, **tokens, "PATH": path},
        capture_output=True,
        check=True,
        timeout=PATIENCE_S,
    )
    pairs = [line.partition("=") for line in ran.stdout.decode().split("\0") if line]
    return {name: value for name, _, value in pairs}


def launch_until_known(served: Served, tokens: dict[str, str], directory: Path) -> dict[str, str]:
    """Launch until the web workers know the owner, and return the client's environment."""
    for _ in polls():
        variables = launch(served, tokens, directory)
        if ".everyone.shadow." in variables["OTEL_RESOURCE_ATTRIBUTES"]:
            return variables
    raise AssertionError(served.log)


def started(admin: Api) -> int:
    summary = admin.get(f"/environments/{ENVIRONMENT}/owners/{OWNER}")
    return sum(row["started"] for row in summary["evidence"])


def test_what_the_launched_client_sends_counts_for_its_owner(served, tmp_path, monkeypatch):
    admin = Api(served.url, served.token("--role", "admin"))
    at = ("--environment", ENVIRONMENT)
    tokens = {
        "RUNTIME": served.token("--role", "runtime", *at),
        "INGEST": served.token("--role", "ingest", *at, "--trusted"),
    }
    admin.put(f"/environments/{ENVIRONMENT}", {"reason": WHY})
    admin.put(GUARD_PATH, {"version_pin": [VERSION], "reason": WHY})
    facts = [{"owner": OWNER, "ownership": "known", "trusted": True}]
    admin.ask("POST", f"/environments/{ENVIRONMENT}/owners", {"owners": facts})
    variables = launch_until_known(served, tokens, tmp_path)
    assert variables["QWEN_CODE_ACP_REPEATED_TOOL_FAILURE_GUARD"] == "shadow"
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", variables["OTEL_RESOURCE_ATTRIBUTES"])
    resource = {
        **OTELResourceDetector().detect().attributes,
        "service.name": "qwen-code",
        "service.version": VERSION,
    }
    header, _, bearer = variables["OTEL_EXPORTER_OTLP_HEADERS"].partition("=")
    send(variables["QWEN_TELEMETRY_OTLP_ENDPOINT"], resource, {header: bearer.replace("%20", " ")})
    assert started(admin) == 1


def send(endpoint: str, resource: Mapping[str, object], headers: Mapping[str, str]) -> None:
    """Send a recorded case as a process with this Resource would send it now."""
    case = cases()["shadow-success_only"]
    shift = time.time_ns() - newest_ns(case)
    pairs = [{"key": key, "value": {"stringValue": value}} for key, value in resource.items()]
    for body in case.bodies:
        (entry,) = body.content[ITEMS[body.signal][0]]
        text = orjson.dumps({ITEMS[body.signal][0]: [{**entry, "resource": {"attributes": pairs}}]})
        moved = re.sub(
            rb'"(%s)":"(\d+)"' % "|".join(TIMES).encode(),
            lambda found: b'"%s":"%d"' % (found[1], int(found[2]) + shift),
            text,
        )
        answer = urllib3.PoolManager(retries=False, timeout=PATIENCE_S).request(
            "POST",
            f"{endpoint}/v1/{body.signal}",
            body=moved,
            headers={**headers, "Content-Type": "application/json"},
        )
        assert (answer.status, answer.data) == (200, b"{}")
