"""The import contracts of pyproject.toml hold, and each of them notices when it is broken."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("analysis", "control_plane", "dashboards", "reducer")
HOME = Path("src/guardwave")
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
    "contracts"
]


def lint_imports(tree: Path, *options: str) -> tuple[bool, str]:
    """Run the contracts over a tree; return whether all hold, and what was printed."""
    program = Path(sys.executable).with_name("lint-imports")
    run = subprocess.run(
        [program, "--no-cache", *options],
        cwd=tree,
        env={
            **os.environ,
            "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{ROOT / '.ci'}",
            "NO_COLOR": "1",
            "COLUMNS": "200",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert not run.stderr, run.stderr
    return run.returncode == 0, run.stdout


@pytest.fixture
def tree(tmp_path):
    """A copy of the product that a test may spoil."""
    (tmp_path / HOME).mkdir(parents=True)
    for file in (ROOT / HOME).glob("*.py"):
        shutil.copy(file, tmp_path / HOME)
    for room in ROOMS:
        shutil.copytree(
            ROOT / room,
            tmp_path / HOME / room,
            ignore=lambda _, names: [name for name in names if not is_code(name)],
        )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def is_code(name):
    return name.endswith(".py") or ("." not in name and name != "__pycache__")


def plant(tree: Path, module: str, statement: str) -> None:
    """Add an import to a module, or to a package's `__init__`, of the tree."""
    path = tree.joinpath("src", *module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    file.write_text(f"{file.read_text()}\n{statement}\n")


def test_the_product_keeps_every_contract():
    kept, printed = lint_imports(ROOT)
    assert kept, printed


CP = "guardwave.control_plane"
UPWARD = [
    ("layers", "guardwave.reducer", "import guardwave.analysis"),
    ("layers", f"{CP}.stores", f"import {CP}.queries"),
    ("layers", f"{CP}.commands", f"import {CP}.jobs"),
    ("layers", f"{CP}.commands", f"import {CP}.queries"),
    ("layers", f"{CP}.queries", f"import {CP}.commands"),
    ("layers", f"{CP}.ingest", f"import {CP}.http"),
    ("layers", "guardwave.dashboards", f"import {CP}.http"),
    ("layers", f"{CP}.jobs", f"import {CP}.cli"),
    ("rooms", f"{CP}.core.errors", f"import {CP}.stores"),
    ("intake", f"{CP}.ingest.model", f"import {CP}.ingest.wire"),
    ("intake", f"{CP}.ingest.evidence", f"import {CP}.ingest.dialects"),
    ("statistics", "guardwave.analysis.frames", "import guardwave.analysis.gate"),
    ("statistics", "guardwave.analysis.inference", "import guardwave.analysis.planning"),
    ("faces", f"{CP}.jobs.worker", f"import {CP}.stores.server.connection"),
    ("faces", f"{CP}.jobs.worker", "import guardwave.analysis.inference.cohorts"),
    ("pure-reducer", "guardwave.reducer.rollout.policy", "import time"),
    ("pure-reducer", "guardwave.reducer.rollout.policy", "import random"),
    ("pure-reducer", "guardwave.reducer.rollout.policy", "import os.path"),
    ("pure-reducer", "guardwave.reducer.rollout.policy", "import logging"),
    ("pure-reducer", "guardwave.reducer.vocabulary", "import numpy"),
    ("pure-analysis", "guardwave.analysis", "import flask"),
    ("pure-analysis", "guardwave.analysis", "import redis"),
    ("pure-analysis", "guardwave.analysis", "import opentelemetry.trace"),
    ("pure-analysis", "guardwave.analysis", "import time"),
    ("who-analyses", f"{CP}.queries", "import guardwave.analysis"),
    ("who-analyses", f"{CP}.client", "import guardwave.analysis"),
    ("light-web", f"{CP}.core.errors", "import pandas"),
    ("light-web", "guardwave.dashboards", "import numpy"),
    ("doors", "guardwave.dashboards", f"import {CP}.stores"),
    ("doors", "guardwave.dashboards", "import redis"),
    ("doors", f"{CP}.http", f"import {CP}.stores"),
    ("doors", f"{CP}.http", "from redis import Redis"),
    ("lean-client", f"{CP}.client", f"import {CP}.core.errors"),
    ("lean-client", "guardwave.client", "import pydantic"),
]


def test_every_contract_has_a_planted_import():
    assert {contract for contract, _, _ in UPWARD} == {contract["id"] for contract in CONTRACTS}


@pytest.mark.parametrize(
    ("contract", "module", "statement"),
    [pytest.param(*case, id=f"{case[1]}: {case[2]}") for case in UPWARD],
)
def test_an_upward_import_is_caught(tree, contract, module, statement):
    plant(tree, module, statement)
    kept, printed = lint_imports(tree, "--contract", contract)
    assert not kept, printed
    assert "1 broken" in printed


def test_a_room_without_a_place_is_caught(tree):
    (tree / HOME / "control_plane" / "attic.py").write_text('"""A room nobody gave a place."""\n')
    kept, printed = lint_imports(tree, "--contract", "rooms")
    assert not kept
    assert "guardwave.control_plane.attic" in printed
