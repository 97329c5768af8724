"""Seals of days: once sealed, a day's evidence changes only as a revision."""

from datetime import date, timedelta

from guardwave.control_plane.core.clock import NANOSECONDS
from guardwave.control_plane.rollouts.context import Context
from guardwave.reducer.rollout.days import day_start

LOOK_BACK_DAYS = 10


def latest_due_day(context: Context) -> date:
    """Return the newest day that ended long enough ago to be sealed."""
    return (context.clock.now() - context.clock.seal_delay).date() - timedelta(days=1)


def seal_due_days(context: Context, environment: str) -> tuple[date, ...]:
    """Seal every day that ended long enough ago; return those sealed now, in order.

    A day without any telemetry is sealed too, so that a late record does not hide the gap.
    """
    latest = latest_due_day(context)
    recent = {latest - timedelta(days=back) for back in range(LOOK_BACK_DAYS)}
    first = _first_day(context, environment)
    if first is None:
        return ()
    known = {day for day in context.evidence.days(environment) if day <= latest}
    candidates = sorted(known | {day for day in recent if day >= first})
    sealed = {day.day for day in context.evidence.sealed_days(environment, candidates)}
    due = [day for day in candidates if day not in sealed]
    return tuple(day for day in due if _seal(context, environment, day))


def _first_day(context: Context, environment: str) -> date | None:
    """Return the day on which the environment's oldest running wave began."""
    stored = context.environments.load(environment)
    if stored is None:
        return None
    opened = [
        wave.opened_at.date()
        for rollout in context.environments.rollouts(stored)
        for wave in (context.environments.wave(environment, rollout.guard, rollout.last_wave),)
        if wave is not None
    ]
    return min(opened, default=None)


def _seal(context: Context, environment: str, day: date) -> bool:
    start = context.clock.wall_at(day_start(day))
    end = context.clock.wall_at(day_start(day + timedelta(days=1)))
    now = context.clock.wall_ns() / NANOSECONDS
    outage = context.jobs.longest_outage(environment, start, end, now=now)
    return context.evidence.seal(
        environment, day, at=context.clock.now(), longest_outage_seconds=outage
    )
