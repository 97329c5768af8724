"""`guardwave evidence`: an environment's evidence out of a store, and into another one."""

import gzip
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

import click

from control_plane.cli.asking import tell
from control_plane.cli.token import store_context
from control_plane.commands.archives import import_archive
from control_plane.queries.archive_lines import DayLine, Line, read_lines, sealed
from control_plane.queries.archives import archive_of
from control_plane.state import Actor, ActorKind
from control_plane.stores.evidence_pages import PlacedOwnerDay

_ACTOR = Actor("guardwave evidence import", ActorKind.PERSON)
_GZIP = b"\x1f\x8b"


class _Counted(NamedTuple):
    """What went by."""

    days: int
    owner_days: int


@click.group()
def evidence() -> None:
    """Export an environment's evidence, or import it into an empty store."""


@evidence.command()
@click.argument("environment")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="A new file; with --format parquet a directory. Without it NDJSON goes to stdout.",
)
@click.option("--format", "form", type=click.Choice(["ndjson", "parquet"]), default="ndjson")
def export(environment: str, *, output: Path | None, form: str) -> None:
    """Write all that verdicts on ENVIRONMENT rest on: by pseudonym, without keys and tokens."""
    if form == "parquet":
        if output is None:
            raise click.UsageError("--format parquet needs --output DIRECTORY")
        # pyarrow is an extra, and slow to load
        from control_plane.cli.parquet import written

        with store_context() as context:
            days, owner_days = written(output, sealed(archive_of(context, environment)))
    else:
        with store_context() as context, _opened(output) as file:
            days, owner_days = _write(file, sealed(archive_of(context, environment)))
    tell(f"exported {environment}: {_told(days, owner_days)}")


@evidence.command(name="import")
@click.argument("archive", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--reason", required=True, help="Why, for the audit: at least 10 characters.")
def import_(archive: Path, *, reason: str) -> None:
    """Bring ARCHIVE into a store that does not know its environment; - is stdin.

    ARCHIVE is what export wrote: a file of NDJSON, with gzip or without, or a directory of Parquet.
    The environment's gates can be evaluated again there. Every mode stays at shadow: a latch holds
    it, and acknowledging that begins anew in shadow.
    """
    with store_context(may_be_new=True) as context, _lines(archive) as lines:
        done = import_archive(context, lines, actor=_ACTOR, reason=reason)
    tell(
        f"imported {done.environment}: {_told(done.days, done.owner_days)}; a latch holds its "
        "modes at shadow"
    )


def _told(days: int, owner_days: int) -> str:
    return (
        f"{days:,} {'day' if days == 1 else 'days'}, "
        f"{owner_days:,} {'owner-day' if owner_days == 1 else 'owner-days'}"
    )


def _write(file: BinaryIO, lines: Iterable[tuple[Line, bytes]]) -> _Counted:
    days = owner_days = 0
    for line, told in lines:
        file.write(told + b"\n")
        days += isinstance(line, DayLine)
        owner_days += isinstance(line, PlacedOwnerDay)
    return _Counted(days, owner_days)


@contextmanager
def _opened(output: Path | None) -> Iterator[BinaryIO]:
    """Open stdout, or a file that gets its name when it is whole."""
    if output is None or str(output) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if output.exists():
        raise click.UsageError(f"{output} exists; name a file that does not")
    partial = output.with_name(f"{output.name}.partial")
    try:
        with partial.open("wb") as file:
            yield file
        partial.rename(output)
    except OSError as error:
        raise click.ClickException(f"{output} cannot be written: {error}") from error
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def _lines(archive: Path) -> Iterator[Iterator[Line]]:
    if archive.is_dir():
        from control_plane.cli.parquet import read

        yield read_lines(read(archive))
        return
    if str(archive) == "-":
        yield read_lines(sys.stdin.buffer)
        return
    try:
        with archive.open("rb") as file:
            is_packed = file.peek(len(_GZIP)).startswith(_GZIP)
            yield read_lines(gzip.GzipFile(fileobj=file) if is_packed else file)
    except (OSError, EOFError) as error:
        raise click.ClickException(f"{archive} cannot be read: {error}") from error
