"""Example host in its own process: its telemetry arrives in a running guardwave."""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from guardwave.control_plane.client import Assignments
from guardwave.reducer.pipeline import GUARDS
from guardwave.reducer.vocabulary import Mode
from tests.end_to_end.serving import Api, Served, polls
from tests.support.web_workers import PATIENCE_S

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs" / "embed.md"
SHORTEST = re.compile(r"<!-- a test runs this -->\n```python\n(.*?)```", re.DOTALL)
SET_UP = re.compile(r"<!-- a test runs this -->\n```console\n(.*?)```", re.DOTALL)
ENVIRONMENT, OWNER, VERSION = "internal", "workspace-1", "1.0.0"
# What the base install does not bring; a host must do without all of it.
SERVER = (
    "guardwave.analysis",
    "guardwave.dashboards",
    "flask",
    "msgpack",
    "numpy",
    "pandas",
    "pydantic",
    "redis",
)
# A process in which these modules can't be found, as in an environment that lacks them.
WITHOUT = """
import runpy, sys
absent = tuple(sys.argv.pop(1).split(","))

class Absent:
    def find_spec(self, name, path=None, target=None):
        if any(f"{name}.".startswith(f"{module}.") for module in absent):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
runpy.run_module("examples.agent_host", run_name="__main__", alter_sys=True)
"""

pytestmark = pytest.mark.xdist_group("served")


def talk(*options, typed, directory, absent=SERVER, **environment):
    """Start the host as in docs/embed.md, type lines, and return what it printed."""
    kept = {
        name: text
        for name, text in os.environ.items()
        if not name.startswith(("AGENT_", "GUARDWAVE_", "OTEL_"))
    }
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT, ",".join(absent), *options],
        cwd=directory,
        env={**kept, "PYTHONPATH": str(ROOT), **environment},
        input=typed,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    return run.stdout


@pytest.mark.parametrize(
    ("mode", "ending"),
    [
        pytest.param("enforce", "[guard_stopped by repeated_tool_execution_failure]", id="enforce"),
        pytest.param("shadow", "[completed]", id="shadow"),
    ],
)
def test_the_example_runs_with_the_base_install_alone(tmp_path, mode, ending):
    absent = (*SERVER, "opentelemetry.sdk", "opentelemetry.exporter")
    printed = talk(typed="go\n/quit\n", directory=tmp_path, absent=absent, AGENT_GUARD_MODE=mode)
    assert ending in printed


def test_a_dotenv_in_the_directory_does_not_reach_the_guards(tmp_path):
    (tmp_path / ".env").write_text("AGENT_GUARD_MODE=enforce\n")
    assert "[completed]" in talk(typed="go\n/quit\n", directory=tmp_path)


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with tempfile.TemporaryDirectory(prefix="gw-") as directory:
        made = Served(Path(directory))
        try:
            made.start()
            yield made
        finally:
            made.end()


def test_what_the_example_reports_is_evidence_for_every_guard(served, tmp_path):
    tokens = set_up_as_documented(served)
    runtime = tokens["GUARDWAVE_TOKEN"]
    assert any(is_known(served.url, runtime) for _ in polls()), served.log
    admin = Api(served.url, served.token("--role", "admin"))
    evidence = {}
    for _ in polls():
        assert "[completed]" in talk(typed="go\n/quit\n", directory=tmp_path, **tokens)
        summary = admin.get(f"/environments/{ENVIRONMENT}/owners/{OWNER}")
        evidence = {row["guard"]: row for row in summary["evidence"]}
        # A mode that does not come in 200 ms is shadow without an id: that prompt does not count.
        if set(evidence) == set(GUARDS):
            break
    assert set(evidence) == set(GUARDS)
    for sums in evidence.values():
        prompts = sums["started"]
        assert prompts > 0
        assert (sums["completed"], sums["turns"]) == (prompts, 7 * prompts)
    assert admin.get(f"/environments/{ENVIRONMENT}")["latch"] is None


def set_up_as_documented(served):
    """Run the commands of docs/embed.md against a server; return what they export."""
    (script,) = SET_UP.findall(DOCS.read_text())
    script = script.replace("http://localhost:8080", served.url)
    script = script.replace(
        "guardwave token", f"{sys.executable} -m guardwave.control_plane.cli token"
    )
    run = subprocess.run(
        ["bash", "-euc", f"{script}\nenv -0 >environment"],
        cwd=served.data_dir,
        env={**served.environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert run.returncode == 0, run
    pairs = (served.data_dir / "environment").read_text().split("\0")
    exported = dict(pair.split("=", 1) for pair in pairs if pair)
    names = ("GUARDWAVE_URL", "GUARDWAVE_TOKEN", "GUARDWAVE_INGEST_TOKEN")
    return {name: exported[name] for name in names}


def test_the_shortest_host_of_the_documentation_runs():
    (source,) = SHORTEST.findall(DOCS.read_text())
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", source],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, "")


def is_known(url, runtime):
    """Whether a worker gives this owner a mode of its own under every guard."""
    assignments = Assignments(url, runtime, ENVIRONMENT, service_version=VERSION)
    found = [assignments.resolve(guard, OWNER) for guard in GUARDS]
    assignments.close()
    return all(
        (assignment.mode, assignment.cohort) == (Mode.SHADOW, "everyone") for assignment in found
    )
