"""Parameters: those of paths, queries and headers, and the types of fields in bodies."""

import re
from collections.abc import Callable, Sequence
from datetime import date
from typing import Annotated, Final, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from guardwave.control_plane.queries.volume import Dimension
from guardwave.reducer.rollout.draw import BPS
from guardwave.reducer.vocabulary import Cohort

# A JSON number that every reader holds exactly (RFC 8259, section 6).
LARGEST = 2**53 - 1
MAX_OWNERS_AT_ONCE = 1000

# Only syntax that every dialect of regular expressions reads the same way.
_NO_CONTROLS = r"^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]*$"
_VERSION = r"^[!-~]([ -~]*[!-~])?$"
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_KEY = r'^"?[!#-~]{1,255}"?$'
_DIMENSIONS = f"^({'|'.join(Dimension)})(,({'|'.join(Dimension)}))*$"


def _whole_number(value: object) -> object:
    """Take 5.0 for 5: the value of a JSON number makes it whole, not its spelling."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _day(value: object) -> object:
    """Take only YYYY-MM-DD: pydantic itself would read 0 as a day of 1970."""
    if not isinstance(value, str) or _DAY.fullmatch(value) is None:
        raise ValueError("a day is YYYY-MM-DD")
    return value


class Omittable:
    """Marks a parameter that may be missing, which is None here, but cannot be null."""

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Describe the parameter without the null."""
        assert schema["type"] == "nullable"  # it marks nothing but `X | None`
        return handler(schema["schema"])


# Bounds stand before this marker; behind it pydantic checks but does not document them.
WholeNumber = BeforeValidator(_whole_number)
OMITTABLE: Final = Omittable()
EnvironmentName = Annotated[str, Field(pattern=r"^[a-z0-9-]{1,48}$", examples=["internal"])]
GuardName = Annotated[str, Field(pattern=r"^[a-z0-9_]{1,48}$", examples=["identical_call"])]
Number = Annotated[int, Field(ge=1, le=LARGEST, examples=[1])]
Day = Annotated[date, BeforeValidator(_day)]
# 0 stands for owners who were on no roster.
WaveNumber = Annotated[int, Field(ge=0, le=LARGEST, examples=[1])]
StrictNumber = Annotated[int, Field(strict=True, ge=1, le=LARGEST), WholeNumber]
ShareBps = Annotated[
    int, Field(strict=True, ge=1, le=BPS, description="Basis points: 500 is 5 %."), WholeNumber
]
Flag = Annotated[bool, Field(strict=True)]
ReasonText = Annotated[
    str,
    Field(min_length=10, max_length=1000, pattern=_NO_CONTROLS, description="Why, for the audit."),
]
Version = Annotated[str, Field(max_length=64, pattern=_VERSION)]
VersionPin = Annotated[tuple[Version, ...], Field(min_length=1, max_length=16)]
DayCount = Annotated[int, Field(strict=True, ge=1, le=90), WholeNumber]
Looks = Annotated[
    tuple[DayCount, ...],
    Field(min_length=1, max_length=8, description="Rising numbers of complete days."),
]
Digest = Annotated[str, Field(min_length=1, max_length=128)]
Cursor = Annotated[str, Field(pattern=r"^[a-z0-9_-]{1,64}$")]
# A sequence number, or an id of the store's stream, which needs no search.
AuditPlace = Annotated[str, Field(pattern=r"^[0-9]{1,15}(-[0-9]{1,15})?$")]
Key = Annotated[str, Field(pattern=_KEY)]


class Parameters(BaseModel):
    """Parameters of a path or a query."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class EnvironmentPath(Parameters):
    """An environment's place."""

    environment: EnvironmentName


class OwnerPath(EnvironmentPath):
    """An owner's place; ids with other characters are sent by POST."""

    owner: Annotated[str, Field(pattern=r"^[A-Za-z0-9._~:@-]{1,256}$")]


class RollbackPath(EnvironmentPath):
    """A rollback's place."""

    id: Number


class RolloutPath(EnvironmentPath):
    """A rollout's place."""

    guard: GuardName


class CohortPath(RolloutPath):
    """A cohort's place."""

    cohort: Annotated[str, Field(pattern=r"^[a-z_]{1,32}$", examples=["everyone"])]


class NumberedPath(RolloutPath):
    """The place of a wave, gate evaluation, promotion or plan."""

    id: Number


