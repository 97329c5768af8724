"""An environment whose rollout is in a phase, its host, and an owner of it, for tests of intake."""

import pytest

from guardwave.reducer.vocabulary import Mode
from tests.support.hosts import Calendar, Host, assignment_for
from tests.support.worlds import NOW, context_over, world_in


@pytest.fixture
def phase():
    """Shadow; tests of another phase give their own."""
    return Mode.SHADOW


@pytest.fixture
def calendar():
    return Calendar(NOW)


@pytest.fixture
def context(store, calendar, phase):
    return world_in(context_over(store, clock=calendar.clock), phase).context


@pytest.fixture
def host(context):
    return Host(context)


@pytest.fixture
def owner_id(context):
    """The assignment id of an eligible owner."""
    return assignment_for(context, "owner-1")[1]
