"""Bodies: the JSON objects that the API takes; unknown members are rejected."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from guardwave.control_plane.commands.plans import MOST_PLACEBO_WAVES, PLACEBO_WAVES
from guardwave.control_plane.commands.waves import MAX_LOOKS
from guardwave.control_plane.http.schema.parameters import (
    LARGEST,
    MAX_OWNERS_AT_ONCE,
    DayCount,
    Digest,
    EnvironmentName,
    Flag,
    GuardName,
    Looks,
    ReasonText,
    ShareBps,
    StrictNumber,
    VersionPin,
    WholeNumber,
)
from guardwave.reducer.rollout.eligibility import Ownership
from guardwave.reducer.rollout.state import EvidenceSource
from guardwave.reducer.vocabulary import Gate, Mode, Role


class Body(BaseModel):
    """A JSON object sent to the API."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class NewEnvironment(Body):
    """Creates an environment; `requires` names others that must take each step first."""

    requires: Annotated[tuple[EnvironmentName, ...], Field(max_length=16)] | None = None
    reason: ReasonText


class NewRollout(Body):
    """Creates the rollout of a guard, in shadow."""

    version_pin: VersionPin
    evidence_source: EvidenceSource = EvidenceSource.EVENTS
    reason: ReasonText


class OwnerFactsBody(Body):
    """Facts of one owner."""

    ownership: Ownership
    trusted: Flag
    reason: ReasonText | None = None


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
    reason: ReasonText | None = None


class CohortBody(Body):
    """What to change of a cohort. Naming a gate evaluation makes it a promotion."""

    mode: Mode | None = None
    share_bps: ShareBps | None = None
    gate_evaluation: StrictNumber | None = None
    digest: Digest | None = None
    reason: ReasonText


class NewWave(Body):
    """Starts the phase's wave again."""

    version_pin: VersionPin | None = None
    looks: Looks | None = None
    reason: ReasonText


class NewEvaluation(Body):
    """Asks for a gate evaluation; the gate is the phase's."""

    gate: Gate


class NewPromotion(Body):
    """Asks for one step up, on one gate evaluation."""

    gate_evaluation: StrictNumber
    digest: Digest
    to: Mode
    share_bps: ShareBps | None = None
    reason: ReasonText


class NewPlan(Body):
    """Asks what the next wave could prove: for each share and length, by default the policy's."""

    shares_bps: Annotated[tuple[ShareBps, ...], Field(max_length=4)] = ()
    days: Annotated[tuple[DayCount, ...], Field(max_length=4)] = ()
    placebo_waves: Annotated[
        int,
        Field(strict=True, ge=100, le=MOST_PLACEBO_WAVES, description="Simulated for each."),
        WholeNumber,
    ] = PLACEBO_WAVES
    looks: Annotated[
        int,
        Field(strict=True, ge=1, le=MAX_LOOKS, description="Declared looks, which share alpha."),
        WholeNumber,
    ] = 1


class NewRollback(Body):
    """Returns one guard, or all of the environment, to shadow."""

    guard: GuardName | None = None
    reason: ReasonText


class NewAcknowledgement(Body):
    """Releases the latch; `last_violation` is the newest violation that was seen."""

    last_violation: Annotated[int, Field(strict=True, ge=0, le=LARGEST), WholeNumber]
    reason: ReasonText


class NewToken(Body):
    """Makes a credential; every role but admin is for one environment."""

    role: Role
    environment: EnvironmentName | None = None
    trusted: Flag = False
    name: Annotated[str, Field(max_length=64, pattern=r"^[\w .,:@/()-]*$")] = ""