class TokenPath(Parameters):
    """A token's place."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9]{12}$")]


class WriteQuery(Parameters):
    """Parameters of writes that can be tried out."""

    dry_run: bool = Field(False, description="Answer what would change, and write nothing.")


class PageQuery(Parameters):
    """Which part of a collection; `cursor` comes from the `next` of the part before."""

    cursor: Annotated[Cursor | None, OMITTABLE] = None
    limit: int = Field(50, ge=1, le=200)


class NumberedPageQuery(Parameters):
    """Which part of a numbered collection, newest first; `cursor` as above."""

    cursor: Annotated[Number | None, OMITTABLE] = None
    limit: int = Field(50, ge=1, le=200)


class AuditQuery(Parameters):
    """Which audit entries. `environment` may be left out with a token that has only one."""

    environment: Annotated[EnvironmentName | None, OMITTABLE] = None
    after: Annotated[AuditPlace | None, OMITTABLE] = Field(
        None,
        description="The `sequence` of the last entry seen, or what `next` says.",
        examples=["0"],
    )
    limit: int = Field(50, ge=1, le=200)


class DaysQuery(Parameters):
    """UTC days, both ends included."""

    first: Annotated[Day | None, OMITTABLE] = Field(
        None, alias="from", description="The first UTC day.", examples=["2026-11-02"]
    )
    last: Annotated[Day | None, OMITTABLE] = Field(
        None, alias="to", description="The last UTC day.", examples=["2026-11-08"]
    )


class EvidenceQuery(DaysQuery):
    """Which owner-days, all that are kept unless said; `cursor` comes from the header Link."""

    wave: Annotated[WaveNumber | None, OMITTABLE] = None
    cohort: Annotated[Cohort | None, OMITTABLE] = None
    cursor: Annotated[Cursor | None, OMITTABLE] = None
    limit: int = Field(
        10_000,
        ge=1,
        le=100_000,
        description="A page ends with the bucket of owners, one of 256 a day, that reaches this.",
    )


class ExecutionsQuery(DaysQuery):
    """Of which days, and which part of the collection."""

    cursor: Annotated[Cursor | None, OMITTABLE] = None
    limit: int = Field(50, ge=1, le=200)


class TransitionsQuery(ExecutionsQuery):
    """What to tell transitions apart by, beside days and part."""

    by: Annotated[str, Field(pattern=_DIMENSIONS)] = Field(
        "day,decision,mode",
        max_length=256,
        description=f"One or several of {', '.join(Dimension)}, separated by commas.",
        examples=["day,decision,mode,reset_reason"],
    )


class IfMatch(BaseModel):
    """The precondition of a write."""

    model_config = ConfigDict(frozen=True)

    if_match: Annotated[str | None, OMITTABLE] = Field(
        None, alias="If-Match", description="The strong ETag on which the caller decides."
    )


class MaybeKeyed(IfMatch):
    """The headers of a POST that may be repeated with a key."""

    idempotency_key: Annotated[Key | None, OMITTABLE] = Field(None, alias="Idempotency-Key")


class Keyed(IfMatch):
    """The headers of a POST that must be repeatable."""

    idempotency_key: Key = Field(
        alias="Idempotency-Key",
        description="New for each change, such as a UUID; the same when a request is repeated.",
    )


Item = TypeVar("Item")


def slice_after(
    items: Sequence[Item], key_of: Callable[[Item], str], *, after: str | None, limit: int
) -> tuple[tuple[Item, ...], str | None]:
    """Return up to `limit` items after the one whose key is `after`, and the next cursor.

    `items` are in a fixed order. When that item is gone, the slice starts after every smaller key.
    """
    start = 0
    if after is not None:
        keys = [key_of(item) for item in items]
        is_there = after in keys
        start = keys.index(after) + 1 if is_there else sum(1 for key in keys if key <= after)
    shown = tuple(items[start : start + limit])
    is_last = start + limit >= len(items)
    return shown, None if is_last or not shown else key_of(shown[-1])


def numbers_below(newest: int, *, before: int | None, limit: int) -> tuple[range, str | None]:
    """Return up to `limit` falling numbers from `newest` or below `before`, and a cursor."""
    start = newest if before is None else min(newest, before - 1)
    end = max(0, start - limit)
    return range(start, end, -1), str(end + 1) if end > 0 else None
