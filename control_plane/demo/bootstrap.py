"""Demo bootstrap: the past of a demo, with environments, owners, waves, gates and promotions.

Each step is the command that a person would give, at the time of the story. Only the evidence is
imported, by the actor `demo bootstrap`, and only into a store with the demo's mark.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from random import Random

from guardwave.control_plane.commands.environments import create_environment, create_rollout
from guardwave.control_plane.commands.evaluations import request_evaluation
from guardwave.control_plane.commands.owners import MAX_OWNERS_AT_ONCE, state_owner_facts
from guardwave.control_plane.commands.promotions import carry_out, request_promotion
from guardwave.control_plane.core.clock import fixed_clock
from guardwave.control_plane.core.errors import StartError
from guardwave.control_plane.core.state import (
    Action,
    Actor,
    ActorKind,
    Environment,
    PromotionStatus,
)
from guardwave.control_plane.demo.history import HistoryImport
from guardwave.control_plane.demo.story import GUARD, SEED, VERSION, Fleet
from guardwave.control_plane.jobs.evaluate import evaluate_gate
from guardwave.control_plane.jobs.worker import keep_lease
from guardwave.control_plane.rollouts.access import Identity, create_token, sign_in
from guardwave.control_plane.rollouts.changes import Change, Note, change
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.rollouts.promotion_rules import PromotionRequest
from guardwave.control_plane.stores.owners import StatedFacts
from guardwave.reducer.rollout.eligibility import Ownership
from guardwave.reducer.vocabulary import Gate, Mode, Role, Verdict

INTERNAL = "internal"
PUBLIC = "public-cloud"
# History needs fewer prompts than the live wave: it compares far more owners.
_HISTORY_PROMPTS_A_DAY = 2.0

_ACTOR = Actor("demo bootstrap", ActorKind.BOOTSTRAP)
_HOLDER = "demo bootstrap"
_REASON = "the demo begins with this history"
# Demo time between the start of the clock and the live week, in which the fleet starts.
BEFORE_LIVE = timedelta(hours=18)
_SHADOW_DAYS = 16
_WARN_DAYS = 9
_PUBLIC_DAYS = 8


@dataclass(frozen=True, slots=True)
class DemoTokens:
    """The credentials of the demo's own processes, by environment."""

    ingest: dict[str, str]
    runtime: dict[str, str]
    operator: str


def seeded_randomness() -> Callable[[int], bytes]:
    """Return a source of random bytes that are the same in every demo, as its story is.

    Whoever reads this can guess a demo's keys, so `guardwave serve` does not serve its store.
    """
    return Random(SEED).randbytes


def live_midnight(today: datetime) -> datetime:
    """Return when the demo's live week begins: eight days before today's midnight UTC."""
    midnight = today.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight - timedelta(days=_PUBLIC_DAYS)


def fleets(live_day: date) -> tuple[Fleet, Fleet]:
    """Return the fleets of internal and public-cloud for a demo that goes live on this day."""
    return (
        Fleet(INTERNAL, size=1200, prompts_a_day=5.0, live_day=live_day),
        Fleet(PUBLIC, size=400, prompts_a_day=2.0, live_day=live_day),
    )


def build(context: Context, live_at: datetime, *, report: Callable[[str], None]) -> DemoTokens:
    """Build the past that ends at `live_at`, a midnight UTC, and return the tokens.

    Raises:
        StartError: a gate of the story is not within, or a promotion is refused.
    """
    tokens = _create_tokens(context)
    internal, public = fleets(live_at.date())
    begins = live_at - timedelta(days=_SHADOW_DAYS)
    history = _open(context, internal, begins - timedelta(minutes=5), tokens)
    _build_internal(context, live_at, history, report=report)
    begins = live_at - timedelta(days=_PUBLIC_DAYS)
    history = _open(context, public, begins - timedelta(minutes=5), tokens)
    report("importing a week of shadow for public-cloud")
    _import(history, begins, days=_PUBLIC_DAYS - 1)
    return tokens


