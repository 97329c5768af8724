"""The import contracts of pyproject.toml hold, and each of them notices when it is broken."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("analysis", "control_plane", "dashboards", "reducer")
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
    "contracts"
]


def lint_imports(tree: Path, *options: str) -> tuple[bool, str]:
    """Run the contracts over a tree; return whether all hold, and what was printed."""
    program = Path(sys.executable).with_name("lint-imports")
    run = subprocess.run(
        [program, "--no-cache", *options],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree), "NO_COLOR": "1", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not run.stderr, run.stderr
    return run.returncode == 0, run.stdout


@pytest.fixture
def tree(tmp_path):
    """A copy of the product that a test may spoil."""
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package,
            tmp_path / package,
            ignore=lambda _, names: [name for name in names if not is_code(name)],
        )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def is_code(name):
    return name.endswith(".py") or ("." not in name and name != "__pycache__")


def plant(tree: Path, module: str, statement: str) -> None:
    """Add an import to a module, or to a package's `__init__`, of the tree."""
    path = tree.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    file.write_text(f"{file.read_text()}\n{statement}\n")


def test_the_product_keeps_every_contract():
    kept, printed = lint_imports(ROOT)
    assert kept, printed


UPWARD = [
    ("layers", "reducer", "import analysis"),
    ("layers", "control_plane.stores", "import control_plane.queries"),
    ("layers", "control_plane.commands", "import control_plane.jobs"),
    ("layers", "control_plane.ingest", "import control_plane.http"),
    ("layers", "dashboards", "import control_plane.http"),
    ("layers", "control_plane.jobs", "import control_plane.cli"),
    ("rooms", "control_plane.errors", "import control_plane.stores"),
    ("pure-reducer", "reducer.rollout.policy", "import time"),
    ("pure-reducer", "reducer.rollout.policy", "import random"),
    ("pure-reducer", "reducer.rollout.policy", "import os.path"),
    ("pure-reducer", "reducer.rollout.policy", "import logging"),
    ("pure-reducer", "reducer.vocabulary", "import numpy"),
    ("pure-analysis", "analysis", "import flask"),
    ("pure-analysis", "analysis", "import redis"),
    ("pure-analysis", "analysis", "import opentelemetry.trace"),
    ("pure-analysis", "analysis", "import time"),
    ("who-analyses", "control_plane.queries", "import analysis"),
    ("who-analyses", "control_plane.client", "import analysis"),
    ("light-web", "control_plane.errors", "import pandas"),
    ("light-web", "dashboards", "import numpy"),
    ("doors", "dashboards", "import control_plane.stores"),
    ("doors", "dashboards", "import redis"),
    ("doors", "control_plane.http", "import control_plane.stores"),
    ("doors", "control_plane.http", "from redis import Redis"),
    ("lean-client", "control_plane.client", "import control_plane.errors"),
    ("lean-client", "control_plane.client", "import pydantic"),
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
    (tree / "control_plane" / "attic.py").write_text('"""A room nobody gave a place."""\n')
    kept, printed = lint_imports(tree, "--contract", "rooms")
    assert not kept
    assert "control_plane.attic" in printed
