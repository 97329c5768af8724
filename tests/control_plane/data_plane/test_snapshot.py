"""Refresher and snapshot: they follow the store, never go back, and report when they cannot."""

from dataclasses import replace
from datetime import timedelta

import pytest

from guardwave.control_plane.commands.cohorts import CohortChange, set_cohort_mode
from guardwave.control_plane.commands.environments import create_environment
from guardwave.control_plane.commands.owners import state_owner_facts
from guardwave.control_plane.commands.rollback import roll_back
from guardwave.control_plane.core.errors import StoreUnavailable
from guardwave.control_plane.core.settings import Settings
from guardwave.control_plane.data_plane.credential_cache import CredentialCache
from guardwave.control_plane.data_plane.refresher import Refresher
from guardwave.control_plane.rollouts.access import create_token, revoke_token
from guardwave.control_plane.stores.jobs import IntakeDoor
from guardwave.control_plane.stores.keys import EnvironmentKeys, EvidenceKeys
from guardwave.control_plane.stores.owners import StatedFacts
from guardwave.control_plane.stores.server.clients import connect
from guardwave.reducer.rollout.eligibility import Ownership
from guardwave.reducer.vocabulary import Mode, Role
from tests.support.hosts import Calendar
from tests.support.worlds import (
    ENVIRONMENT,
    GUARD,
    KNOWN,
    NOW,
    OPERATOR,
    WHY,
    context_over,
    world_in,
)

KEYS = EnvironmentKeys(ENVIRONMENT)


