"""Read models of the decision pages: promotion on a gate evaluation, and rollback."""

from dataclasses import dataclass
from datetime import datetime

from guardwave.control_plane.core.state import PromotionStatus
from guardwave.control_plane.queries.evaluation_model import EvaluationView
from guardwave.control_plane.queries.page_models import (
    Frame,
    GateSummary,
    GuardCard,
    LatchView,
    LookLine,
    WaveProgress,
)
from guardwave.reducer.vocabulary import Cohort, Invariant, Mode


@dataclass(frozen=True, slots=True)
class CohortMove:
    """The effect of a change on one cohort; an estimate while its roster is not frozen."""

    cohort: Cohort
    owners: int | None
    before: Mode
    after: Mode
    is_estimate: bool = False


@dataclass(frozen=True, slots=True)
class PromotionLine:
    """A promotion that named this evaluation; `refusal` says why it was refused."""

    promotion_id: int
    status: PromotionStatus
    requested_at: datetime
    actor: str
    reason: str
    refusal: str | None


@dataclass(frozen=True, slots=True)
class PromotionOffer:
    """The step that an evaluation may allow, with the reason if it does not.

    `nobody_treated` is the sentence that the roster is too small for the share. `words` must stand
    in the reason if the evaluation compares before and after.
    """

    to: Mode
    share_bps: int | None
    moves: tuple[CohortMove, ...]
    is_allowed: bool
    why_not: str | None
    nobody_treated: str | None = None
    words: str | None = None


@dataclass(frozen=True, slots=True)
class LadderPosition:
    """The position of a rollout on the ladder."""

    phase: Mode
    wave: int
    generation: int


@dataclass(frozen=True, slots=True)
class PositionChange:
    """The positions at the evaluation and now, if they differ; wave 0 means no open wave."""

    then: LadderPosition
    now: LadderPosition


@dataclass(frozen=True, slots=True)
class GatePage:
    """One gate evaluation. `newest_id` is the newest evaluation of the same rollout.

    With `moved_on` there is no offer: the evaluation belongs to a past step. `looks` are the looks
    at its wave before the evaluation; `later_looks` counts the others.
    """

    frame: Frame
    card: GuardCard
    evaluation_id: int
    digest: str
    evaluated_at: datetime
    evaluation: EvaluationView
    newest_id: int
    moved_on: PositionChange | None
    offer: PromotionOffer | None
    promotions: tuple[PromotionLine, ...]
    looks: tuple[LookLine, ...] = ()
    later_looks: int = 0

    @property
    def is_newest(self) -> bool:
        """Whether no later evaluation of this rollout exists."""
        return self.evaluation_id == self.newest_id


@dataclass(frozen=True, slots=True)
class RollbackConsequence:
    """The effect of a rollback on one guard; no moves when it is in shadow or off already.

    A guard that `restarts` gets a new wave: the days of `wave` and its newest `evaluation` stop
    counting for a gate.
    """

    guard: str
    phase: Mode
    enforced_share_bps: int | None
    moves: tuple[CohortMove, ...]
    restarts: bool
    wave: WaveProgress | None = None
    evaluation: GateSummary | None = None


@dataclass(frozen=True, slots=True)
class RollbackLine:
    """A rollback that happened."""

    rollback_id: int
    at: datetime
    actor: str
    is_automatic: bool
    reason: str


@dataclass(frozen=True, slots=True)
class ViolationLine:
    """One violated invariant, with guard, mode and generation of its record's assignment id."""

    violation_id: int
    invariant: Invariant
    guard: str
    mode: Mode
    generation: int
    at: datetime


@dataclass(frozen=True, slots=True)
class LatchPart:
    """The violations that a person reviews before acknowledging, newest first.

    `violations` are the newest of the `open_violations`; when none is open, as after an import, the
    newest recorded one, if there is one.
    """

    latch: LatchView
    violations: tuple[ViolationLine, ...]
    open_violations: int


@dataclass(frozen=True, slots=True)
class RollbackPage:
    """The effect of a rollback of an environment now, and its last rollback.

    `etag` is the environment's; an acknowledgement sends it back as `If-Match`.
    """

    frame: Frame
    environment: str
    etag: str
    consequences: tuple[RollbackConsequence, ...]
    latched: LatchPart | None
    last: RollbackLine | None

    @property
    def is_in_shadow(self) -> bool:
        """Whether no cohort of the environment is above shadow."""
        return not any(consequence.moves for consequence in self.consequences)

    @property
    def restarts(self) -> bool:
        """Whether a rollout would get a new wave and lose the days of its present one."""
        return any(consequence.restarts for consequence in self.consequences)
