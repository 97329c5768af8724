"""`guardwave evidence`: the export of an environment's evidence, and its import elsewhere."""

import gzip
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

import click

from guardwave.control_plane.archive.export import export_archive
from guardwave.control_plane.archive.imports import import_archive
from guardwave.control_plane.archive.lines import DayLine, Line, read_lines, serialize
from guardwave.control_plane.cli.http_client import print_progress
from guardwave.control_plane.cli.token import store_context
from guardwave.control_plane.core.state import Actor, ActorKind
from guardwave.control_plane.stores.evidence.pages import StratumOwnerDay

_ACTOR = Actor("guardwave evidence import", ActorKind.PERSON)
_GZIP = b"\x1f\x8b"


class _Counts(NamedTuple):
    """How many days and owner-days were exported."""

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
@click.option("--format", "file_format", type=click.Choice(["ndjson", "parquet"]), default="ndjson")
def export(environment: str, *, output: Path | None, file_format: str) -> None:
    """Write the evidence of ENVIRONMENT, by pseudonym, without keys and tokens."""
    if file_format == "parquet":
        if output is None:
            raise click.UsageError("--format parquet needs --output DIRECTORY")
        # pyarrow is an extra, and slow to load
        from guardwave.control_plane.archive.parquet import write_parquet

        with store_context() as context:
            days, owner_days = write_parquet(
                output, serialize(export_archive(context, environment))
            )
    else:
        with store_context() as context, _output_file(output) as file:
            days, owner_days = _write(file, serialize(export_archive(context, environment)))
    print_progress(f"exported {environment}: {_counts_text(days, owner_days)}")


@evidence.command(name="import")
@click.argument("archive", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--reason", required=True, help="Why, for the audit: at least 10 characters.")
def import_(archive: Path, *, reason: str) -> None:
    """Import ARCHIVE into a store that does not have its environment; - is stdin.

    ARCHIVE is what export wrote: a file of NDJSON, with gzip or without, or a directory of Parquet.
    The environment's gates can be evaluated again there. Every mode stays at shadow: a latch holds
    it, and acknowledging the latch starts a new shadow wave.
    """
    with store_context(may_be_new=True) as context, _archive_lines(archive) as lines:
        done = import_archive(context, lines, actor=_ACTOR, reason=reason)
    print_progress(
        f"imported {done.environment}: {_counts_text(done.days, done.owner_days)}; a latch "
        "holds its modes at shadow"
    )


def _counts_text(days: int, owner_days: int) -> str:
    return (
        f"{days:,} {'day' if days == 1 else 'days'}, "
        f"{owner_days:,} {'owner-day' if owner_days == 1 else 'owner-days'}"
    )


def _write(file: BinaryIO, lines: Iterable[tuple[Line, bytes]]) -> _Counts:
    days = owner_days = 0
    for line, encoded in lines:
        file.write(encoded + b"\n")
        days += isinstance(line, DayLine)
        owner_days += isinstance(line, StratumOwnerDay)
    return _Counts(days, owner_days)


@contextmanager
def _output_file(output: Path | None) -> Iterator[BinaryIO]:
    """Open stdout, or a file that gets its name once it is complete."""
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
def _archive_lines(archive: Path) -> Iterator[Iterator[Line]]:
    if archive.is_dir():
        from guardwave.control_plane.archive.parquet import read_parquet

        yield read_lines(read_parquet(archive))
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
