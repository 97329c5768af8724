"""Telemetry contract 1: its words are in one module, and the documents name all of them."""

import ast
import re
from pathlib import Path

from guardwave.reducer import contract

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
        if file != Path(contract.__file__).resolve()
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Constant) and node.value in WORDS
    ]
    assert not spelled


def test_every_word_of_the_contract_is_in_its_document():
    quoted = set(re.findall(r"`([a-z_.]+)`", (ROOT / "docs" / "telemetry.md").read_text()))
    written_out = {f"agent.guard{name}" if name.startswith(".") else name for name in quoted}
    assert not WORDS - written_out
    assert len(WORDS) > 50
