"""Parquet archives: owner-days by environment and day, and all other lines in a file beside them.

pandas, DuckDB and Spark read `environment=NAME/day=YYYY-MM-DD/owner-days.parquet` as partitions,
and ignore `environment=NAME/_archive.ndjson`, which holds the other lines.
"""

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any, Self

import click

from guardwave.control_plane.archive.lines import (
    DayLine,
    Head,
    Line,
    encode_line,
    owner_day_members,
)
from guardwave.control_plane.core.errors import BadRequest
from guardwave.control_plane.stores.evidence.delta.strata import Stratum
from guardwave.control_plane.stores.evidence.owner_days import SUMS, OwnerDay
from guardwave.control_plane.stores.evidence.pages import StratumOwnerDay
from guardwave.reducer.rollout.state import EvidenceSource
from guardwave.reducer.vocabulary import Cohort, Mode

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
# A null in `loops` means that nobody counted loop events.
_NUMBERS = ("wave", "scale", *SUMS, "loops")
_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in _TEXTS),
        *((name, pa.int64()) for name in _NUMBERS),
        ("duration_buckets", pa.list_(pa.int64())),
        ("duration_counts", pa.list_(pa.int64())),
    ]
)


def write_parquet(directory: Path, lines: Iterable[tuple[Line, bytes]]) -> tuple[int, int]:
    """Write an archive into a directory; return its numbers of days and owner-days.

    Raises:
        ClickException: the environment is there already, or the directory cannot be written.
    """
    stream = iter(lines)
    head, encoded_head = next(stream)
    assert isinstance(head, Head)  # the first line of every archive
    place = directory / f"environment={head.environment}"
    # Readers skip names that begin with _, so the remains of a killed export are no evidence.
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
        counts = _write_lines(partial, encoded_head, stream)
        partial.rename(place)
    except OSError as error:
        raise click.ClickException(f"{place} cannot be written: {error}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        if is_new:
            _remove_if_empty(directory)
    return counts


def _remove_if_empty(directory: Path) -> None:
    """Remove the directory of a failed export; readers would see a frame without rows."""
    with suppress(OSError):
        directory.rmdir()


def _write_lines(place: Path, head: bytes, lines: Iterable[tuple[Line, bytes]]) -> tuple[int, int]:
    days = owner_days = 0
    with (place / LINES).open("wb") as file, _DayFiles(place) as day_files:
        file.write(head + b"\n")
        for line, encoded in lines:
            if isinstance(line, StratumOwnerDay):
                owner_days += 1
                day_files.add(line)
                continue
            days += isinstance(line, DayLine)
            file.write(encoded + b"\n")
    return days, owner_days


class _DayFiles:
    """One Parquet file for each day, written as the owner-days arrive in order of days."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._day: date | None = None
        self._pending: list[StratumOwnerDay] = []
        self._writer: pq.ParquetWriter | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end_day()

    def add(self, owner_day: StratumOwnerDay) -> None:
        if owner_day.row.day != self._day:
            self._end_day()
            self._day = owner_day.row.day
            place = self._place / f"day={self._day}"
            place.mkdir()
            self._writer = pq.ParquetWriter(place / _FILE, _SCHEMA, compression="zstd")
        self._pending.append(owner_day)
        if len(self._pending) >= _ROWS_AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        if self._writer is not None and self._pending:
            self._writer.write_table(_table(self._pending))
            self._pending.clear()

    def _end_day(self) -> None:
        self._flush()
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def _table(owner_days: Sequence[StratumOwnerDay]) -> pa.Table:
    rows = [owner_day_members(owner_day) for owner_day in owner_days]
    columns = {name: [row[name] for row in rows] for name in (*_TEXTS, *_NUMBERS)}
    histograms = [owner_day.row.durations for owner_day in owner_days]
    columns["duration_buckets"] = [[bucket for bucket, _ in pairs] for pairs in histograms]
    columns["duration_counts"] = [[prompts for _, prompts in pairs] for pairs in histograms]
    return pa.Table.from_pydict(columns, schema=_SCHEMA)


def read_parquet(directory: Path) -> Iterator[bytes]:
    """Yield the lines of the archive in a directory, in the order in which they were exported.

    Raises:
        ClickException: there is no archive, or there are several.
        BadRequest: a file was not written by an export.
    """
    if (directory / LINES).is_file():
        place = directory
    else:
        found = sorted(file.parent for file in directory.glob(f"environment=*/{LINES}"))
        if len(found) != 1:
            named = ", ".join(archive.name for archive in found) or "none"
            raise click.ClickException(
                f"{directory} holds the archives {named}; name the directory of one, "
                "environment=NAME"
            )
        place = found[0]
    with (place / LINES).open("rb") as file:
        lines = file.readlines()
    yield from lines[:-1]
    for day_file in sorted(place.glob(f"day=*/{_FILE}")):
        yield from _owner_day_lines(day_file)
    # The end, which counts all lines.
    yield from lines[-1:]


def _owner_day_lines(file: Path) -> Iterator[bytes]:
    day = file.parent.name.removeprefix("day=")
    try:
        for batch in pq.ParquetFile(file).iter_batches(_ROWS_AT_ONCE):
            for row in batch.to_pylist():
                yield encode_line(_owner_day(row, day))
    except (pa.ArrowException, KeyError, TypeError, ValueError) as error:
        raise BadRequest(f"{file} holds no owner-days of an export: {error}") from error


def _owner_day(row: Mapping[str, Any], day: str) -> StratumOwnerDay:
    durations = zip(row["duration_buckets"], row["duration_counts"], strict=True)
    owner_day = OwnerDay(
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
    fields = (row["guard"], owner_day.version, row["wave"], owner_day.cohort, owner_day.mode)
    return StratumOwnerDay(Stratum(*fields, owner_day.source), owner_day)
