"""What commands, queries and jobs work with: the stores, the clock and the policy, made once."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass

from redis import Redis

from control_plane.clock import Clock
from control_plane.policy import Policies
from control_plane.stores.credentials import CredentialStore
from control_plane.stores.environments import EnvironmentStore
from control_plane.stores.evidence import EvidenceStore
from control_plane.stores.evidence_import import EvidenceImports
from control_plane.stores.evidence_pages import EvidencePages
from control_plane.stores.gates import GateStore
from control_plane.stores.idempotency import IdempotencyStore
from control_plane.stores.incidents import IncidentStore
from control_plane.stores.intake_health import IntakeHealthStore
from control_plane.stores.jobs import JobStore
from control_plane.stores.owners import OwnerStore
from control_plane.stores.plans import PlanStore
from control_plane.stores.retention import RetentionStore
from control_plane.stores.suspects import SuspectStore


@dataclass(frozen=True, slots=True)
class Context:
    """One process's view of the control plane. `randomness` returns that many random bytes."""

    environments: EnvironmentStore
    evidence: EvidenceStore
    owners: OwnerStore
    gates: GateStore
    incidents: IncidentStore
    credentials: CredentialStore
    jobs: JobStore
    idempotency: IdempotencyStore
    plans: PlanStore
    suspects: SuspectStore
    intake: IntakeHealthStore
    retention: RetentionStore
    pages: EvidencePages
    imports: EvidenceImports
    clock: Clock
    policies: Policies
    randomness: Callable[[int], bytes] = secrets.token_bytes


def over(
    redis: Redis,
    *,
    clock: Clock,
    policies: Policies,
    randomness: Callable[[int], bytes] = secrets.token_bytes,
) -> Context:
    """Return a context whose stores share one connection pool."""
    return Context(
        environments=EnvironmentStore(redis),
        evidence=EvidenceStore(redis),
        owners=OwnerStore(redis),
        gates=GateStore(redis),
        incidents=IncidentStore(redis),
        credentials=CredentialStore(redis),
        jobs=JobStore(redis),
        idempotency=IdempotencyStore(redis),
        plans=PlanStore(redis),
        suspects=SuspectStore(redis),
        intake=IntakeHealthStore(redis),
        retention=RetentionStore(redis),
        pages=EvidencePages(redis),
        imports=EvidenceImports(redis),
        clock=clock,
        policies=policies,
        randomness=randomness,
    )
