"""An archive of an environment's evidence, line by line: what `evidence export` writes.

Each line is a JSON object with a `kind`. The first is the head, the last says how many lines stand
before it and their SHA-256, so that an archive that was cut short or edited is noticed.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from hashlib import sha256
from typing import Literal, TypeAlias

import orjson
from pydantic import TypeAdapter, ValidationError

from control_plane.errors import BadRequest
from control_plane.state import HarmLook, Violation
from control_plane.stores.cells import Cell
from control_plane.stores.evidence_import import LARGEST, check_owner_day
from control_plane.stores.evidence_pages import Counted, PlacedOwnerDay
from control_plane.stores.owner_days import SUMS, OwnerDay
from reducer.rollout.state import EvidenceSource, Wave
from reducer.vocabulary import Cohort, Mode

SCHEMA = 1
_OF_ROW = ("owner", "day", "cohort", "version", *SUMS, "scale", "durations", "source", "loops")


@dataclass(frozen=True, slots=True)
class Head:
    """The first line: of what, when and by which version the archive was made."""

    environment: str
    requires: tuple[str, ...]
    exported_at: datetime
    code_version: str
    schema: int = SCHEMA
    kind: Literal["archive"] = "archive"


@dataclass(frozen=True, slots=True)
class RolloutLine:
    """Where a rollout stood. Its salt and its ceiling are not carried elsewhere."""

    guard: str
    version_pin: tuple[str, ...]
    phase: Mode
    generation: int
    evidence_source: EvidenceSource
    wave: int
    last_wave: int
    membership_wave: int
    treated_bps: int
    kind: Literal["rollout"] = "rollout"


@dataclass(frozen=True, slots=True)
class WaveLine:
    """A wave, and its roster in draw order."""

    guard: str
    wave: Wave
    roster: tuple[str, ...]
    kind: Literal["wave"] = "wave"


@dataclass(frozen=True, slots=True)
class ViolationLine:
    """A violation that was recorded."""

    violation: Violation
    kind: Literal["violation"] = "violation"


@dataclass(frozen=True, slots=True)
class HarmLookLine:
    """A look for harm that was made, so that it is not made again."""

    look: HarmLook
    kind: Literal["harm-look"] = "harm-look"


@dataclass(frozen=True, slots=True)
class DayLine:
    """What is kept of a day beside owner-days and counters: seal, outage, revision, sums."""

    day: date
    fields: Mapping[str, str]
    kind: Literal["day"] = "day"


@dataclass(frozen=True, slots=True)
class CounterLine:
    """A counter of a cell and day."""

    day: date
    guard: str
    version: str
    wave: int
    cohort: Cohort | None
    mode: Mode | None
    source: EvidenceSource
    counter: str
    total: int
    kind: Literal["counter"] = "counter"

    @classmethod
    def of(cls, told: Counted) -> "CounterLine":
        """Return the line of a counter."""
        cell = told.cell
        place = (cell.guard, cell.version, cell.wave, cell.cohort, cell.mode, cell.source)
        return cls(told.day, *place, told.counter, told.total)

    def counted(self) -> Counted:
        """Return what the line says."""
        place = (self.guard, self.version, self.wave, self.cohort, self.mode, self.source)
        return Counted(self.day, Cell(*place), self.counter, self.total)


@dataclass(frozen=True, slots=True)
class End:
    """The last line: how many lines stand before it, and the SHA-256 over them, hexadecimal."""

    lines: int
    sha256: str
    kind: Literal["end"] = "end"


Line: TypeAlias = (
    Head
    | RolloutLine
    | WaveLine
    | ViolationLine
    | HarmLookLine
    | DayLine
    | CounterLine
    | PlacedOwnerDay
    | End
)
_KINDS: Mapping[str, TypeAdapter[Line]] = {
    "archive": TypeAdapter(Head),
    "rollout": TypeAdapter(RolloutLine),
    "wave": TypeAdapter(WaveLine),
    "violation": TypeAdapter(ViolationLine),
    "harm-look": TypeAdapter(HarmLookLine),
    "day": TypeAdapter(DayLine),
    "counter": TypeAdapter(CounterLine),
    "end": TypeAdapter(End),
}


@dataclass(frozen=True, slots=True)
class _Treatment:
    """What an owner-day's line says of its cell beyond the row."""

    guard: str
    wave: int
    mode: Mode


_ROW = TypeAdapter(OwnerDay)
_TREATMENT = TypeAdapter(_Treatment)


def owner_day_members(placed: PlacedOwnerDay) -> dict[str, object]:
    """Return the members of an owner-day as JSON, without its kind; the row's are in its order."""
    cell, row = placed
    of_cell = {"guard": cell.guard, "wave": cell.wave, "mode": cell.mode}
    return of_cell | {name: getattr(row, name) for name in _OF_ROW}


def encoded(line: Line) -> bytes:
    """Return a line as JSON in UTF-8, without its end. The same line gives the same bytes."""
    if isinstance(line, PlacedOwnerDay):
        return orjson.dumps({"kind": "owner-day", **owner_day_members(line)})
    return orjson.dumps(line)


def sealed(lines: Iterable[Line]) -> Iterator[tuple[Line, bytes]]:
    """Yield each line with its bytes, and behind the last one the end that tells of them all."""
    digest, count = sha256(), 0
    for line in lines:
        told = encoded(line)
        digest.update(told + b"\n")
        count += 1
        yield line, told
    end = End(count, digest.hexdigest())
    yield end, encoded(end)


def read_lines(raw: Iterable[bytes]) -> Iterator[Line]:
    """Yield the lines of an archive but its end, which is checked when it comes.

    Raises:
        BadRequest: naming the line and its member, or that lines are missing or were edited.
    """
    digest, count = sha256(), 0
    for number, given in enumerate(raw, start=1):
        told = given.rstrip(b"\r\n")
        line = _decoded(told, number)
        if isinstance(line, End):
            if (line.lines, line.sha256) != (count, digest.hexdigest()):
                raise BadRequest(
                    f"line {number}: the archive is not as it was exported ({count} lines of "
                    f"{line.lines}, or one was edited); export it again"
                )
            return
        if (number == 1) != isinstance(line, Head):
            raise BadRequest(f"line {number}: an archive has one head, and it comes first")
        digest.update(told + b"\n")
        count += 1
        yield line
    raise BadRequest(f"the archive was cut short after {count} lines; export it again")


def _decoded(told: bytes, number: int) -> Line:
    try:
        found = orjson.loads(told)
        kind = found.get("kind") if isinstance(found, dict) else None
        if kind == "owner-day":
            return _owner_day(told)
        if not isinstance(kind, str) or kind not in _KINDS:
            raise ValueError(f"kind is {kind!r}; it is owner-day or one of {', '.join(_KINDS)}")
        line = _KINDS[kind].validate_json(told, strict=True)
        if isinstance(line, CounterLine) and not 0 <= line.total <= LARGEST:
            raise ValueError(f"total is {line.total}; it is from 0 to {LARGEST}")
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the line"
        raise BadRequest(f"line {number}: {where}: {first['msg']}") from error
    except ValueError as error:
        raise BadRequest(f"line {number}: {error}") from error
    return line


def _owner_day(told: bytes) -> PlacedOwnerDay:
    row = _ROW.validate_json(told, strict=True)
    treatment = _TREATMENT.validate_json(told, strict=True)
    check_owner_day(row)
    of_cell = (treatment.guard, row.version, treatment.wave, row.cohort, treatment.mode)
    return PlacedOwnerDay(Cell(*of_cell, row.source), row)
