"""Killed processes: one that dies at any command loses no violation and no evidence."""

import itertools
from datetime import timedelta

import pytest

from guardwave.control_plane.jobs.worker import Worker
from guardwave.control_plane.stores.server.function_library import load_functions
from guardwave.reducer.rollout.assignment import Assignment
from guardwave.reducer.vocabulary import Cohort, Invariant, Mode
from tests.faults.dying import Death, die_in, receive, work
from tests.support.hosts import Calendar, Host, Prompt, issue_id, logs, partial_of, pseudonym_in
from tests.support.lives import HOLDER
from tests.support.worlds import ENVIRONMENT, GUARD, NOW, context_over, world_in

# What a process does anyhow is not looked at twice: each of its commands, before and after it.
MOST = 60
WHEN = pytest.mark.parametrize(
    "is_after",
    [pytest.param(False, id="before it is sent"), pytest.param(True, id="its answer unread")],
)


class World:
    """An empty store with one enforced owner, and the host that sends for it."""

    def __init__(self, store) -> None:
        store.flushall()
        load_functions(store)
        self.calendar = Calendar(NOW)
        self.context = world_in(
            context_over(store, clock=self.calendar.clock), Mode.ENFORCE, owners=1
        ).context
        self.host = Host(self.context)
        owner = pseudonym_in(self.context, "owner-0")
        enforced = Assignment(GUARD, owner, 2, Cohort.ENFORCED, Mode.ENFORCE, 2)
        ids = [issue_id(self.context, enforced)]
        self.prompt = Prompt("p-1", ids, NOW, mode=Mode.ENFORCE)

    def violations(self) -> list[Invariant]:
        return [violation.invariant for violation in self.context.incidents.violations(ENVIRONMENT)]

    def is_latched(self) -> bool:
        held = self.context.environments.load(ENVIRONMENT)
        assert held is not None
        return held.latch is not None

    def rows(self):
        return self.context.evidence.owner_days(ENVIRONMENT, GUARD, 2, [NOW.date()])


@WHEN
def test_an_immediate_violation_and_its_evidence_are_there_once_after_the_retry(
    store, store_server, is_after
):
    seen = set()
    for command in range(1, MOST):
        world = World(store)
        broken = world.prompt.transition(1, "reset", reset__reason="contract_violation")
        request = logs([world.prompt.start(), broken, world.prompt.end()])
        body = request.SerializeToString()
        arguments = (store_server.data_dir, NOW, world.host.token, body)
        died = die_in(receive, *arguments, death=Death(command, is_after))
        assert world.is_latched() or not world.rows(), "evidence before the violation"
        seen.add((world.is_latched(), bool(world.rows())))

        assert partial_of(world.host.send(request)) == (0, "")
        assert (world.is_latched(), world.violations()) == (True, [Invariant.CONTRACT_VIOLATION])
        (row,) = world.rows()
        assert (row.started, row.ended, row.completed) == (1, 1, 1)
        if not died:
            break
    else:
        pytest.fail(f"the request takes more than {MOST} commands; raise MOST")
    # It died before the violation, between the two writes, and after the evidence.
    assert seen == {(False, False), (True, False), (True, True)}


@WHEN
def test_a_delayed_violation_latches_once_whenever_the_worker_died(store, store_server, is_after):
    later = NOW + timedelta(minutes=3)
    seen = set()
    for command in itertools.count(1):
        world = World(store)
        stopped = world.prompt.transition(1, "stopped")
        assert partial_of(world.host.send(logs([world.prompt.start(), stopped]))) == (0, "")
        death = Death(command, is_after)
        died = die_in(work, store_server.data_dir, later, death=death)
        is_open = bool(world.context.suspects.overdue(ENVIRONMENT, later))
        assert world.is_latched() or is_open, "decided before the violation was recorded"
        seen.add((world.is_latched(), is_open))

        world.calendar.now = later
        Worker(world.context, holder=HOLDER).run_once()
        assert (world.is_latched(), world.violations()) == (True, [Invariant.STOP_WITHOUT_WARN])
        assert world.context.suspects.overdue(ENVIRONMENT, later) == ()
        if not died or (True, False) in seen:
            break
        assert command < MOST
    assert seen == {(False, True), (True, True), (True, False)}
