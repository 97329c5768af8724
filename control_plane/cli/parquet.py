"""Archives as Parquet: owner-days by environment and day, and the lines that are none beside them.

`environment=NAME/day=YYYY-MM-DD/owner-days.parquet` is how pandas, DuckDB and Spark expect
partitions; `environment=NAME/_archive.ndjson` holds the other lines, which they leave alone.
"""

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any, Self

import click

from control_plane.errors import BadRequest
from control_plane.queries.archive_lines import (
    DayLine,
    Head,
    Line,
    encoded,
    owner_day_members,
)
from control_plane.stores.cells import Cell
from control_plane.stores.evidence_pages import PlacedOwnerDay
from control_plane.stores.owner_days import SUMS, OwnerDay
from reducer.rollout.state import EvidenceSource
from reducer.vocabulary import Cohort, Mode

try:
    import pyarrow as pa  # type: ignore[import-untyped]  # the package ships no types
    import pyarrow.parquet as pq  # type: ignore[import-untyped]  # as above
except ModuleNotFoundError as missing:
    raise click.ClickException(
        "Parquet needs the parquet extra (pyarrow is missing); install it from a checkout with "
        "pip install '.[parquet]'"
    ) from missing

LINES = "_archive.ndjson"
_FILE = "owner-days.parquet"
_ROWS_AT_ONCE = 20_000
_TEXTS = ("owner", "guard", "cohort", "mode", "version", "source")
# Of loop events a null says that nobody counted them.
_NUMBERS = ("wave", "scale", *SUMS, "loops")
_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in _TEXTS),
        *((name, pa.int64()) for name in _NUMBERS),
        ("duration_buckets", pa.list_(pa.int64())),
        ("duration_counts", pa.list_(pa.int64())),
    ]
)


def written(directory: Path, lines: Iterable[tuple[Line, bytes]]) -> tuple[int, int]:
    """Write an archive into a directory; answer of how many days and owner-days it is.

    Raises:
        ClickException: the environment is there already, or the disk refuses.
    """
    stream = iter(lines)
    head, told = next(stream)
    assert isinstance(head, Head)  # every archive begins so
    place = directory / f"environment={head.environment}"
    # Readers pass over a name that begins so: what a kill leaves is no evidence.
    partial = directory / f"_{place.name}.partial"
    if place.exists():
        raise click.ClickException(f"{place} exists; name another directory")
    is_new = not directory.exists()
    try:
        partial.mkdir(parents=True)
    except FileExistsError as error:
        raise click.ClickException(
            f"{partial} exists: an export is writing it, or one was killed; remove it if none is"
        ) from error
    except OSError as error:
        raise click.ClickException(f"{partial} cannot be made: {error}") from error
    try:
        counted = _write(partial, told, stream)
        partial.rename(place)
    except OSError as error:
        raise click.ClickException(f"{place} cannot be written: {error}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        if is_new:
            _remove_if_empty(directory)
    return counted


def _remove_if_empty(directory: Path) -> None:
    """Leave no directory of a failed export, which readers would take for a frame without rows."""
    with suppress(OSError):
        directory.rmdir()


def _write(place: Path, head: bytes, lines: Iterable[tuple[Line, bytes]]) -> tuple[int, int]:
    days = owner_days = 0
    with (place / LINES).open("wb") as file, _Days(place) as files:
        file.write(head + b"\n")
        for line, told in lines:
            if isinstance(line, PlacedOwnerDay):
                owner_days += 1
                files.add(line)
                continue
            days += isinstance(line, DayLine)
            file.write(told + b"\n")
    return days, owner_days


class _Days:
    """One Parquet file for each day, written while the owner-days come by, in order of days."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._day: date | None = None
        self._waiting: list[PlacedOwnerDay] = []
        self._writer: pq.ParquetWriter | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end_day()

    def add(self, placed: PlacedOwnerDay) -> None:
        if placed.row.day != self._day:
            self._end_day()
            self._day = placed.row.day
            place = self._place / f"day={self._day}"
            place.mkdir()
            self._writer = pq.ParquetWriter(place / _FILE, _SCHEMA, compression="zstd")
        self._waiting.append(placed)
        if len(self._waiting) >= _ROWS_AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        if self._writer is not None and self._waiting:
            self._writer.write_table(_table(self._waiting))
            self._waiting.clear()

    def _end_day(self) -> None:
        self._flush()
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def _table(placed: Sequence[PlacedOwnerDay]) -> pa.Table:
    rows = [owner_day_members(each) for each in placed]
    columns = {name: [row[name] for row in rows] for name in (*_TEXTS, *_NUMBERS)}
    durations = [each.row.durations for each in placed]
    columns["duration_buckets"] = [[bucket for bucket, _ in told] for told in durations]
    columns["duration_counts"] = [[prompts for _, prompts in told] for told in durations]
    return pa.Table.from_pydict(columns, schema=_SCHEMA)


def read(directory: Path) -> Iterator[bytes]:
    """Yield the lines of the archive in a directory, in the order in which they were exported.

    Raises:
        ClickException: there is no archive, or there are several.
        BadRequest: a file is none that an export wrote.
    """
    if (directory / LINES).is_file():
        place = directory
    else:
        found = sorted(each.parent for each in directory.glob(f"environment=*/{LINES}"))
        if len(found) != 1:
            named = ", ".join(each.name for each in found) or "none"
            raise click.ClickException(
                f"{directory} holds the archives {named}; name the directory of one, "
                "environment=NAME"
            )
        place = found[0]
    with (place / LINES).open("rb") as file:
        told = file.readlines()
    yield from told[:-1]
    for each in sorted(place.glob(f"day=*/{_FILE}")):
        yield from _owner_days(each)
    # The end, which counts them all.
    yield from told[-1:]


def _owner_days(file: Path) -> Iterator[bytes]:
    day = file.parent.name.removeprefix("day=")
    try:
        for batch in pq.ParquetFile(file).iter_batches(_ROWS_AT_ONCE):
            for row in batch.to_pylist():
                yield encoded(_placed(row, day))
    except (pa.ArrowException, KeyError, TypeError, ValueError) as error:
        raise BadRequest(f"{file} holds no owner-days of an export: {error}") from error


def _placed(row: Mapping[str, Any], day: str) -> PlacedOwnerDay:
    durations = zip(row["duration_buckets"], row["duration_counts"], strict=True)
    found = OwnerDay(
        row["owner"],
        date.fromisoformat(day),
        Cohort(row["cohort"]),
        row["version"],
        **{name: row[name] for name in SUMS},
        durations=tuple(durations),
        scale=row["scale"],
        source=EvidenceSource(row["source"]),
        loops=row.get("loops"),
        mode=Mode(row["mode"]),
    )
    of_cell = (row["guard"], found.version, row["wave"], found.cohort, found.mode)
    return PlacedOwnerDay(Cell(*of_cell, found.source), found)
