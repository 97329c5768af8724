"""`guardwave conformance`: the guards' vectors, run against the built-in reducers."""

import json
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import click

from guardwave.reducer.conformance import GUARDS, MACHINES, VectorFile, parse, run


class Tally(NamedTuple):
    """How many vectors passed and failed."""

    passed: int
    failed: int


@click.command()
@click.argument("vector_files", metavar="[FILE.json]...", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--guard", type=click.Choice(GUARDS), help="The vectors' guard; found from the file if missing."
)
@click.pass_context
def conformance(ctx: click.Context, vector_files: tuple[Path, ...], guard: str | None) -> None:
    """Run vectors against the built-in guards; without FILE, those that ship with guardwave.

    Each vector that fails is printed with its first field that differs. Ends with 1 if any failed.
    """
    documents = _read_files(vector_files) if vector_files else _read_shipped()
    tallies = [_run(name, _parse(name, text, guard)) for name, text in documents]
    passed = sum(tally.passed for tally in tallies)
    failed = sum(tally.failed for tally in tallies)
    click.echo(f"{passed} passed, {failed} failed")
    if failed:
        ctx.exit(1)


def _run(name: str, vectors: VectorFile) -> Tally:
    outcomes = [run(vector, MACHINES[vectors.guard]) for vector in vectors.vectors]
    failures = [*vectors.broken, *(failure for failure in outcomes if failure is not None)]
    for failure in failures:
        differs = failure.difference
        click.echo(
            f"{name}: {failure.vector!r} at {differs.pointer}: "
            f"expected {differs.expected}, found {differs.found}"
        )
    return Tally(outcomes.count(None), len(failures))


def _read_files(paths: tuple[Path, ...]) -> list[tuple[str, str]]:
    return [(str(path), _read(path)) for path in paths]


def _read_shipped() -> list[tuple[str, str]]:
    folder = files("guardwave.reducer.conformance") / "vectors"
    return [(f"{guard}.json", (folder / f"{guard}.json").read_text("utf-8")) for guard in GUARDS]


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise click.ClickException(f"{path} cannot be read as text: {error}") from error


def _parse(name: str, text: str, guard: str | None) -> VectorFile:
    try:
        return parse(json.loads(text), guard=guard)
    except (ValueError, RecursionError) as error:
        raise click.ClickException(f"{name} is no file of vectors: {error}") from error
