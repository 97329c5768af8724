"""Looks for harm: after each of a wave's first complete days, then after each further week.

The declared days share the policy's alarm alpha in equal parts (Bonferroni: 2.45 standard errors at
seven days and 0.05). The weeks after have no last one, so their bound is always-valid, at the same
alpha once more. A wave without harm raises an alarm about a metric in at most two alpha.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import date
from typing import NamedTuple

import pandas as pd

from analysis.alarms import AnyTime, Looks, Scheduled, harm_alarms, information
from analysis.frames import owner_totals
from analysis.untold import untold_of, why_untold
from control_plane.commands.harm import act_on_look
from control_plane.context import Context
from control_plane.jobs.drawn_cohorts import in_drawn_cohorts
from control_plane.jobs.gathering import is_older_than_evidence
from control_plane.jobs.owner_day_table import OwnerDayTable
from control_plane.queries.days import complete_days, wave_days
from control_plane.state import HarmLook, MetricLook
from control_plane.stores.jobs import Job, JobKind
from reducer.rollout.phases import REFERENCE, TREATED, gate_for
from reducer.rollout.state import Rollout, Wave
from reducer.vocabulary import Cohort, Metric, Mode

WEEK = 7


class Due(NamedTuple):
    """A look that has come: its number in the wave, and the complete days it looks at."""

    number: int
    days: int


def due_look(complete: int, declared: int) -> Due | None:
    """Return the newest look that so many complete days allow, None before the first day.

    `declared` is the wave's last declared look, in days.
    """
    if complete < 1:
        return None
    if complete <= declared:
        return Due(complete, complete)
    week = (complete - declared) // WEEK
    return Due(declared + week, declared + WEEK * week)


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
    policy = context.policies.of(environment)
    gate = gate_for(wave.phase)
    assert gate is not None  # a wave that compares has one
    frame = OwnerDayTable.of(rows).frame()
    frame = in_drawn_cohorts(
        frame[frame["started"] > 0], wave, _treated(context, rollout, wave, frame)
    ).rows
    cohorts = (TREATED[wave.phase], REFERENCE[wave.phase])
    margins = policy.margins[gate]
    declared = max(wave.looks)
    looks: Looks = Scheduled(declared)
    if due.days > declared:
        ends = days[declared - 1 :: WEEK]
        looks = AnyTime(planned_information(frame, cohorts, tuple(margins), ends=ends))
    untold = why_untold(untold_of(frame, None, cohorts))
    seen = harm_alarms(
        owner_totals(frame), cohorts, margins, policy=policy, looks=looks, untold=untold
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
                each.metric,
                each.is_raised,
                each.estimate,
                each.bound,
                each.margin,
                each.sentence,
                each.is_untold,
            )
            for each in seen
        ),
    )
    return act_on_look(context, environment, look)


def planned_information(
    frame: pd.DataFrame,
    cohorts: tuple[Cohort, Cohort],
    metrics: Sequence[Metric],
    *,
    ends: Sequence[date],
) -> Mapping[Metric, float]:
    """Return what the weekly looks were planned with: the information at the first of `ends`.

    `frame` has owner-days up to the last of them. A metric without a spread so far is planned by
    the next one, so that each look of a wave finds the same.
    """
    planned: dict[Metric, float] = {}
    for end in ends:
        lacking = [metric for metric in metrics if metric not in planned]
        if lacking:
            planned |= information(owner_totals(frame[frame["day"] <= end]), cohorts, lacking)
    return planned


def _treated(
    context: Context, rollout: Rollout, wave: Wave, frame: pd.DataFrame
) -> Collection[str]:
    """Return the owners that the draw treats; nobody needs them where no owner is in two."""
    if not frame.groupby("owner")["cohort"].nunique().gt(1).any():
        return ()
    roster = context.environments.roster(rollout.environment, rollout.guard, wave)
    return () if roster is None else roster.pseudonyms[: wave.treated]


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
