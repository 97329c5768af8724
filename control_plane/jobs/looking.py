"""Looks for harm: after each of a wave's first complete days, then after each further week.

A wave spends its alarm alpha once, however long it lives (Bonferroni with unequal shares): half on
its declared days, in equal parts, and half on the weeks after, of which the k-th gets 1 / (k(k+1)),
which add up to one.
"""

from collections.abc import Sequence
from datetime import date
from typing import NamedTuple

from analysis.alarms import Scheduled, harm_alarms
from analysis.frames import owner_totals
from control_plane.commands.harm import act_on_look
from control_plane.context import Context
from control_plane.jobs.gathering import is_older_than_evidence
from control_plane.jobs.owner_day_table import OwnerDayTable
from control_plane.queries.days import complete_days, wave_days
from control_plane.state import HarmLook, MetricLook
from control_plane.stores.jobs import Job, JobKind
from reducer.rollout.phases import REFERENCE, TREATED, gate_for
from reducer.rollout.state import Rollout, Wave
from reducer.vocabulary import Mode

WEEK = 7


class Due(NamedTuple):
    """A look that has come: its number in the wave, the days it looks at, and its part of alpha."""

    number: int
    days: int
    looks: int


def due_look(complete: int, declared: int) -> Due | None:
    """Return the newest look that so many complete days allow, None before the first day.

    `declared` is the wave's last declared look, in days; `looks` is one over its share of alpha.
    """
    if complete < 1:
        return None
    if complete <= declared:
        return Due(complete, complete, 2 * declared)
    week = (complete - declared) // WEEK
    if week == 0:
        return Due(declared, declared, 2 * declared)
    return Due(declared + week, declared + WEEK * week, 2 * week * (week + 1))


def request_due_looks(context: Context, environment: str) -> tuple[Job, ...]:
    """Queue a look for each wave that has one due and not made; answer what was queued."""
    held = context.environments.load(environment)
    if held is None:
        return ()
    queued: list[Job] = []
    for rollout in context.environments.rollouts(held):
        wave = _comparing_wave(context, rollout)
        if wave is not None and _next(context, rollout, wave) is not None:
            job = Job(JobKind.LOOK, rollout.guard, wave.number)
            context.jobs.put(environment, job)
            queued.append(job)
    return tuple(queued)


def look_for_harm(context: Context, environment: str, guard: str, number: int) -> HarmLook | None:
    """Make the look that is due in a wave; None when it is over or the look was made.

    Raises:
        ValueError: the owner-days contradict each other.
    """
    rollout = context.environments.rollout(environment, guard)
    wave = None if rollout is None else _comparing_wave(context, rollout)
    if rollout is None or wave is None or wave.number != number:
        return None
    found = _next(context, rollout, wave)
    if found is None:
        return None
    due, days = found
    rows = context.evidence.owner_days(
        environment, guard, wave.number, days, source=rollout.evidence_source
    )
    frame = OwnerDayTable.of(rows).frame()
    policy = context.policies.of(environment)
    gate = gate_for(wave.phase)
    assert gate is not None  # a wave that compares has one
    seen = harm_alarms(
        owner_totals(frame[frame["started"] > 0]),
        (TREATED[wave.phase], REFERENCE[wave.phase]),
        policy.margins[gate],
        policy=policy,
        looks=Scheduled(due.looks),
    )
    look = HarmLook(
        guard=guard,
        wave=wave.number,
        number=due.number,
        days=due.days,
        through=days[-1],
        at=context.clock.now(),
        metrics=tuple(
            MetricLook(
                each.metric, each.is_raised, each.estimate, each.bound, each.margin, each.sentence
            )
            for each in seen
        ),
    )
    return act_on_look(context, environment, look)


def _comparing_wave(context: Context, rollout: Rollout) -> Wave | None:
    """Return the open wave if it holds two cohorts to compare and its evidence is still kept."""
    if rollout.phase.rank <= Mode.SHADOW.rank:
        return None
    wave = context.environments.wave(rollout.environment, rollout.guard, rollout.wave)
    if wave is None or not 0 < wave.treated < wave.roster_size:
        return None
    return None if is_older_than_evidence(context, wave) else wave


def _next(context: Context, rollout: Rollout, wave: Wave) -> tuple[Due, Sequence[date]] | None:
    """Return the look that is due and its days, None when there is none or it was made."""
    complete = complete_days(wave_days(context, rollout.environment, wave, rollout.evidence_source))
    due = due_look(len(complete), max(wave.looks))
    if due is None:
        return None
    made = context.incidents.harm_looks(rollout.environment, rollout.guard)
    if any(look.wave == wave.number and look.number >= due.number for look in made):
        return None
    return due, complete[: due.days]
