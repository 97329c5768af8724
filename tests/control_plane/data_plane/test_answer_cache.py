"""Answer cache: an answer is given again only while all its inputs are the same."""

from datetime import timedelta

import pytest

from guardwave.control_plane import data_plane
from guardwave.control_plane.commands.owners import state_owner_facts
from guardwave.control_plane.commands.rollback import roll_back
from guardwave.control_plane.core.clock import Clock, to_ns
from guardwave.control_plane.core.errors import NotSignedIn
from guardwave.control_plane.data_plane.assignment_request import AssignmentRequest
from guardwave.control_plane.data_plane.assignments import answer_assignment
from guardwave.control_plane.rollouts.access import revoke_token
from guardwave.control_plane.stores.owners import StatedFacts
from guardwave.reducer.rollout.eligibility import Ownership
from guardwave.reducer.vocabulary import Mode
from tests.support.worlds import (
    ENVIRONMENT,
    GUARD,
    NOW,
    OPERATOR,
    VERSION,
    WHY,
    context_over,
    world_in,
)


class Today:
    """A wall clock that a test moves."""

    def __init__(self):
        self.now = NOW

    def __call__(self):
        return to_ns(self.now)


@pytest.fixture
def today():
    return Today()


@pytest.fixture
def world(store, today):
    return world_in(context_over(store, clock=Clock(wall_ns=today)), Mode.ENFORCE)


@pytest.fixture
def token(world):
    return world.token()


@pytest.fixture
def plane(world, token):
    made = data_plane.build_data_plane(world.context)
    yield made
    made.refresher.stop()


@pytest.fixture
def asked(world, token):
    return AssignmentRequest(
        ENVIRONMENT,
        GUARD,
        world.roster[0],
        query=f"service.version={VERSION}",
        authorization=f"Bearer {token}",
    )


def test_the_same_question_gets_the_same_answer(plane, asked):
    first = answer_assignment(plane, asked)
    plane.refresher.refresh()
    assert b'"mode":"enforce"' in first.body
    assert answer_assignment(plane, asked).body is first.body


def doubt(world):
    doubted = StatedFacts(Ownership.UNKNOWN, is_trusted=True)
    owners = {world.roster[0]: doubted}
    state_owner_facts(world.context, ENVIRONMENT, owners, actor=OPERATOR, reason=WHY)


def return_to_shadow(world):
    roll_back(world.context, ENVIRONMENT, actor=OPERATOR, reason=WHY)


@pytest.mark.parametrize("write", [doubt, return_to_shadow])
def test_a_change_ends_the_answers_given_before(world, plane, asked, write):
    answer_assignment(plane, asked)
    write(world)
    plane.refresher.refresh()
    assert b'"mode":"shadow"' in answer_assignment(plane, asked).body


def test_facts_that_change_alone_end_the_answers_of_their_owner(world, plane, asked):
    answer_assignment(plane, asked)
    doubted = StatedFacts(Ownership.UNKNOWN, is_trusted=True)
    everyone = world.context.owners.all_facts(ENVIRONMENT)
    world.context.owners.state_facts(ENVIRONMENT, dict.fromkeys(everyone, doubted))
    plane.refresher.refresh()
    assert b'"mode":"shadow"' in answer_assignment(plane, asked).body


def test_a_revoked_token_gets_no_answer_that_it_got_before(world, plane, asked, token):
    answer_assignment(plane, asked)
    revoke_token(world.context, token.split("_")[1])
    plane.refresher.refresh()
    with pytest.raises(NotSignedIn):
        answer_assignment(plane, asked)


def test_a_new_day_ends_the_answers_of_the_day_before(plane, asked, today):
    first = answer_assignment(plane, asked)
    today.now += timedelta(hours=12)
    again = answer_assignment(plane, asked)
    assert again.body is not first.body
    assert again.body == first.body


def test_neither_owner_ids_nor_tokens_are_kept(world, plane, asked, token):
    answer_assignment(plane, asked)
    kept = repr(plane.answers._kept)
    assert kept != "{}"
    assert world.roster[0] not in kept
    _, _, secret = token.split("_", 2)
    assert secret not in kept
