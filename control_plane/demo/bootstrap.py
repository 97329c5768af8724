"""Builds the demo's past: environments, owners, a shadow and a warn wave, gates and promotions.

Every step is the command a person would give, at the time the story gives it; only the evidence is
imported, as `demo bootstrap`, and only into a store that bears the demo's mark.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from random import Random

from control_plane.access import Identity, create_token, sign_in
from control_plane.clock import fixed
from control_plane.commands.changes import Change, Note, change
from control_plane.commands.environments import create_environment, create_rollout
from control_plane.commands.evaluations import request_evaluation
from control_plane.commands.owners import MAX_OWNERS_AT_ONCE, state_owner_facts
from control_plane.commands.promotions import PromotionRequest, carry_out, request_promotion
from control_plane.context import Context
from control_plane.demo.history import HistoryImport
from control_plane.demo.story import GUARD, SEED, VERSION, Fleet
from control_plane.errors import StartError
from control_plane.jobs.evaluating import evaluate_gate
from control_plane.jobs.leases import lease_kept
from control_plane.state import Action, Actor, ActorKind, Environment, PromotionStatus
from control_plane.stores.owners import StatedFacts
from reducer.rollout.eligibility import Ownership
from reducer.vocabulary import Gate, Mode, Role, Verdict

INTERNAL = "internal"
PUBLIC = "public-cloud"
# History needs fewer prompts than the live wave: its comparisons have far more owners.
_HISTORY_PROMPTS_A_DAY = 2.0

_ACTOR = Actor("demo bootstrap", ActorKind.BOOTSTRAP)
_HOLDER = "demo bootstrap"
_WHY = "the demo begins with this history"
# The live week begins some real seconds after the clock starts: the fleet needs them to come up.
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
    """Return random bytes that are the same in each demo, so that each tells the same story.

    A demo's keys can be guessed by whoever reads this; `guardwave serve` refuses its store.
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


def build(context: Context, live_at: datetime, *, say: Callable[[str], None]) -> DemoTokens:
    """Build the past that ends at `live_at`, a midnight UTC, and return the tokens.

    Raises:
        StartError: the story's own gates did not come out as it needs.
    """
    tokens = _tokens(context)
    internal, public = fleets(live_at.date())
    begins = live_at - timedelta(days=_SHADOW_DAYS)
    history = _open(context, internal, begins - timedelta(minutes=5), tokens)
    _internal(context, live_at, history, say=say)
    begins = live_at - timedelta(days=_PUBLIC_DAYS)
    history = _open(context, public, begins - timedelta(minutes=5), tokens)
    say("importing a week of shadow for public-cloud")
    _import(history, begins, days=_PUBLIC_DAYS - 1)
    return tokens


def _tokens(context: Context) -> DemoTokens:
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


def _internal(
    context: Context, live_at: datetime, history: HistoryImport, *, say: Callable[[str], None]
) -> None:
    begins = live_at - timedelta(days=_SHADOW_DAYS)
    warned_at = live_at - timedelta(days=_WARN_DAYS) + timedelta(hours=4)
    say("importing a week of shadow for internal")
    _import(history, begins, days=_SHADOW_DAYS - _WARN_DAYS)
    say("evaluating the shadow gate, promoting internal to warn")
    _promote(context, Gate.SHADOW, Mode.WARN, at=warned_at)
    history.import_day(warned_at.date(), opened_at=warned_at)
    say("importing a week of warn for internal")
    _import(history, live_at - timedelta(days=_WARN_DAYS - 1), days=_WARN_DAYS - 2)
    say("evaluating the warn gate, promoting 5 % of internal to enforce")
    _promote(context, Gate.WARN, Mode.ENFORCE, at=live_at - BEFORE_LIVE - timedelta(minutes=1))


def _open(context: Context, fleet: Fleet, at: datetime, tokens: DemoTokens) -> HistoryImport:
    """Create environment and rollout, state the owners' facts, and note the import in the audit."""
    then = replace(context, clock=fixed(at))
    name = fleet.environment
    create_environment(then, name, requires=None, actor=_ACTOR, reason=_WHY)
    create_rollout(then, name, GUARD, version_pin=(VERSION,), actor=_ACTOR, reason=_WHY)
    owners = [owner.name for owner in fleet.owners()]
    for start in range(0, len(owners), MAX_OWNERS_AT_ONCE):
        part = owners[start : start + MAX_OWNERS_AT_ONCE]
        facts = {owner: StatedFacts(Ownership.KNOWN, is_trusted=True) for owner in part}
        state_owner_facts(then, name, facts, actor=_ACTOR, reason=_WHY)

    def note_import(before: Environment) -> Change[None]:
        note = Note(_ACTOR, Action.HISTORY_IMPORTED, name, _WHY)
        return Change(before, (), note, None)

    change(then, name, note_import)
    return HistoryImport(
        then,
        replace(fleet, prompts_a_day=_HISTORY_PROMPTS_A_DAY),
        producer=_producer(context, tokens.ingest[name]),
        is_demo_store=context.clock.speed != 1.0,
    )


def _producer(context: Context, token: str) -> Identity:
    found = sign_in(context, token)
    assert found is not None  # it was created just now
    return found


def _import(history: HistoryImport, begins: datetime, *, days: int) -> None:
    for at in range(days):
        history.import_day((begins + timedelta(days=at)).date())


def _promote(context: Context, gate: Gate, to: Mode, *, at: datetime) -> None:
    """Evaluate the gate and take the step it allows, as the worker and a person would."""
    then = replace(context, clock=fixed(at))
    name = INTERNAL
    asked = request_evaluation(then, name, GUARD, gate=gate, actor=_ACTOR)
    fence = then.jobs.lease(name, _HOLDER)
    with lease_kept(then.jobs, name, _HOLDER):
        done = evaluate_gate(then, name, GUARD, asked.id, fence=fence)
    if done is None or done.verdict != Verdict.WITHIN or done.digest is None:
        sentence = "it was not evaluated" if done is None else done.sentence
        raise StartError(f"the story's {gate} gate is not within: {sentence}")
    request = PromotionRequest(done.id, done.digest, to)
    promotion = request_promotion(
        then, name, GUARD, request=request, actor=_ACTOR, reason=f"{done.sentence} {_WHY}"
    )
    carried = carry_out(then, name, GUARD, promotion.id)
    if carried.status is not PromotionStatus.DONE:
        raise StartError(f"the story's promotion to {to} was refused: {carried.refusal}")
    then.jobs.release(name)