def _create_tokens(context: Context) -> DemoTokens:
    names = (INTERNAL, PUBLIC)
    return DemoTokens(
        ingest={
            name: create_token(
                context,
                role=Role.INGEST,
                environment=name,
                is_trusted=True,
                name=f"{name} fleet telemetry",
            )
            for name in names
        },
        runtime={
            name: create_token(context, role=Role.RUNTIME, environment=name, name=f"{name} fleet")
            for name in names
        },
        operator=create_token(context, role=Role.ADMIN, environment=None, name="demo operator"),
    )


def _build_internal(
    context: Context, live_at: datetime, history: HistoryImport, *, report: Callable[[str], None]
) -> None:
    begins = live_at - timedelta(days=_SHADOW_DAYS)
    warned_at = live_at - timedelta(days=_WARN_DAYS) + timedelta(hours=4)
    report("importing a week of shadow for internal")
    _import(history, begins, days=_SHADOW_DAYS - _WARN_DAYS)
    report("evaluating the shadow gate, promoting internal to warn")
    _promote(context, Gate.SHADOW, Mode.WARN, at=warned_at)
    history.import_day(warned_at.date(), opened_at=warned_at)
    report("importing a week of warn for internal")
    _import(history, live_at - timedelta(days=_WARN_DAYS - 1), days=_WARN_DAYS - 2)
    report("evaluating the warn gate, promoting 5 % of internal to enforce")
    _promote(context, Gate.WARN, Mode.ENFORCE, at=live_at - BEFORE_LIVE - timedelta(minutes=1))


def _open(context: Context, fleet: Fleet, at: datetime, tokens: DemoTokens) -> HistoryImport:
    """Create environment and rollout, state the owners' facts, and audit the import."""
    past = replace(context, clock=fixed_clock(at))
    name = fleet.environment
    create_environment(past, name, requires=None, actor=_ACTOR, reason=_REASON)
    create_rollout(past, name, GUARD, version_pin=(VERSION,), actor=_ACTOR, reason=_REASON)
    owners = [owner.name for owner in fleet.owners()]
    for start in range(0, len(owners), MAX_OWNERS_AT_ONCE):
        chunk = owners[start : start + MAX_OWNERS_AT_ONCE]
        facts = {owner: StatedFacts(Ownership.KNOWN, is_trusted=True) for owner in chunk}
        state_owner_facts(past, name, facts, actor=_ACTOR, reason=_REASON)

    def note_import(before: Environment) -> Change[None]:
        note = Note(_ACTOR, Action.HISTORY_IMPORTED, name, _REASON)
        return Change(before, (), note, None)

    change(past, name, note_import)
    return HistoryImport(
        past,
        replace(fleet, prompts_a_day=_HISTORY_PROMPTS_A_DAY),
        producer=_producer(context, tokens.ingest[name]),
        is_demo_store=context.clock.speed != 1.0,
    )


def _producer(context: Context, token: str) -> Identity:
    producer = sign_in(context, token)
    assert producer is not None  # `_create_tokens` made it
    return producer


def _import(history: HistoryImport, begins: datetime, *, days: int) -> None:
    for number in range(days):
        history.import_day((begins + timedelta(days=number)).date())


def _promote(context: Context, gate: Gate, to: Mode, *, at: datetime) -> None:
    """Evaluate the gate and take the step that it allows, as the worker and a person would."""
    past = replace(context, clock=fixed_clock(at))
    name = INTERNAL
    evaluation = request_evaluation(past, name, GUARD, gate=gate, actor=_ACTOR)
    fence = past.jobs.lease(name, _HOLDER)
    with keep_lease(past.jobs, name, _HOLDER):
        done = evaluate_gate(past, name, GUARD, evaluation.id, fence=fence)
    if done is None or done.verdict != Verdict.WITHIN or done.digest is None:
        sentence = "it was not evaluated" if done is None else done.sentence
        raise StartError(f"the story's {gate} gate is not within: {sentence}")
    request = PromotionRequest(done.id, done.digest, to)
    promotion = request_promotion(
        past, name, GUARD, request=request, actor=_ACTOR, reason=f"{done.sentence} {_REASON}"
    )
    carried = carry_out(past, name, GUARD, promotion.id)
    if carried.status is not PromotionStatus.DONE:
        raise StartError(f"the story's promotion to {to} was refused: {carried.refusal}")
    past.jobs.release(name)
