"""What stands beside a body: parameters of paths and queries, and headers."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from control_plane.http.fields import (
    LEFT_OUT,
    AuditPlace,
    Cursor,
    EnvironmentName,
    GuardName,
    Key,
    Number,
)


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
