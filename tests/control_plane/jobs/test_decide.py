"""Delayed invariants: decided two minutes after their records, from what is known by then."""

from datetime import timedelta

import pytest

from guardwave.control_plane.commands.environments import create_rollout
from guardwave.control_plane.jobs.worker import Worker
from guardwave.control_plane.stores.keys import EvidenceKeys
from guardwave.reducer.rollout.assignment import Assignment
from guardwave.reducer.vocabulary import Cohort, Invariant, Mode
from tests.support.hosts import Calendar, Event, Host, Prompt, issue_id, logs, pseudonym_in
from tests.support.latches import is_latched, recorded_invariants
from tests.support.lives import HOLDER
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

IN_TIME = timedelta(minutes=2, seconds=5)
TOO_EARLY = timedelta(minutes=1, seconds=59)
OTHER_GUARD = "identical_call"


@pytest.fixture
def calendar():
    return Calendar(NOW)


@pytest.fixture
def context(store, calendar):
    return world_in(context_over(store, clock=calendar.clock), Mode.ENFORCE).context


@pytest.fixture
def host(context):
    return Host(context)


def prompt(
    context,
    *,
    guard: str = GUARD,
    cohort: Cohort = Cohort.ENFORCED,
    mode: Mode = Mode.ENFORCE,
    prompt_id: str = "p-1",
) -> Prompt:
    owner = pseudonym_in(context, "owner-0")
    assignment = Assignment(guard, owner, 2, cohort, mode, 2)
    return Prompt(prompt_id, [issue_id(context, assignment)], NOW, mode=mode, guard=guard)


def decisions(of: Prompt, *words: str) -> list[Event]:
    """Return transitions numbered from 1."""
    unreliable = {"reset__reason": "unreliable_input"}
    return [
        of.transition(sequence, "reset", **unreliable)
        if word == "unreliable"
        else of.transition(sequence, word)
        for sequence, word in enumerate(words, start=1)
    ]


def work_after(context, calendar, delay: timedelta) -> None:
    calendar.now = NOW + delay
    Worker(context, holder=HOLDER).run_once()


def test_a_stop_without_a_warning_latches_when_its_two_minutes_are_over(context, calendar, host):
    host.send(logs(decisions(prompt(context), "tracked", "stopped")))
    work_after(context, calendar, TOO_EARLY)
    assert (recorded_invariants(context), is_latched(context)) == ([], False)
    work_after(context, calendar, IN_TIME)
    assert (recorded_invariants(context), is_latched(context)) == (
        [Invariant.STOP_WITHOUT_WARN],
        True,
    )


def test_a_violation_latches_although_prompts_without_an_end_cannot_be_closed(
    context, calendar, host, store
):
    host.send(logs(decisions(prompt(context), "tracked", "stopped")))
    store.set(EvidenceKeys(ENVIRONMENT).due, "no sorted set")
    work_after(context, calendar, IN_TIME)
    assert (recorded_invariants(context), is_latched(context)) == (
        [Invariant.STOP_WITHOUT_WARN],
        True,
    )


def test_a_warning_that_arrives_within_two_minutes_explains_the_stop(context, calendar, host):
    warned, stopped = decisions(prompt(context), "warned", "stopped")
    host.send(logs([stopped]))
    calendar.now = NOW + TOO_EARLY
    host.send(logs([warned]))
    work_after(context, calendar, timedelta(hours=1))
    assert recorded_invariants(context) == []


def test_a_gap_that_is_filled_shows_the_stop_without_a_warning(context, calendar, host):
    tracked, stopped = decisions(prompt(context), "tracked", "stopped")
    host.send(logs([stopped]))
    work_after(context, calendar, timedelta(hours=1))
    assert recorded_invariants(context) == []
    host.send(logs([tracked]))
    work_after(context, calendar, timedelta(hours=1) + IN_TIME)
    assert recorded_invariants(context) == [Invariant.STOP_WITHOUT_WARN]


def test_two_modes_on_one_prompt_latch(context, calendar, host):
    host.send(logs([prompt(context).start()]))
    host.send(logs([prompt(context, cohort=Cohort.CONTROL, mode=Mode.WARN).end()]))
    work_after(context, calendar, TOO_EARLY)
    assert not is_latched(context)
    work_after(context, calendar, IN_TIME)
    assert recorded_invariants(context) == [Invariant.TREATMENT_SWITCHED]
    (violation,) = context.incidents.violations(ENVIRONMENT)
    assert (violation.guard, violation.generation) == (GUARD, 2)


def test_an_invariant_that_a_guard_does_not_declare_is_not_violated_by_it(context, calendar, host):
    create_rollout(
        context, ENVIRONMENT, OTHER_GUARD, version_pin=(VERSION,), actor=OPERATOR, reason=WHY
    )
    of = prompt(context, guard=OTHER_GUARD)
    host.send(logs(decisions(of, "unreliable", "stopped")))
    work_after(context, calendar, IN_TIME)
    assert recorded_invariants(context) == []


def test_a_violation_that_no_trusted_producer_showed_is_counted_once(context, calendar):
    stranger = Host(context, is_trusted=False)
    stranger.send(logs(decisions(prompt(context), "tracked", "stopped")))
    for minutes in (3, 4, 5):
        work_after(context, calendar, timedelta(minutes=minutes))
    assert (recorded_invariants(context), is_latched(context)) == ([], False)
    counted = context.evidence.health(ENVIRONMENT)
    assert counted["untrusted_violation:stop_without_warn"] == 1


def test_a_stranger_cannot_make_a_trusted_prompt_look_switched(context, calendar, host):
    host.send(logs([prompt(context).start()]))
    stranger = Host(context, is_trusted=False)
    stranger.send(logs([prompt(context, cohort=Cohort.CONTROL, mode=Mode.WARN).end()]))
    work_after(context, calendar, IN_TIME)
    assert not is_latched(context)
    counted = context.evidence.health(ENVIRONMENT)
    assert counted["untrusted_violation:treatment_switched"] == 1


def test_a_decided_suspicion_of_a_stranger_hides_no_trusted_violation(context, calendar, host):
    of = prompt(context)
    Host(context, is_trusted=False).send(logs(decisions(of, "stopped")))
    work_after(context, calendar, IN_TIME)
    assert not is_latched(context)
    host.send(logs(decisions(of, "tracked", "stopped")))
    work_after(context, calendar, 2 * IN_TIME)
    assert (recorded_invariants(context), is_latched(context)) == (
        [Invariant.STOP_WITHOUT_WARN],
        True,
    )


def test_a_decided_suspicion_stays_decided_when_more_of_the_prompt_arrives(context, calendar, host):
    of = prompt(context)
    host.send(logs(decisions(of, "stopped")))
    work_after(context, calendar, IN_TIME)
    host.send(logs([of.end()]))
    work_after(context, calendar, 3 * IN_TIME)
    assert recorded_invariants(context) == [Invariant.STOP_WITHOUT_WARN]
    assert context.suspects.overdue(ENVIRONMENT, NOW + timedelta(days=1)) == ()


def test_a_worker_that_was_away_for_two_days_still_finds_the_violation(context, calendar, host):
    host.send(logs(decisions(prompt(context), "stopped")))
    work_after(context, calendar, timedelta(days=2))
    assert recorded_invariants(context) == [Invariant.STOP_WITHOUT_WARN]
