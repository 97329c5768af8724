"""Documents lead somewhere: to files that exist, tests that exist, settings that are read."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "control_plane/**/*.md")
    for path in ROOT.glob(pattern)
)
LINK = re.compile(r"\]\((?!https?://)([^)#\s]*)(?:#([^)]*))?\)|(?:src|srcset)=\"([^\"]+)\"")


def anchors(path: Path) -> set[str]:
    """Return the anchors of a document's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^a-z0-9 _-]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(
    "document",
    [pytest.param(document, id=str(document.relative_to(ROOT))) for document in DOCUMENTS],
)
def test_every_link_of_a_document_leads_somewhere(document):
    broken = []
    for path, anchor, image in LINK.findall(document.read_text()):
        target = document.parent / (path or image) if path or image else document
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(path or image or anchor)
    assert broken == []


def test_every_test_that_a_document_names_exists():
    there = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    named = {
        name
        for document in DOCUMENTS
        for name in re.findall(r"`(test_[a-z0-9_]+)`", document.read_text())
    }
    assert {name for name in named if f"def {name}(" not in there} == set()
    assert len(named) > 2


def test_every_setting_has_its_line_and_no_line_is_left_over():
    read = set(re.findall(r"\"((?:GUARDWAVE|REDIS)_[A-Z_]+)\"", settings_text()))
    lines = set(
        re.findall(r"^\| `([A-Z_]+)`", (ROOT / "docs/operate.md").read_text(), re.MULTILINE)
    )
    assert lines == read


def settings_text() -> str:
    return (ROOT / "control_plane/core/settings.py").read_text()


def test_every_document_of_the_folder_is_listed():
    listed = (ROOT / "docs/README.md").read_text()
    written = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert {name for name in written if f"({name})" not in listed} == set()


def test_every_decision_is_listed():
    listed = (ROOT / "docs/adr/README.md").read_text()
    written = {path.name for path in (ROOT / "docs/adr").glob("0*.md")}
    assert {name for name in written if f"({name})" not in listed} == set()
