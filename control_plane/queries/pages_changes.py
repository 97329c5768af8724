"""What the pages show on which a person decides: promoting on a gate evaluation, rolling back."""

from dataclasses import dataclass
from datetime import datetime

from control_plane.queries.pages import (
    Frame,
    GateSummary,
    GuardCard,
    LatchView,
    LookLine,
    WaveProgress,
)
from control_plane.queries.pages_evaluation import EvaluationView
from control_plane.state import PromotionStatus
from reducer.vocabulary import Cohort, Invariant, Mode


@dataclass(frozen=True, slots=True)
class CohortMove:
    """What a change would do to one cohort; an estimate where its roster is not frozen yet."""

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
    """The step that this evaluation is about, and why it can't be taken when it can't.

    `nobody_treated` says, as one sentence, that the roster is too small for the share. `words` are
    those that the reason must hold, where the evaluation compares before and after.
    """

    to: Mode
    share_bps: int | None
    moves: tuple[CohortMove, ...]
    is_allowed: bool
    why_not: str | None
    nobody_treated: str | None = None
    words: str | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a rollout stands on the ladder: then, when it was evaluated, or now."""

    phase: Mode
    wave: int
    generation: int


@dataclass(frozen=True, slots=True)
class MovedOn:
    """The rollout is no longer what the evaluation was about; wave 0 means that none is open."""

    then: Standing
    now: Standing


@dataclass(frozen=True, slots=True)
class GatePage:
    """One gate evaluation. `newest_id` is the newest evaluation of the same rollout.

    With `moved_on` there is no offer: the evaluation is about a step of the past. Of the looks at
    its wave it shows those of before; `later_looks` counts the others.
    """

    frame: Frame
    card: GuardCard
    evaluation_id: int
    digest: str
    evaluated_at: datetime
    evaluation: EvaluationView
    newest_id: int
    moved_on: MovedOn | None
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
    """What a rollback would do to one guard; no moves when it is in shadow or off already.

    What `begins_anew` gets a new wave: the days of `wave` stop counting for a gate, and so does
    `evaluation`, the newest one of that wave as it stands.
    """

    guard: str
    phase: Mode
    enforced_share_bps: int | None
    moves: tuple[CohortMove, ...]
    begins_anew: bool
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
    """One violated invariant, and what the assignment id of its record speaks of."""

    violation_id: int
    invariant: Invariant
    guard: str
    mode: Mode
    generation: int
    at: datetime


@dataclass(frozen=True, slots=True)
class LatchPart:
    """What a person looks at before acknowledging: the open violations, newest first.

    `violations` are the newest of the `open_violations`; when none is open, as after an import,
    the newest one that was recorded, if any was.
    """

    latch: LatchView
    violations: tuple[ViolationLine, ...]
    open_violations: int


@dataclass(frozen=True, slots=True)
class RollbackPage:
    """What rolling an environment back would do now, and the last time it happened.

    `etag` is the environment's, which an acknowledgement sends back as `If-Match`.
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
    def begins_anew(self) -> bool:
        """Whether a rollout would get a new wave, and lose the days of the one that it has."""
        return any(consequence.begins_anew for consequence in self.consequences)
