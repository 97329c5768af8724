"""Rules of the house that no linter knows."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("analysis", "control_plane", "dashboards", "examples", "reducer")
CODE = [file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py"))]
DOCUMENTS = [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\[[^\]]*\]\((?![a-z]+:)([^)#\s]+)")


def test_no_module_has_a_name_that_says_nothing():
    empty = re.compile(r"(.*_)?(util|helper|manager|handler)s?(_.*)?|common|data|misc|process")
    assert not [file for file in CODE if empty.fullmatch(file.stem)]


def test_every_directory_with_code_is_a_package():
    assert not {file.parent for file in CODE if not (file.parent / "__init__.py").exists()}


def test_every_file_a_package_needs_is_shipped_with_it():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    patterns = settings["package-data"]["*"]
    needed = {
        file
        for package in PACKAGES
        for file in (ROOT / package).rglob("*")
        if file.is_file() and file.suffix not in {".py", ".pyc"}
    }
    homes = {file.parent for file in CODE}
    shipped = {file for home in homes for pattern in patterns for file in home.glob(pattern)}
    assert not needed - shipped


@pytest.mark.parametrize(
    "document", [pytest.param(file, id=str(file.relative_to(ROOT))) for file in DOCUMENTS]
)
def test_every_link_between_documents_leads_somewhere(document):
    targets = LINK.findall(document.read_text())
    assert not [target for target in targets if not (document.parent / target).exists()]


def test_every_name_on_the_whitelist_is_still_in_the_code():
    listed = re.findall(r"\b_\.(\w+)", (ROOT / "vulture_whitelist.py").read_text())
    code = "\n".join(file.read_text() for file in CODE)
    assert not [name for name in listed if not re.search(rf"\b{name}\b", code)]
