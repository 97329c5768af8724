"""Context: the stores, the clock and the policies that commands, queries and jobs work with."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass

import redis
from redis import Redis

from guardwave.control_plane.core.clock import Clock
from guardwave.control_plane.core.policy import Policies, load
from guardwave.control_plane.core.settings import Settings
from guardwave.control_plane.stores.credentials import CredentialStore
from guardwave.control_plane.stores.demo import DemoMark, DemoStore
from guardwave.control_plane.stores.environments import EnvironmentStore
from guardwave.control_plane.stores.evidence.imports import EvidenceImports
from guardwave.control_plane.stores.evidence.intake_health import IntakeHealthStore
from guardwave.control_plane.stores.evidence.pages import EvidencePages
from guardwave.control_plane.stores.evidence.retention import RetentionStore
from guardwave.control_plane.stores.evidence.store import EvidenceStore
from guardwave.control_plane.stores.evidence.suspects import SuspectStore
from guardwave.control_plane.stores.gates import GateStore
from guardwave.control_plane.stores.idempotency import IdempotencyStore
from guardwave.control_plane.stores.incidents import IncidentStore
from guardwave.control_plane.stores.jobs import JobStore
from guardwave.control_plane.stores.owners import OwnerStore
from guardwave.control_plane.stores.plans import PlanStore
from guardwave.control_plane.stores.server import check_version, connect, load_functions


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


def make_context(
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


def open_store(settings: Settings) -> redis.Redis:
    """Return a client of the store after checking its version and loading the functions.

    Raises:
        StoreStartError: the server is too old, or refuses the functions.
        StoreUnavailable: it cannot be reached.
    """
    client = connect(settings)
    check_version(client)
    load_functions(client)
    return client


def open_context(settings: Settings, client: redis.Redis) -> Context:
    """Return the context over an open store, with the demo clock if it holds a demo."""
    mark = DemoStore(client).mark()
    return make_context(client, clock=clock_of(mark), policies=load(settings.policy_path))


def clock_of(mark: DemoMark | None) -> Clock:
    """Return wall time, or the demo clock that the mark describes."""
    if mark is None:
        return Clock()
    return Clock(
        wall_origin_ns=mark.wall_origin_ns,
        moment_origin_ns=mark.moment_origin_ns,
        speed=mark.speed,
    )
