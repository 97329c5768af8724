"""Environments, rollouts and owners: created once, named well, with no owner's id stored."""

from datetime import timedelta

import pytest

from guardwave.control_plane.commands.environments import create_environment, create_rollout
from guardwave.control_plane.commands.owners import state_owner_facts
from guardwave.control_plane.core.errors import InvalidField, NotFound, RuleViolated, StateConflict
from guardwave.reducer.rollout.state import EvidenceSource
from guardwave.reducer.vocabulary import Mode
from tests.support.hosts import Host, Prompt, assignment_for, pseudonym_in
from tests.support.worlds import (
    ENVIRONMENT,
    GUARD,
    KNOWN,
    NOW,
    OPERATOR,
    VERSION,
    WHY,
    context_over,
)


@pytest.fixture
def context(store):
    return context_over(store)


def create(context, name=ENVIRONMENT, *, requires=None, reason=WHY):
    return create_environment(context, name, requires=requires, actor=OPERATOR, reason=reason)


def roll_out(
    context, guard=GUARD, *, pin=(VERSION,), evidence_source: EvidenceSource = EvidenceSource.EVENTS
):
    return create_rollout(
        context,
        ENVIRONMENT,
        guard,
        version_pin=pin,
        actor=OPERATOR,
        reason=WHY,
        evidence_source=evidence_source,
    )


def entries(context) -> int:
    return len(context.environments.audit_entries(ENVIRONMENT))


@pytest.mark.parametrize(
    "name", ["../x", "", "Internal", "a" * 49, "a b", "intern\N{LATIN SMALL LETTER A WITH ACUTE}l"]
)
def test_a_malformed_name_is_refused(context, name):
    with pytest.raises(InvalidField, match="1 to 48 of a-z, 0-9 and '-'"):
        create(context, name)
    assert context.environments.names() == ()


def test_an_environment_is_made_once_with_keys_of_its_own(context):
    first, is_new = create(context)
    again, is_new_again = create(context)
    other, _ = create(context, "public")
    assert (is_new, is_new_again, again) == (True, False, first)
    assert first.tag_key != other.tag_key
    assert first.pseudonym_key != other.pseudonym_key
    assert entries(context) == 1


def test_an_environment_cannot_require_itself(context):
    with pytest.raises(RuleViolated, match="internal cannot require itself"):
        create(context, requires=("another", ENVIRONMENT))
    assert context.environments.names() == ()


def test_an_environment_requires_only_what_is_there(context):
    with pytest.raises(RuleViolated, match=r"intrenal does not exist.*create what is required"):
        create(context, "public", requires=("intrenal",))
    assert context.environments.names() == ()


def test_requiring_an_environment_twice_is_requiring_it_once(context):
    create(context)
    found, _ = create(context, "public", requires=("internal", "internal"))
    assert found.requires == ("internal",)
    assert create(context, "public", requires=("internal",)) == (found, False)


def test_requirements_of_an_environment_are_set_once(context):
    create(context)
    create(context, "public", requires=("internal",))
    assert create(context, "public")[1] is False
    with pytest.raises(StateConflict, match=r"requires \['internal'\]"):
        create(context, "public", requires=())
    with pytest.raises(InvalidField):
        create(context, "another", requires=("../internal",))


def test_a_rollout_is_made_once_in_shadow_with_its_wave_open(context):
    create(context)
    rollout, is_new = roll_out(context)
    wave = context.environments.wave(ENVIRONMENT, GUARD, rollout.wave)
    assert (is_new, rollout.phase, rollout.generation) == (True, Mode.SHADOW, 1)
    assert wave is not None
    assert (wave.phase, wave.opened_at, wave.looks) == (Mode.SHADOW, NOW, (7,))
    assert roll_out(context) == (rollout, False)
    with pytest.raises(StateConflict, match=r"version_pin .*POST .*waves"):
        roll_out(context, pin=("9.9",))
    with pytest.raises(StateConflict, match="evidence_source events, which is set once"):
        roll_out(context, evidence_source=EvidenceSource.COUNTERS)
    assert entries(context) == 2


def test_a_guard_that_nobody_registered_has_no_rollout(context):
    create(context)
    with pytest.raises(
        RuleViolated, match="not in the catalogue; the guards are duplicate_call_id"
    ):
        roll_out(context, "unheard_of")
    with pytest.raises(InvalidField):
        roll_out(context, "../guard")
    with pytest.raises(NotFound):
        create_rollout(
            context, "nowhere", GUARD, version_pin=(VERSION,), actor=OPERATOR, reason=WHY
        )


def state(context, *owners: str) -> int:
    return state_owner_facts(
        context, ENVIRONMENT, dict.fromkeys(owners, KNOWN), actor=OPERATOR, reason=WHY
    )


def test_facts_that_are_known_change_nothing(context):
    create(context)
    assert state(context, "one", "two") == 2
    count = entries(context)
    assert state(context, "one", "two") == 0
    assert entries(context) == count


def test_a_thousand_owners_go_in_one_call_and_no_more(context):
    create(context)
    assert state(context, *(f"owner-{number}" for number in range(1000))) == 1000
    with pytest.raises(RuleViolated, match="1001 owners in one request"):
        state(context, *(f"more-{number}" for number in range(1001)))


def test_a_malformed_owner_id_is_reported_only_by_its_place(context):
    create(context)
    with pytest.raises(InvalidField) as refused:
        state(context, "fine", "secret\nworkspace")
    assert "/owners/1/owner" in str(refused.value.extras)
    assert "secret" not in str(refused.value)
    assert context.owners.all_facts(ENVIRONMENT) == {}


def test_neither_an_owners_id_nor_a_prompts_is_anywhere_in_the_store(store, context):
    create(context)
    roll_out(context)
    owner, prompt_id = "acme-workspace-0815", "prompt-of-somebody-4711"
    state(context, owner)
    _, owner_id = assignment_for(context, owner)
    host = Host(context)
    at = NOW - timedelta(hours=1)
    host.send_prompts(Prompt(prompt_id, [owner_id], at, decisions=("tracked",), is_disrupted=True))
    host.send_prompts(Prompt(f"{prompt_id}-2", [], at), Prompt(f"{prompt_id}-3", ["a1.forged"], at))
    held = b"\n".join(part for key in store.scan_iter() for part in (key, *values(store, key)))
    assert pseudonym_in(context, owner).encode() in held
    for secret in (owner, prompt_id):
        assert secret.encode() not in held


def values(store, key) -> list[bytes]:
    """Return everything under a key, whatever its type."""
    match store.type(key):
        case b"string":
            return [store.get(key)]
        case b"hash":
            return [part for pair in store.hgetall(key).items() for part in pair]
        case b"list":
            return list(store.lrange(key, 0, -1))
        case b"set":
            return list(store.smembers(key))
        case b"zset":
            return list(store.zrange(key, 0, -1))
        case b"stream":
            entries_of = store.xrange(key)
            return [part for _, fields in entries_of for pair in fields.items() for part in pair]
        case kind:
            raise AssertionError(f"{key} is a {kind}, which this test does not read")
