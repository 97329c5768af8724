"""What the API takes: bodies, path and query parameters. Unknown members are refused."""

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema

from reducer.rollout.draw import BPS
from reducer.rollout.eligibility import Ownership
from reducer.rollout.state import EvidenceSource
from reducer.vocabulary import Gate, Mode, Role

# A JSON number that every reader holds exactly (RFC 8259, section 6).
LARGEST = 2**53 - 1
MAX_OWNERS_AT_ONCE = 1000

# Patterns are kept to what every dialect of regular expressions reads the same.
_NO_CONTROLS = r"^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]*$"
_VERSION = r"^[!-~]([ -~]*[!-~])?$"
_KEY = r'^"?[!#-~]{1,255}"?$'


def _whole(value: object) -> object:
    """Take 5.0 for 5: whether a JSON number is whole is a matter of its value, not its spelling."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


# Bounds come before this: behind it they would be checked and not documented.
Whole = BeforeValidator(_whole)
# None stands for a parameter that was left out; "null" cannot be sent in its place.
Absent = SkipJsonSchema[None]
EnvironmentName = Annotated[str, Field(pattern=r"^[a-z0-9-]{1,48}$", examples=["internal"])]
GuardName = Annotated[str, Field(pattern=r"^[a-z0-9_]{1,48}$", examples=["identical_call"])]
Number = Annotated[int, Field(ge=1, le=LARGEST, examples=[1])]
StrictNumber = Annotated[int, Field(strict=True, ge=1, le=LARGEST), Whole]
ShareBps = Annotated[
    int, Field(strict=True, ge=1, le=BPS, description="Basis points: 500 is 5 %."), Whole
]
Flag = Annotated[bool, Field(strict=True)]
Why = Annotated[
    str,
    Field(min_length=10, max_length=1000, pattern=_NO_CONTROLS, description="Why, for the audit."),
]
Version = Annotated[str, Field(max_length=64, pattern=_VERSION)]
VersionPin = Annotated[tuple[Version, ...], Field(min_length=1, max_length=16)]
Looks = Annotated[
    tuple[Annotated[int, Field(strict=True, ge=1, le=90), Whole], ...],
    Field(min_length=1, max_length=8, description="Rising numbers of complete days."),
]
Digest = Annotated[str, Field(min_length=1, max_length=128)]


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

    number: Number


class RolloutPath(EnvironmentPath):
    """A rollout's place."""

    guard: GuardName


class CohortPath(RolloutPath):
    """A cohort's place."""

    cohort: Annotated[str, Field(pattern=r"^[a-z_]{1,32}$", examples=["everyone"])]


class NumberedPath(RolloutPath):
    """The place of a wave, gate evaluation or promotion."""

    number: Number


class TokenPath(Parameters):
    """A token's place."""

    token: Annotated[str, Field(pattern=r"^[a-z0-9]{12}$")]


class WriteQuery(Parameters):
    """Parameters of writes that can be tried out."""

    dry_run: bool = Field(False, description="Answer what would change, and write nothing.")


class PageQuery(Parameters):
    """Which part of a collection; `cursor` comes from the `next` of the part before."""

    cursor: Annotated[str, Field(pattern=r"^[a-z0-9_-]{1,64}$")] | Absent = None
    limit: int = Field(50, ge=1, le=200)


class NumberedPageQuery(Parameters):
    """Which part of a numbered collection, newest first; `cursor` as above."""

    cursor: Number | Absent = None
    limit: int = Field(50, ge=1, le=200)


class AuditQuery(Parameters):
    """Which audit entries. `environment` may be left out with a token that has only one."""

    environment: EnvironmentName | Absent = None
    after: Annotated[str, Field(pattern=r"^[0-9]{1,15}-[0-9]{1,15}$")] | Absent = None
    limit: int = Field(50, ge=1, le=200)


class IfMatch(BaseModel):
    """The precondition of a write."""

    model_config = ConfigDict(frozen=True)

    if_match: str | Absent = Field(
        None, alias="If-Match", description="The strong ETag on which the caller decides."
    )


class MaybeKeyed(IfMatch):
    """The headers of a POST that may be repeated with a key."""

    idempotency_key: Annotated[str, Field(pattern=_KEY)] | Absent = Field(
        None, alias="Idempotency-Key"
    )


class Keyed(IfMatch):
    """The headers of a POST that must be repeatable."""

    idempotency_key: str = Field(
        alias="Idempotency-Key",
        pattern=_KEY,
        description="New for each change, such as a UUID; the same when a request is repeated.",
    )


class Body(BaseModel):
    """A JSON object sent to the API."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class NewEnvironment(Body):
    """Creates an environment; `requires` names others that must take each step first."""

    requires: Annotated[tuple[EnvironmentName, ...], Field(max_length=16)] | None = None
    reason: Why


class NewRollout(Body):
    """Creates the rollout of a guard, in shadow."""

    version_pin: VersionPin
    evidence_source: EvidenceSource = EvidenceSource.EVENTS
    reason: Why


class OwnerFactsBody(Body):
    """Facts of one owner."""

    ownership: Ownership
    trusted: Flag
    reason: Why | None = None


class OwnerStatementBody(Body):
    """Facts of one owner among many; `owner` has 1 to 256 printable bytes."""

    owner: Annotated[str, Field(min_length=1, max_length=256)]
    ownership: Ownership
    trusted: Flag


class OwnerStatementsBody(Body):
    """Facts of up to 1,000 owners, each named once."""

    owners: Annotated[
        tuple[OwnerStatementBody, ...], Field(min_length=1, max_length=MAX_OWNERS_AT_ONCE)
    ]
    reason: Why | None = None


class CohortBody(Body):
    """What to change of a cohort. Naming a gate evaluation makes it a promotion."""

    mode: Mode | None = None
    share_bps: ShareBps | None = None
    gate_evaluation: StrictNumber | None = None
    digest: Digest | None = None
    reason: Why


class NewWave(Body):
    """Starts the phase's wave again."""

    version_pin: VersionPin | None = None
    looks: Looks | None = None
    reason: Why


class NewEvaluation(Body):
    """Asks for a gate evaluation; the gate is the phase's."""

    gate: Gate


class NewPromotion(Body):
    """Asks for one step up, on one gate evaluation."""

    gate_evaluation: StrictNumber
    digest: Digest
    to: Mode
    share_bps: ShareBps | None = None
    reason: Why


class NewRollback(Body):
    """Returns one guard, or all of the environment, to shadow."""

    guard: GuardName | None = None
    reason: Why


class NewAcknowledgement(Body):
    """Releases the latch; `last_violation` is the newest violation that was seen."""

    last_violation: Annotated[int, Field(strict=True, ge=0, le=LARGEST), Whole]
    reason: Why


class NewToken(Body):
    """Makes a credential; every role but admin is for one environment."""

    role: Role
    environment: EnvironmentName | None = None
    trusted: Flag = False
    name: Annotated[str, Field(max_length=64, pattern=r"^[\w .,:@/()-]*$")] = ""
