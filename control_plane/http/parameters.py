"""What stands beside a body: parameters of paths and queries, and headers."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from control_plane.http.fields import (
    LEFT_OUT,
    AuditPlace,
    Cursor,
    Day,
    EnvironmentName,
    GuardName,
    Key,
    Number,
    WaveNumber,
)
from control_plane.queries.volume import Dimension
from reducer.vocabulary import Cohort

_DIMENSIONS = f"^({'|'.join(Dimension)})(,({'|'.join(Dimension)}))*$"


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

    cursor: Annotated[Cursor | None, LEFT_OUT] = None
    limit: int = Field(50, ge=1, le=200)


class NumberedPageQuery(Parameters):
    """Which part of a numbered collection, newest first; `cursor` as above."""

    cursor: Annotated[Number | None, LEFT_OUT] = None
    limit: int = Field(50, ge=1, le=200)


class AuditQuery(Parameters):
    """Which audit entries. `environment` may be left out with a token that has only one."""

    environment: Annotated[EnvironmentName | None, LEFT_OUT] = None
    after: Annotated[AuditPlace | None, LEFT_OUT] = Field(
        None,
        description="The `sequence` of the last entry seen, or what `next` says.",
        examples=["0"],
    )
    limit: int = Field(50, ge=1, le=200)


class DaysQuery(Parameters):
    """UTC days, both ends included."""

    first: Annotated[Day | None, LEFT_OUT] = Field(
        None, alias="from", description="The first UTC day.", examples=["2026-11-02"]
    )
    last: Annotated[Day | None, LEFT_OUT] = Field(
        None, alias="to", description="The last UTC day.", examples=["2026-11-08"]
    )


class EvidenceQuery(DaysQuery):
    """Which owner-days, all that are kept unless said; `cursor` comes from the header Link."""

    wave: Annotated[WaveNumber | None, LEFT_OUT] = None
    cohort: Annotated[Cohort | None, LEFT_OUT] = None
    cursor: Annotated[Cursor | None, LEFT_OUT] = None
    limit: int = Field(
        10_000,
        ge=1,
        le=100_000,
        description="A page ends with the bucket of owners, one of 256 a day, that reaches this.",
    )


class ExecutionsQuery(DaysQuery):
    """Of which days, and which part of the collection."""

    cursor: Annotated[Cursor | None, LEFT_OUT] = None
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

    if_match: Annotated[str | None, LEFT_OUT] = Field(
        None, alias="If-Match", description="The strong ETag on which the caller decides."
    )


class MaybeKeyed(IfMatch):
    """The headers of a POST that may be repeated with a key."""

    idempotency_key: Annotated[Key | None, LEFT_OUT] = Field(None, alias="Idempotency-Key")


class Keyed(IfMatch):
    """The headers of a POST that must be repeatable."""

    idempotency_key: Key = Field(
        alias="Idempotency-Key",
        description="New for each change, such as a UUID; the same when a request is repeated.",
    )
