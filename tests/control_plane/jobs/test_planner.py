"""The planner's thread: plans run beside the worker's loop, and no failed plan ends it."""

from dataclasses import replace

import pytest

from guardwave.control_plane.commands.plans import PlanRequest, request_plan
from guardwave.control_plane.core.state import Plan, PlanStatus
from guardwave.control_plane.jobs.worker import Worker
from tests.support.lives import HOLDER, Life
from tests.support.web_workers import until
from tests.support.worlds import ENVIRONMENT, GUARD, OPERATOR


@pytest.fixture
def week(store):
    """A life in shadow with seven complete days."""
    life = Life.begin(store)
    life.live(7)
    return life


def ask(life: Life) -> Plan:
    request = PlanRequest(shares_bps=(2500,), placebo_waves=100)
    return request_plan(life.context, ENVIRONMENT, GUARD, request=request, actor=OPERATOR)


def stored_plan(life: Life, number: int) -> Plan:
    found = life.context.plans.plan(ENVIRONMENT, GUARD, number)
    assert found is not None
    return found


def test_the_worker_hands_a_plan_over_and_goes_on(week):
    asked = ask(week)
    worker = Worker(week.context, holder=HOLDER)
    while worker.run_once():
        pass
    assert week.context.jobs.take(ENVIRONMENT) is None
    assert until(lambda: stored_plan(week, asked.id).status is PlanStatus.DONE)


def test_a_plan_that_fails_ends_with_words_and_the_next_one_is_made(week):
    first = ask(week)
    # No caller can ask for no days at all; a damaged store can hold such a plan.
    week.context.plans.save(ENVIRONMENT, replace(first, days=(), shares_bps=()))
    worker = Worker(week.context, holder=HOLDER)
    worker.run_once()
    assert until(lambda: stored_plan(week, first.id).status is PlanStatus.FAILED)
    assert stored_plan(week, first.id).sentence == "it could not be made: ValueError; see the log"
    second = ask(week)
    while worker.run_once():
        pass
    assert until(lambda: stored_plan(week, second.id).status is PlanStatus.DONE)
