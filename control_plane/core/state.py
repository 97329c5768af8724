"""State: what an environment keeps beside its rollouts, as frozen values."""

import json
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from hashlib import sha256

from guardwave.reducer.vocabulary import Cohort, Gate, Invariant, Metric, Mode


class ActorKind(StrEnum):
    """What kind of actor stands behind a change."""

    PERSON = "person"
    SYSTEM = "system"
    BOOTSTRAP = "demo bootstrap"


@dataclass(frozen=True, slots=True)
class Actor:
    """The author of a change: a credential's id and name, never a user's personal data."""

    id: str
    kind: ActorKind
    request_id: str | None = None


SYSTEM = Actor("guardwave", ActorKind.SYSTEM)


@dataclass(frozen=True, slots=True)
class Latch:
    """A hold of an environment in shadow, from an automatic rollback until a person acknowledges.

    The open violations are those from `first_violation` to `newest_violation`.
    """

    rollback: int
    reason: str
    at: datetime
    first_violation: int
    newest_violation: int

    @property
    def open_violations(self) -> int:
        """The number of recorded violations that nobody has acknowledged."""
        return self.newest_violation - self.first_violation + 1


@dataclass(frozen=True, slots=True)
class Environment:
    """One environment: its keys, its latch, and the end of its audit chain.

    `pseudonym_key` and `tag_key` are hexadecimal and never leave the control plane. `revision`
    moves with every write, `head` is the hash of the last audit entry ("" before the first).
    """

    name: str
    pseudonym_key: str = field(repr=False)
    tag_key: str = field(repr=False)
    requires: tuple[str, ...] = ()
    guards: tuple[str, ...] = ()
    latch: Latch | None = None
    sequence: int = 0
    head: str = ""
    revision: int = 0
    violations: int = 0
    rollbacks: int = 0


