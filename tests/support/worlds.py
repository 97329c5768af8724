"""Worlds: an environment with a rollout in a given phase, written as commits write it."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from redis import Redis

from guardwave.control_plane.commands.environments import create_environment, create_rollout
from guardwave.control_plane.commands.owners import state_owner_facts
from guardwave.control_plane.core import policy
from guardwave.control_plane.core.clock import Clock, fixed_clock
from guardwave.control_plane.core.state import Action, Actor, ActorKind, Environment
from guardwave.control_plane.rollouts.access import create_token
from guardwave.control_plane.rollouts.changes import Change, Note, change, put_rollout, put_wave
from guardwave.control_plane.rollouts.context import Context, make_context
from guardwave.control_plane.stores.owners import StatedFacts
from guardwave.reducer.rollout.draw import BPS, Roster, draw, salt_text
from guardwave.reducer.rollout.eligibility import Ownership
from guardwave.reducer.rollout.pseudonym import pseudonym_of
from guardwave.reducer.rollout.state import Rollout, Wave
from guardwave.reducer.vocabulary import Mode, Role

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
ENVIRONMENT = "internal"
GUARD = "repeated_tool_failure"
VERSION = "1.4.0"
OPERATOR = Actor("operator (test)", ActorKind.PERSON)
WHY = "because a test needs it"
KNOWN = StatedFacts(Ownership.KNOWN, is_trusted=True)
SHARES = {Mode.SHADOW: BPS, Mode.WARN: 8000, Mode.ENFORCE: 500}


def context_over(store: Redis, *, clock: Clock | None = None) -> Context:
    """Return a context over a store, by default with a clock that stands still at NOW."""
    context = make_context(store, clock=clock or fixed_clock(NOW), policies=policy.load(None))
    context.environments.store_id()
    return context


@dataclass(frozen=True)
class World:
    """An environment with one rollout and its owners, in draw order."""

    context: Context
    rollout: Rollout
    roster: tuple[str, ...]

    def token(self, role: Role = Role.RUNTIME, *, environment: str | None = ENVIRONMENT) -> str:
        """Make a token and return its text."""
        place = None if role is Role.ADMIN else environment
        return create_token(self.context, role=role, environment=place)

    def store_rollout(self, after: Rollout, *, wave: Wave | None = None) -> None:
        """Commit a rollout, and perhaps a wave without a roster."""
        writes = put_wave(ENVIRONMENT, GUARD, wave) if wave is not None else ()
        note = Note(OPERATOR, Action.PROMOTED, GUARD, WHY)
        change(
            self.context,
            ENVIRONMENT,
            lambda before: Change(before, (put_rollout(after), *writes), note, None),
        )


def environment_of(context: Context, name: str = ENVIRONMENT) -> Environment:
    """Return an environment that exists."""
    found = context.environments.load(name)
    assert found is not None
    return found


def world_in(context: Context, phase: Mode, *, owners: int = 40) -> World:
    """Create the environment, its rollout in a phase, and known owners `owner-0`, `owner-1`, ..."""
    create_environment(context, ENVIRONMENT, requires=None, actor=OPERATOR, reason=WHY)
    rollout, _ = create_rollout(
        context, ENVIRONMENT, GUARD, version_pin=(VERSION,), actor=OPERATOR, reason=WHY
    )
    names = [f"owner-{number}" for number in range(owners)]
    state_owner_facts(context, ENVIRONMENT, dict.fromkeys(names, KNOWN), actor=OPERATOR, reason=WHY)
    if phase.rank <= Mode.SHADOW.rank:
        return World(context, rollout, ())
    environment = environment_of(context)
    owner_of = {
        pseudonym_of(bytes.fromhex(environment.pseudonym_key), name): name for name in names
    }
    roster = draw(
        ENVIRONMENT,
        GUARD,
        salt_text(rollout.salt, rollout.salt_epoch),
        owner_of,
        share_bps=SHARES[phase],
    )
    after = _open(context, rollout, phase, roster)
    return World(context, after, tuple(owner_of[pseudonym] for pseudonym in roster.pseudonyms))


def _open(context: Context, rollout: Rollout, phase: Mode, roster: Roster) -> Rollout:
    wave = Wave(
        number=2,
        phase=phase,
        version_pin=rollout.version_pin,
        looks=(7,),
        opened_at=NOW,
        treated_bps=SHARES[phase],
        roster_size=len(roster.pseudonyms),
        treated=roster.treated,
        roster_digest=roster.digest,
    )
    after = replace(
        rollout,
        phase=phase,
        generation=rollout.generation + 1,
        wave=2,
        last_wave=2,
        membership_wave=2,
        treated_bps=SHARES[phase],
    )
    note = Note(OPERATOR, Action.PROMOTED, GUARD, WHY)
    writes = (put_rollout(after), *put_wave(ENVIRONMENT, GUARD, wave, roster))
    change(context, ENVIRONMENT, lambda before: Change(before, writes, note, None))
    return after
