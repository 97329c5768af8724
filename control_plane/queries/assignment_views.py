"""An assignment as agent hosts read it, and the sentence that explains it."""

from dataclasses import dataclass

from reducer.rollout.allotment import Allotment, Place
from reducer.rollout.eligibility import SENTENCES
from reducer.rollout.state import Rollout
from reducer.vocabulary import Cohort, Mode, Reason

# How long a host that cannot ask again may keep an answer; then it falls to shadow.
TTL_S = 30


@dataclass(frozen=True, slots=True)
class ReasonView:
    """Why the mode is no higher: a stable code, and what it means."""

    code: Reason
    sentence: str


@dataclass(frozen=True, slots=True)
class AssignmentView:
    """The answer. Rank, size and treated are null for an owner that is not on a roster.

    `generation` and `assignment_id` are null when this server cannot vouch for one: telemetry is
    then sent without an id, and counts as volume.
    """

    environment: str
    guard: str
    mode: Mode
    cohort: Cohort
    wave: int
    generation: int | None
    reasons: tuple[ReasonView, ...]
    sentence: str
    rank: int | None = None
    roster_size: int | None = None
    treated: int | None = None
    roster_digest: str | None = None
    algorithm: str | None = None
    ceiling_bps: int | None = None
    assignment_id: str | None = None
    diagnostic: str | None = None
    ttl_s: int = TTL_S


def unexplained(
    environment: str, guard: str, reasons: tuple[ReasonView, ...], diagnostic: str
) -> AssignmentView:
    """Return shadow for a rollout of which this server knows nothing it can trust."""
    return AssignmentView(
        environment=environment,
        guard=guard,
        mode=Mode.SHADOW,
        cohort=Cohort.INELIGIBLE,
        wave=0,
        generation=None,
        reasons=reasons,
        sentence=f"Mode shadow: {diagnostic}.",
        diagnostic=diagnostic,
    )


def sentence_of(rollout: Rollout, allotted: Allotment, place: Place | None) -> str:
    """Return the answer in one sentence, for people."""
    mode = allotted.mode
    if allotted.diagnostic is not None:
        return f"Mode {mode}: {allotted.diagnostic}."
    if allotted.reasons:
        return f"Mode {mode}: {SENTENCES[allotted.reasons[0]]}"
    if place is None:
        return f"Mode {mode}: the rollout is in {rollout.phase}, where every owner gets the same."
    if rollout.wave == 0:
        return f"Mode {mode}: the wave was closed by lowering a mode; its owners get {mode}."
    if place.treated == 0:
        return (
            f"Mode {mode}: the roster of {place.size} owners is too small for its share, so nobody "
            "is treated."
        )
    return (
        f"Mode {mode}: cohort {allotted.cohort} of wave {allotted.wave}, rank {place.rank} of "
        f"{place.size}; the first {place.treated} are treated."
    )