class Action(StrEnum):
    """What an audit entry says happened."""

    ENVIRONMENT_CREATED = "environment created"
    ROLLOUT_CREATED = "rollout created"
    MODE_LOWERED = "mode lowered"
    RESUMED = "rollout resumed"
    PROMOTED = "promoted"
    WAVE_STARTED = "wave started"
    ROLLED_BACK = "rolled back"
    LATCHED = "latched"
    VIOLATION_RECORDED = "violation recorded"
    ACKNOWLEDGED = "latch acknowledged"
    HARM_ALARM = "lowered by a harm alarm"
    OWNER_FACTS_STATED = "owner facts stated"
    HISTORY_IMPORTED = "history imported"
    TOKEN_CREATED = "token created"
    TOKEN_REVOKED = "token revoked"


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One link of an environment's audit chain; `hash` covers all other fields."""

    sequence: int
    at: datetime
    actor: Actor
    action: Action
    target: str
    reason: str
    generation_before: int | None = None
    generation_after: int | None = None
    gate_evaluation: int | None = None
    request_id: str | None = None
    previous: str = ""

    @property
    def hash(self) -> str:
        """SHA-256, hexadecimal, of the entry's canonical JSON, which names the previous hash."""
        return sha256(self.canonical().encode()).hexdigest()

    def canonical(self) -> str:
        """Return the entry as it is hashed and stored: JSON with sorted keys and no white space."""
        fields = {
            "sequence": self.sequence,
            "at": self.at.isoformat().replace("+00:00", "Z"),
            "actor": self.actor.id,
            "actor_kind": str(self.actor.kind),
            "action": str(self.action),
            "target": self.target,
            "reason": self.reason,
            "generation_before": self.generation_before,
            "generation_after": self.generation_after,
            "gate_evaluation": self.gate_evaluation,
            "request_id": self.request_id,
            "previous": self.previous,
        }
        return json.dumps(fields, sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Lowering:
    """One rollout that a rollback lowered: its mode before and after, and its generation after."""

    guard: str
    before: Mode
    after: Mode
    generation: int


@dataclass(frozen=True, slots=True)
class Rollback:
    """One rollback of `guards`, with the rollouts that it lowered.

    `is_verified` says that the store, read again after the commit, shows no mode above shadow; a
    stored rollback has False. `id` 0 is the answer of a rollback that had nothing to do and no
    rollback before it; it is never stored.
    """

    id: int
    at: datetime
    actor: Actor
    reason: str
    changed: bool
    lowerings: tuple[Lowering, ...]
    violation: int | None = None
    guards: tuple[str, ...] = ()
    is_verified: bool = False


@dataclass(frozen=True, slots=True)
class Violation:
    """One violated invariant, by the identity of the record that showed it.

    Without `latches` it counts in gates and holds no environment in shadow: its host numbers no
    transitions, so that lost records may explain it.
    """

    id: int
    identity: str
    invariant: Invariant
    guard: str
    mode: Mode
    generation: int
    at: datetime
    latches: bool = True


class PromotionStatus(StrEnum):
    """Where a promotion stands. No timer turns pending into done: the worker decides once."""

    PENDING = "pending"
    DONE = "done"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Promotion:
    """One step up, requested by a person and carried out, or refused, by the worker."""

    id: int
    guard: str
    gate_evaluation: int
    digest: str
    to: Mode
    share_bps: int | None
    reason: str
    actor: Actor
    requested_at: datetime
    status: PromotionStatus = PromotionStatus.PENDING
    refusal: str | None = None
    wave: int | None = None
    decided_at: datetime | None = None


class EvaluationStatus(StrEnum):
    """Where a gate evaluation stands; done is for ever."""

    PENDING = "pending"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class CohortSums:
    """The sums of one cohort that the metrics and checks of an evaluation rest on.

    The counts up to `switched` are of prompts. `timed` counts the prompts with a duration;
    `log2_durations` sums the base-2 logarithms of these durations, in the unit of their source.
    """

    cohort: Cohort
    started: int = 0
    cancelled: int = 0
    completed: int = 0
    disrupted: int = 0
    ended: int = 0
    lost: int = 0
    covered: int = 0
    switched: int = 0
    tokens: int = 0
    turns: int = 0
    timed: int = 0
    log2_durations: float = 0.0


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One numbered gate evaluation. `result` is the report's JSON text, `digest` covers it.

    `generation` is the rollout's when the evaluation was made, `violations` the number that the
    environment had by then. `day_revisions` (of `days_used`, in their order) and `cohort_sums` show
    a later revision of its days.
    """

    id: int
    guard: str
    gate: Gate
    requested_at: datetime
    actor: Actor
    status: EvaluationStatus = EvaluationStatus.PENDING
    evaluated_at: datetime | None = None
    generation: int | None = None
    wave: int | None = None
    verdict: str | None = None
    sentence: str | None = None
    digest: str | None = None
    result: str | None = None
    violations: int = 0
    days_used: tuple[date, ...] = ()
    day_revisions: tuple[int, ...] = ()
    cohort_sums: tuple[CohortSums, ...] = ()


@dataclass(frozen=True, slots=True)
class MetricLook:
    """One metric at a look for harm, in native units; None is unknown.

    `bound` is the least harm that is compatible with the evidence. With `is_untold` the look has no
    result: too many prompts left out the values that the metric counts.
    """

    metric: Metric
    is_raised: bool
    estimate: float | None
    bound: float | None
    margin: float
    sentence: str
    is_untold: bool = False


@dataclass(frozen=True, slots=True)
class HarmLook:
    """One scheduled look for harm in a wave, on its first `days` complete days.

    `number` counts the looks of the wave from 1. `lowered` says that its alarm lowered enforce.
    """

    guard: str
    wave: int
    number: int
    days: int
    through: date
    at: datetime
    metrics: tuple[MetricLook, ...]
    lowered: bool = False

    @property
    def raised(self) -> tuple[MetricLook, ...]:
        """The metrics whose alarm is raised."""
        return tuple(metric for metric in self.metrics if metric.is_raised)


class PlanStatus(StrEnum):
    """Where a plan stands; done and failed are for ever."""

    PENDING = "pending"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Plan:
    """A computed forecast, for each share and length, of what the next wave could prove.

    Each is simulated by `placebo_waves` on the environment's own evidence. `looks` is how many the
    wave will declare; they share alpha equally. `result` is JSON text. A plan decides nothing.
    """

    id: int
    guard: str
    gate: Gate
    shares_bps: tuple[int, ...]
    days: tuple[int, ...]
    placebo_waves: int
    requested_at: datetime
    actor: Actor
    status: PlanStatus = PlanStatus.PENDING
    planned_at: datetime | None = None
    sentence: str | None = None
    result: str | None = None
    looks: int = 1
