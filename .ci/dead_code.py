"""Report code that nothing uses: vulture's findings, without the uses that vulture can't see.

Those are names that templates read, attributes set for a library to read, and members of
enumerations, which are closed sets of the domain and made from their value. Everything else is
either deleted or stands in vulture_whitelist.py with its reason.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from jinja2 import Environment, nodes

ROOT = Path(__file__).parents[1]
FINDING = re.compile(r"(?P<file>[^:]+):(?P<line>\d+): unused (?P<kind>\w+) '(?P<name>\w+)'")
ENUMERATIONS = {"Enum", "IntEnum", "StrEnum"}


def read_by_templates() -> set[str]:
    """Return every name and attribute that a template reads, and every filter it applies."""
    names: set[str] = set()
    for template in (ROOT / "dashboards" / "templates").rglob("*.*"):
        tree = Environment(autoescape=True).parse(template.read_text())
        names.update(node.attr for node in tree.find_all(nodes.Getattr))
        names.update(node.name for node in tree.find_all(nodes.Filter) if node.name)
        names.update(node.name for node in tree.find_all(nodes.Name))
    return names


def enumeration_members(file: Path) -> Iterator[int]:
    """Yield the lines on which a file lists members of an enumeration."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ClassDef) and any(
            isinstance(base, ast.Name) and base.id in ENUMERATIONS for base in node.bases
        ):
            yield from (line.lineno for line in node.body if isinstance(line, ast.Assign))


def is_used_elsewhere(found: re.Match[str], in_templates: set[str]) -> bool:
    """Whether a finding of vulture is used by something that vulture doesn't read."""
    file, line, name = ROOT / found["file"], int(found["line"]), found["name"]
    if found["kind"] == "attribute":
        # Set on an object of a library, which reads it; an own object's would be set on self.
        return f"self.{name}" not in file.read_text().splitlines()[line - 1]
    return name in in_templates or line in enumeration_members(file)


def main() -> int:
    """Print what is dead and return the exit code."""
    program = Path(sys.executable).with_name("vulture")
    run = subprocess.run([program], cwd=ROOT, capture_output=True, text=True, check=False)
    in_templates = read_by_templates()
    dead = [
        line
        for line in (run.stdout + run.stderr).splitlines()
        if not (found := FINDING.match(line)) or not is_used_elsewhere(found, in_templates)
    ]
    for line in dead:
        print(line)
    return 1 if dead else 0


if __name__ == "__main__":
    sys.exit(main())
