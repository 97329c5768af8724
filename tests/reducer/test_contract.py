"""The words of telemetry contract 1 stand in one module, and users can read all of them."""

import ast
import re
from pathlib import Path

from reducer import contract

ROOT = Path(__file__).parents[2]
WORDS = {
    value
    for name, value in vars(contract).items()
    if name.isupper() and isinstance(value, str) and "." in value
}


def test_no_other_module_spells_a_word_of_the_contract():
    spelled = [
        f"{file.relative_to(ROOT)}:{node.lineno}: {node.value}"
        for package in ("analysis", "control_plane", "dashboards", "reducer")
        for file in sorted((ROOT / package).rglob("*.py"))
        if file != Path(contract.__file__)
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Constant) and node.value in WORDS
    ]
    assert not spelled


def test_every_word_of_the_contract_is_in_its_document():
    quoted = set(re.findall(r"`([a-z_.]+)`", (ROOT / "docs" / "telemetry.md").read_text()))
    written_out = {f"agent.guard{each}" if each.startswith(".") else each for each in quoted}
    assert not WORDS - written_out
    assert len(WORDS) > 50
