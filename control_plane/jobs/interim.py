"""Interim looks for harm: after each of a wave's first complete days, then after each week.

The declared days share the policy's alarm alpha in equal parts (Bonferroni: 2.45 standard errors at
seven days and 0.05). The weeks after them have no last one, so that their bound is always-valid, at
the same alpha once more. A wave without harm raises an alarm about a metric with a probability of
at most two alpha.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import date
from typing import NamedTuple

import pandas as pd

from guardwave.analysis.frames import explain_missing, missing_values_of, owner_totals
from guardwave.analysis.gate import AnyTimeLooks, Looks, ScheduledLooks, harm_alarms, information
from guardwave.control_plane.commands.harm_alarm import act_on_look
from guardwave.control_plane.core.state import HarmLook, MetricLook
from guardwave.control_plane.jobs.cohort_assignment import keep_assigned_cohorts
from guardwave.control_plane.jobs.gather import is_older_than_evidence
from guardwave.control_plane.jobs.owner_day_table import OwnerDayTable
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.rollouts.days import complete_days, wave_days
from guardwave.control_plane.stores.jobs import Job, JobKind
from guardwave.reducer.rollout.state import REFERENCE, TREATED, Rollout, Wave, gate_for
from guardwave.reducer.vocabulary import Cohort, Metric, Mode

WEEK = 7


class DueLook(NamedTuple):
    """A look that is due: its number in the wave, and the number of complete days it uses."""

    number: int
    days: int


def due_look(complete: int, declared: int) -> DueLook | None:
    """Return the newest look that this number of complete days allows, None before the first day.

    `declared` is the wave's last declared look, in days.
    """
    if complete < 1:
        return None
    if complete <= declared:
        return DueLook(complete, complete)
    week = (complete - declared) // WEEK
    return DueLook(declared + week, declared + WEEK * week)


def request_due_looks(context: Context, environment: str) -> tuple[Job, ...]:
    """Queue each wave's look that is due and not made yet; return the queued jobs."""
    stored = context.environments.load(environment)
    if stored is None:
        return ()
    queued: list[Job] = []
    for rollout in context.environments.rollouts(stored):
        wave = _comparing_wave(context, rollout)
        if wave is not None and _next_look(context, rollout, wave) is not None:
            job = Job(JobKind.LOOK, rollout.guard, wave.number)
            context.jobs.put(environment, job)
            queued.append(job)
    return tuple(queued)


def look_for_harm(context: Context, environment: str, guard: str, number: int) -> HarmLook | None:
    """Make the look that is due in a wave; None when the wave is over or the look exists.

    Raises:
        ValueError: the owner-days contradict each other.
    """
    rollout = context.environments.rollout(environment, guard)
    wave = None if rollout is None else _comparing_wave(context, rollout)
    if rollout is None or wave is None or wave.number != number:
        return None
    next_look = _next_look(context, rollout, wave)
    if next_look is None:
        return None
    due, days = next_look
    rows = context.evidence.owner_days(
        environment, guard, wave.number, days, source=rollout.evidence_source
    )
    policy = context.policies.of(environment)
    gate = gate_for(wave.phase)
    assert gate is not None  # a wave that compares has one
    frame = OwnerDayTable.of(rows).frame()
    frame = keep_assigned_cohorts(
        frame[frame["started"] > 0], wave, _treated(context, rollout, wave, frame)
    ).rows
    cohorts = (TREATED[wave.phase], REFERENCE[wave.phase])
    margins = policy.margins[gate]
    declared = max(wave.looks)
    looks: Looks = ScheduledLooks(declared)
    if due.days > declared:
        ends = days[declared - 1 :: WEEK]
        looks = AnyTimeLooks(planned_information(frame, cohorts, tuple(margins), ends=ends))
    missing_reasons = explain_missing(missing_values_of(frame, None, cohorts))
    alarms = harm_alarms(
        owner_totals(frame),
        cohorts,
        margins,
        policy=policy,
        looks=looks,
        missing_reasons=missing_reasons,
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
                alarm.metric,
                alarm.is_raised,
                alarm.estimate,
                alarm.bound,
                alarm.margin,
                alarm.sentence,
                alarm.is_missing,
            )
            for alarm in alarms
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
    """Return the planned information for the weekly looks, fixed at the first of `ends`.

    `frame` has owner-days up to the last of `ends`. A metric without a spread at one end is planned
    at the next, so that every look of a wave computes the same plan.
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
    """Return the owners that the draw treats; none where no owner is in two cohorts."""
    if not frame.groupby("owner")["cohort"].nunique().gt(1).any():
        return ()
    roster = context.environments.roster(rollout.environment, rollout.guard, wave)
    return () if roster is None else roster.pseudonyms[: wave.treated]


def _comparing_wave(context: Context, rollout: Rollout) -> Wave | None:
    """Return the open wave if it has two cohorts to compare and its evidence is still kept."""
    if rollout.phase.rank <= Mode.SHADOW.rank:
        return None
    wave = context.environments.wave(rollout.environment, rollout.guard, rollout.wave)
    if wave is None or not 0 < wave.treated < wave.roster_size:
        return None
    return None if is_older_than_evidence(context, wave) else wave


def _next_look(
    context: Context, rollout: Rollout, wave: Wave
) -> tuple[DueLook, Sequence[date]] | None:
    """Return the look that is due and its days, None when none is due or it exists."""
    complete = complete_days(wave_days(context, rollout.environment, wave, rollout.evidence_source))
    due = due_look(len(complete), max(wave.looks))
    if due is None:
        return None
    past_looks = context.incidents.harm_looks(rollout.environment, rollout.guard)
    if any(look.wave == wave.number and look.number >= due.number for look in past_looks):
        return None
    return due, complete[: due.days]
