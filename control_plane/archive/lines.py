"""Archive lines: the format that `evidence export` writes.

Each line is a JSON object with a `kind`. The first is the head; the last holds the number of lines
before it and their SHA-256, so that a truncated or edited archive is noticed.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from hashlib import sha256
from typing import Literal, TypeAlias

import orjson
from pydantic import TypeAdapter, ValidationError

from guardwave.control_plane.core.errors import BadRequest
from guardwave.control_plane.core.state import HarmLook, Violation
from guardwave.control_plane.stores.evidence.delta.dedupe_keys import MOST
from guardwave.control_plane.stores.evidence.delta.strata import Stratum
from guardwave.control_plane.stores.evidence.imports import check_owner_day
from guardwave.control_plane.stores.evidence.owner_days import SUMS, OwnerDay
from guardwave.control_plane.stores.evidence.pages import CounterTotal, StratumOwnerDay
from guardwave.reducer.rollout.state import EvidenceSource, Wave
from guardwave.reducer.vocabulary import Cohort, Mode

SCHEMA = 1
_ROW_MEMBERS = ("owner", "day", "cohort", "version", *SUMS, "scale", "durations", "source", "loops")


@dataclass(frozen=True, slots=True)
class Head:
    """The first line: the archive's environment, time and code version."""

    environment: str
    requires: tuple[str, ...]
    exported_at: datetime
    code_version: str
    schema: int = SCHEMA
    kind: Literal["archive"] = "archive"


@dataclass(frozen=True, slots=True)
class RolloutLine:
    """The state of a rollout, without its salt and its ceiling."""

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
    """A recorded violation."""

    violation: Violation
    kind: Literal["violation"] = "violation"


@dataclass(frozen=True, slots=True)
class HarmLookLine:
    """A look for harm, so that it is not made again."""

    look: HarmLook
    kind: Literal["harm-look"] = "harm-look"


@dataclass(frozen=True, slots=True)
class DayLine:
    """The fields of a day beside its owner-days and counters: seal, outage, revision, sums."""

    day: date
    fields: Mapping[str, str]
    kind: Literal["day"] = "day"


@dataclass(frozen=True, slots=True)
class CounterLine:
    """A counter of a stratum and day."""

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
    def of(cls, total: CounterTotal) -> "CounterLine":
        """Return the line of a counter."""
        stratum = total.stratum
        return cls(
            total.day,
            stratum.guard,
            stratum.version,
            stratum.wave,
            stratum.cohort,
            stratum.mode,
            stratum.source,
            total.counter,
            total.total,
        )

    def counter_total(self) -> CounterTotal:
        """Return the counter of the line."""
        fields = (self.guard, self.version, self.wave, self.cohort, self.mode, self.source)
        return CounterTotal(self.day, Stratum(*fields), self.counter, self.total)


@dataclass(frozen=True, slots=True)
class End:
    """The last line: the number of lines before it, and their SHA-256, hexadecimal."""

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
    | StratumOwnerDay
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
    """The members of an owner-day's line that its stratum adds to the row."""

    guard: str
    wave: int
    mode: Mode


_ROW = TypeAdapter(OwnerDay)
_TREATMENT = TypeAdapter(_Treatment)


def owner_day_members(owner_day: StratumOwnerDay) -> dict[str, object]:
    """Return the JSON members of an owner-day without its kind, those of the row in its order."""
    stratum, row = owner_day
    treatment = {"guard": stratum.guard, "wave": stratum.wave, "mode": stratum.mode}
    return treatment | {name: getattr(row, name) for name in _ROW_MEMBERS}


def encode_line(line: Line) -> bytes:
    """Return a line as JSON in UTF-8, without a line feed. Equal lines give equal bytes."""
    if isinstance(line, StratumOwnerDay):
        return orjson.dumps({"kind": "owner-day", **owner_day_members(line)})
    return orjson.dumps(line)


def serialize(lines: Iterable[Line]) -> Iterator[tuple[Line, bytes]]:
    """Yield each line with its bytes, and then the end, which counts and hashes them."""
    digest, count = sha256(), 0
    for line in lines:
        encoded = encode_line(line)
        digest.update(encoded + b"\n")
        count += 1
        yield line, encoded
    end = End(count, digest.hexdigest())
    yield end, encode_line(end)


def read_lines(raw: Iterable[bytes]) -> Iterator[Line]:
    """Yield the lines of an archive without its end, which is checked.

    Raises:
        BadRequest: a line cannot be read, or lines are missing or were edited.
    """
    digest, count = sha256(), 0
    for number, raw_line in enumerate(raw, start=1):
        encoded = raw_line.rstrip(b"\r\n")
        line = _decode_line(encoded, number)
        if isinstance(line, End):
            if (line.lines, line.sha256) != (count, digest.hexdigest()):
                raise BadRequest(
                    f"line {number}: the archive is not as it was exported ({count} lines of "
                    f"{line.lines}, or one was edited); export it again"
                )
            return
        if (number == 1) != isinstance(line, Head):
            raise BadRequest(f"line {number}: an archive has one head, and it comes first")
        digest.update(encoded + b"\n")
        count += 1
        yield line
    raise BadRequest(f"the archive was cut short after {count} lines; export it again")


def _decode_line(encoded: bytes, number: int) -> Line:
    try:
        found = orjson.loads(encoded)
        kind = found.get("kind") if isinstance(found, dict) else None
        if kind == "owner-day":
            return _decode_owner_day(encoded)
        if not isinstance(kind, str) or kind not in _KINDS:
            raise ValueError(f"kind is {kind!r}; it is owner-day or one of {', '.join(_KINDS)}")
        line = _KINDS[kind].validate_json(encoded, strict=True)
        if isinstance(line, CounterLine) and not 0 <= line.total <= MOST:
            raise ValueError(f"total is {line.total}; it is from 0 to {MOST}")
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        member = ".".join(str(part) for part in first["loc"]) or "the line"
        raise BadRequest(f"line {number}: {member}: {first['msg']}") from error
    except ValueError as error:
        raise BadRequest(f"line {number}: {error}") from error
    return line


def _decode_owner_day(encoded: bytes) -> StratumOwnerDay:
    row = _ROW.validate_json(encoded, strict=True)
    treatment = _TREATMENT.validate_json(encoded, strict=True)
    check_owner_day(row)
    fields = (treatment.guard, row.version, treatment.wave, row.cohort, treatment.mode)
    return StratumOwnerDay(Stratum(*fields, row.source), row)
