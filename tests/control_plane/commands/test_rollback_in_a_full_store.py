"""Rollbacks in a full store: evidence is rejected, and a guard still comes down."""

import pytest

from guardwave.control_plane.commands.rollback import FoundViolation, latch, roll_back
from guardwave.control_plane.core.errors import StoreUnavailable
from guardwave.control_plane.core.state import Action
from guardwave.control_plane.stores.keys import EnvironmentKeys
from guardwave.reducer.vocabulary import Invariant, Mode
from tests.support.hosts import Assigner, Host, Prompt
from tests.support.worlds import ENVIRONMENT, GUARD, NOW, OPERATOR, WHY, context_over, world_in


@pytest.fixture
def warned(any_store):
    return world_in(context_over(any_store), Mode.WARN)


@pytest.fixture
def host(warned):
    return Host(warned.context)


@pytest.fixture
def prompt(warned):
    _, assignment_id = Assigner(warned.context, ENVIRONMENT).of("owner-0")
    return Prompt("p-1", (assignment_id,), NOW)


@pytest.fixture
def full_store(any_store, host):
    """Let the store be over its limit until the test is over."""
    calm = any_store.config_get("maxmemory")["maxmemory"]
    any_store.config_set("maxmemory", "1")
    yield any_store
    any_store.config_set("maxmemory", calm)


def phase(world):
    found = world.context.environments.rollout(ENVIRONMENT, GUARD)
    assert found is not None
    return found.phase


@pytest.mark.usefixtures("full_store")
def test_a_full_store_takes_no_evidence_but_a_rollback(warned, host, prompt):
    assert host.send_prompts(prompt).status == StoreUnavailable.status
    done = roll_back(warned.context, ENVIRONMENT, actor=OPERATOR, reason=WHY)
    assert (done.changed, done.is_verified, phase(warned)) == (True, True, Mode.SHADOW)


def test_a_full_store_latches(warned, full_store):
    found = FoundViolation("record 1", Invariant.CONTRACT_VIOLATION, GUARD, Mode.WARN, 2)
    assert latch(warned.context, ENVIRONMENT, [found]) is not None
    assert phase(warned) is Mode.SHADOW
    (entry,) = warned.context.environments.audit_entries(ENVIRONMENT, count=1)
    assert entry["action"] == Action.LATCHED
    assert full_store.hlen(EnvironmentKeys(ENVIRONMENT).violations) == 1