class Seconds:
    """A monotonic clock that a test moves."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def seconds():
    return Seconds()


@pytest.fixture
def context(store):
    return context_over(store)


@pytest.fixture
def refresher(context, seconds):
    return Refresher(context, CredentialCache(context), monotonic=seconds)


def shown(refresher):
    """Return what the refresher holds of the one rollout, after another round."""
    refresher.refresh()
    return refresher.snapshot.environments[ENVIRONMENT].rollouts[GUARD]


def test_nothing_can_be_answered_before_the_store_was_read(refresher, seconds):
    assert refresher.snapshot.trouble(seconds()) == "this worker has not read its store yet"


def test_a_roster_is_held_as_ranks_from_one(context, refresher):
    world = world_in(context, Mode.ENFORCE)
    held = shown(refresher)
    assert sorted(held.ranks.values()) == list(range(1, 41))
    assert held.rollout == world.rollout
    assert (held.wave.roster_size, held.wave.treated) == (40, 2)


def test_a_round_in_which_nothing_moved_reads_nothing(context, refresher):
    world_in(context, Mode.ENFORCE)
    refresher.refresh()
    before = refresher.snapshot.environments[ENVIRONMENT]
    refresher.refresh()
    assert refresher.snapshot.environments[ENVIRONMENT] is before


def test_a_lowered_mode_is_seen_on_the_next_round_and_the_roster_is_kept(context, refresher):
    world_in(context, Mode.ENFORCE)
    before = shown(refresher)
    set_cohort_mode(
        context,
        ENVIRONMENT,
        GUARD,
        "enforced",
        change=CohortChange(mode=Mode.WARN),
        actor=OPERATOR,
        reason=WHY,
    )
    after = shown(refresher)
    assert after.rollout.phase is Mode.WARN
    assert after.ranks is before.ranks


def test_a_rollback_is_seen_on_the_next_round(context, refresher):
    world_in(context, Mode.ENFORCE)
    shown(refresher)
    roll_back(context, ENVIRONMENT, actor=OPERATOR, reason=WHY)
    assert shown(refresher).rollout.phase is Mode.SHADOW


def test_facts_of_owners_are_followed_one_by_one_and_shared_when_equal(context, refresher):
    world_in(context, Mode.SHADOW, owners=20)
    refresher.refresh()
    owners = refresher.snapshot.environments[ENVIRONMENT].owners
    assert len({id(owners.facts_of(name)) for name in owners_of(context)}) == 1
    unknown = StatedFacts(Ownership.UNKNOWN, is_trusted=False)
    state_owner_facts(context, ENVIRONMENT, {"late": unknown}, actor=OPERATOR, reason=WHY)
    refresher.refresh()
    held = refresher.snapshot.environments[ENVIRONMENT].owners
    assert len(held) == 21
    assert held is owners


def owners_of(context):
    return context.owners.all_facts(ENVIRONMENT)


def test_a_change_of_owners_alone_is_followed_without_a_new_revision(context, refresher):
    world_in(context, Mode.SHADOW, owners=1)
    refresher.refresh()
    before = refresher.snapshot.environments[ENVIRONMENT]
    context.owners.state_facts(ENVIRONMENT, {"A" * 16: KNOWN})
    refresher.refresh()
    assert refresher.snapshot.environments[ENVIRONMENT] is before
    assert before.owners.facts_of("A" * 16).is_trusted


def test_a_new_trusted_producer_is_seen_without_a_change_of_the_environment(context, refresher):
    world_in(context, Mode.SHADOW)
    refresher.refresh()
    create_token(context, role=Role.INGEST, environment=ENVIRONMENT, is_trusted=True)
    refresher.refresh()
    assert len(refresher.snapshot.environments[ENVIRONMENT].trusted_producers) == 1


def test_an_environment_that_comes_later_is_found(context, refresher):
    refresher.refresh()
    create_environment(context, "late", requires=None, actor=OPERATOR, reason=WHY)
    refresher.refresh()
    assert "late" in refresher.snapshot.environments


def test_after_two_seconds_without_the_store_the_snapshot_is_stale(context, refresher, seconds):
    world_in(context, Mode.ENFORCE)
    refresher.refresh()
    seconds.now += 2.0
    assert refresher.snapshot.trouble(seconds()) is None
    seconds.now += 0.1
    assert "has not heard from its store" in refresher.snapshot.trouble(seconds())
    refresher.refresh()
    assert refresher.snapshot.trouble(seconds()) is None


def test_a_store_that_is_away_leaves_the_snapshot_as_it_was(seconds):
    with connect(Settings(redis_url="redis://127.0.0.1:1/0")) as client:
        context = context_over_nothing(client)
        refresher = Refresher(context, CredentialCache(context), monotonic=seconds)
        with pytest.raises(StoreUnavailable):
            refresher.refresh()
    assert refresher.snapshot.read_at is None


def context_over_nothing(client):
    from guardwave.control_plane.core import policy
    from guardwave.control_plane.core.clock import Clock
    from guardwave.control_plane.rollouts.context import make_context

    return make_context(client, clock=Clock(), policies=policy.load(None))


def test_a_store_that_nobody_served_from_is_no_empty_control_plane(store, refresher, seconds):
    store.flushall()
    refresher.refresh()
    assert "holds nothing yet" in refresher.snapshot.trouble(seconds())


def test_a_store_that_is_prepared_late_is_good_from_then_on(store, context, refresher, seconds):
    store.flushall()
    refresher.refresh()
    context.environments.store_id()
    refresher.refresh()
    assert refresher.snapshot.trouble(seconds()) is None


def emptied(store):
    store.flushall()


def exchanged(store):
    store.set("{guardwave}:store", "another")


def tokens_went_back(store):
    store.set("{guardwave}:tokens:revision", "0")


@pytest.mark.parametrize("spoil", [emptied, exchanged, tokens_went_back])
def test_a_store_that_went_back_is_a_fault_and_what_was_held_stays(
    store, context, refresher, seconds, spoil, caplog
):
    world = world_in(context, Mode.ENFORCE)
    world.token()
    before = shown(refresher)
    spoil(store)
    refresher.refresh()
    refresher.refresh()
    assert refresher.snapshot.trouble(seconds())
    assert refresher.snapshot.environments[ENVIRONMENT].rollouts[GUARD] is before
    assert len([line for line in caplog.records if line.levelname == "CRITICAL"]) == 1


def revision_lower(store):
    store.hincrby(KEYS.state, "revision", -1)


def environment_gone(store):
    store.delete(KEYS.state)


def owner_changes_lower(store):
    store.decr(EvidenceKeys(ENVIRONMENT).owner_change_count)


@pytest.mark.parametrize("spoil", [revision_lower, environment_gone, owner_changes_lower])
def test_an_environment_that_went_back_stays_a_fault_even_when_it_catches_up(
    store, context, refresher, seconds, spoil
):
    world_in(context, Mode.ENFORCE)
    create_environment(context, "other", requires=None, actor=OPERATOR, reason=WHY)
    refresher.refresh()
    names = (KEYS.state, EvidenceKeys(ENVIRONMENT).owner_change_count)
    kept = {name: store.dump(name) for name in names}
    spoil(store)
    refresher.refresh()
    assert "went back" in refresher.snapshot.trouble_with(ENVIRONMENT, seconds())
    assert refresher.snapshot.trouble_with("other", seconds()) is None
    for name, dumped in kept.items():
        store.restore(name, 0, dumped, replace=True)
    refresher.refresh()
    assert "went back" in refresher.snapshot.trouble_with(ENVIRONMENT, seconds())


def test_a_generation_that_went_back_is_a_fault(context, refresher, seconds):
    world = world_in(context, Mode.ENFORCE)
    refresher.refresh()
    world.store_rollout(replace(world.rollout, generation=1))
    refresher.refresh()
    assert "went from generation 2 to 1" in refresher.snapshot.trouble_with(ENVIRONMENT, seconds())


def test_a_history_that_lost_its_end_and_grew_again_is_a_fault(store, context, refresher, seconds):
    world_in(context, Mode.ENFORCE)
    names = (KEYS.state, KEYS.audit)
    kept = {name: store.dump(name) for name in names}
    roll_back(context, ENVIRONMENT, actor=OPERATOR, reason=WHY)
    refresher.refresh()
    for name, dumped in kept.items():
        store.restore(name, 0, dumped, replace=True)
    for owner in ("one", "two"):
        state_owner_facts(context, ENVIRONMENT, {owner: KNOWN}, actor=OPERATOR, reason=WHY)
    refresher.refresh()
    assert "no longer holds entry" in refresher.snapshot.trouble_with(ENVIRONMENT, seconds())


def test_a_rollout_that_cannot_be_read_does_not_take_others_along(
    store, context, refresher, seconds
):
    world_in(context, Mode.ENFORCE)
    create_environment(context, "other", requires=None, actor=OPERATOR, reason=WHY)
    refresher.refresh()
    store.set(KEYS.rollout(GUARD), b'{"phase": "charge"}')
    store.hincrby(KEYS.state, "revision", 1)
    assert shown(refresher).fault == "the stored rollout cannot be read by this server"
    assert refresher.snapshot.trouble(seconds()) is None


def test_a_damaged_roster_is_a_fault_of_its_rollout(store, context, refresher):
    world_in(context, Mode.ENFORCE)
    store.set(KEYS.roster(GUARD, 2), b"0123456789")
    assert "does not have its wave's digest" in shown(refresher).fault


def test_a_damaged_environment_is_a_fault_of_that_environment(store, context, refresher, seconds):
    world_in(context, Mode.ENFORCE)
    create_environment(context, "other", requires=None, actor=OPERATOR, reason=WHY)
    store.hset(KEYS.state, "environment", b"{}")
    refresher.refresh()
    assert "cannot be read" in refresher.snapshot.trouble_with(ENVIRONMENT, seconds())
    assert refresher.snapshot.trouble_with("other", seconds()) is None


def test_intake_shows_every_20_seconds_that_it_is_up(store):
    calendar = Calendar(NOW)
    context = context_over(store, clock=calendar.clock)
    refresher = Refresher(context, CredentialCache(context))
    world_in(context, Mode.SHADOW)
    for seconds in (0, 19, 20, 25, 47):
        calendar.now = NOW + timedelta(seconds=seconds)
        refresher.refresh()
    beats = store.zrange(KEYS.heartbeats, 0, -1)
    assert [int(beat) - int(NOW.timestamp()) for beat in beats] == [0, 20, 47]


def test_what_serves_grpc_shows_that_this_door_is_open_and_no_other(store):
    context = context_over(store)
    world_in(context, Mode.SHADOW)
    Refresher(context, CredentialCache(context), door=IntakeDoor.GRPC).refresh()
    assert store.zcard(KEYS.grpc_heartbeats) == 1
    assert store.zcard(KEYS.heartbeats) == 0


def test_a_revoked_producer_keeps_its_trust(context, refresher):
    world_in(context, Mode.SHADOW)
    text = create_token(context, role=Role.INGEST, environment=ENVIRONMENT, is_trusted=True)
    revoke_token(context, text.split("_")[1])
    refresher.refresh()
    assert len(refresher.snapshot.environments[ENVIRONMENT].trusted_producers) == 1
