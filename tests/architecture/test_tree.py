"""The tree of the product: small rooms, one idea in each module, names from the glossary."""

import ast
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("analysis", "control_plane", "dashboards", "reducer")
MODULES = [file for room in ROOMS for file in sorted((ROOT / room).rglob("*.py"))]
LUA = sorted((ROOT / "control_plane/stores/lua").rglob("*.lua"))
PACKAGES = sorted({file.parent for file in MODULES})

MOST_LINES = 400
MOST_IN_A_FOLDER = 12
# One module for each page, route, command or job: a row of like things is read by its list.
ROWS = {
    "control_plane/cli",
    "control_plane/commands",
    "control_plane/http/api",
    "control_plane/jobs",
    "control_plane/queries",
    "dashboards/views",
}
MOST_IN_A_ROW = 20
# Under this length a module whose only importer is its neighbour belongs into that neighbour.
SPLINTER_LINES = 60
# gunicorn starts it by its name.
ENTRY_POINTS = {"control_plane/server/wsgi.py"}

GLOSSARY = (ROOT / "docs" / "glossary.md").read_text()
QUESTION = re.compile(r"(What|Whether|Which|How|Where|Who|Why|When)\b")
NOUN = re.compile(r"[A-Z`0-9].*?: \S")


def place(path: Path) -> str:
    return str(path.relative_to(ROOT))


def docstring(file: Path) -> str:
    return ast.get_docstring(ast.parse(file.read_text())) or ""


def singular(word: str) -> str:
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    return word.removesuffix("s")


def glossary_words() -> set[str]:
    """Return the words of the tables' first columns and of the closing list, in the singular."""
    tables, _, plain = GLOSSARY.partition("## Plain technical words")
    columns = re.findall(r"^\| ([^|]+) \|", tables, re.MULTILINE)
    return {singular(word) for word in re.findall(r"[a-z0-9]+", f"{' '.join(columns)} {plain}")}


def test_a_module_has_at_most_400_lines():
    others = [file for folder in ("examples", "tests") for file in (ROOT / folder).rglob("*.py")]
    files = [*MODULES, *LUA, *others]
    lengths = {place(file): len(file.read_text().splitlines()) for file in files}
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES} == {}


def test_a_folder_holds_few_modules():
    sizes = Counter(place(file.parent) for file in MODULES if file.name != "__init__.py")
    sizes.update(place(file.parent) for file in LUA)
    most = {folder: MOST_IN_A_ROW if folder in ROWS else MOST_IN_A_FOLDER for folder in sizes}
    assert {folder: size for folder, size in sizes.items() if size > most[folder]} == {}
    assert sizes.keys() >= ROWS


def test_a_package_shows_its_face():
    faceless = [
        place(folder)
        for folder in PACKAGES
        if "__all__" not in module_variables(folder / "__init__.py")
    ]
    assert faceless == []


def module_variables(file: Path) -> set[str]:
    tree = ast.parse(file.read_text())
    return {ast.unparse(node.targets[0]) for node in tree.body if isinstance(node, ast.Assign)}


def test_each_part_of_a_name_stands_in_the_glossary():
    known = glossary_words()
    parts = {part for path in [*MODULES, *PACKAGES] for part in path.stem.strip("_").split("_")}
    assert {part for part in parts - {"init"} if singular(part) not in known} == set()


def test_a_module_docstring_names_what_the_module_owns():
    """The first line is a noun, a colon, and one clause; it asks no question."""
    first_lines = {place(file): docstring(file).partition("\n")[0] for file in MODULES}
    assert {
        name: line
        for name, line in first_lines.items()
        if QUESTION.match(line) or not NOUN.match(line) or not line.endswith(".")
    } == {}


def names_of_modules() -> dict[str, Path]:
    """Return the file of each module, by its dotted name and by each name that its face lends."""
    names = {
        ".".join(("guardwave", *file.relative_to(ROOT).with_suffix("").parts)): file
        for file in MODULES
        if file.name != "__init__.py"
    }
    for folder in PACKAGES:
        package = ".".join(("guardwave", *folder.relative_to(ROOT).parts))
        for name, source in imported(folder / "__init__.py"):
            if source in names:
                names[f"{package}.{name}"] = names[source]
    return names


def imported(file: Path) -> list[tuple[str, str]]:
    """Return each name that a module imports from another, and that other's dotted name."""
    return [
        (alias.name, node.module)
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    ]


def test_no_splinter_stands_beside_its_only_importer():
    """A short module whose only importer is in the same room belongs into it."""
    names = names_of_modules()
    users: dict[Path, set[Path]] = {file: set() for file in names.values()}
    for file in MODULES:
        if file.name != "__init__.py":
            for name, source in imported(file):
                for target in (source, f"{source}.{name}"):
                    if target in names:
                        users[names[target]].add(file)
    splinters = [
        place(file)
        for file, by in users.items()
        if len(file.read_text().splitlines()) < SPLINTER_LINES
        and [user.parent for user in by] == [file.parent]
        and place(file.parent) not in ROWS
        and place(file) not in ENTRY_POINTS
    ]
    assert splinters == []


def test_no_loop_runs_over_each():
    """A loop names the thing that it takes, also in tests."""
    folders = (*ROOMS, "examples", "tests", "benchmarks", "docs", ".ci")
    loops = [
        f"{place(file)}:{node.target.lineno}"
        for folder in folders
        for file in sorted((ROOT / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.For | ast.comprehension)
        and "each" in {name.id for name in ast.walk(node.target) if isinstance(name, ast.Name)}
    ]
    assert loops == []
