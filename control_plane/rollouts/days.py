"""Days of a wave: the complete ones, and the reasons why the others do not count."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from guardwave.control_plane.rollouts.context import Context
from guardwave.reducer.rollout.days import (
    COMPARED_DAYS,
    DayFloors,
    DayNote,
    SealedDay,
    day_notes,
    day_start,
    is_whole,
    why_incomplete,
    why_off_contract,
)
from guardwave.reducer.rollout.state import EvidenceSource, Wave

NOT_OVER = "it is not over yet"


@dataclass(frozen=True, slots=True)
class WaveDayView:
    """One UTC day of a wave; `reason` says why it does not count (yet).

    `notes` name inexact counts of the day, complete or not. `is_off_contract` means that too few of
    its records met the telemetry contract.
    """

    day: date
    is_complete: bool
    reason: str | None
    notes: tuple[DayNote, ...] = ()
    is_off_contract: bool = False

    @property
    def is_running(self) -> bool:
        """Whether the day is not over yet."""
        return self.reason == NOT_OVER


def wave_days(
    context: Context,
    environment: str,
    wave: Wave,
    source: EvidenceSource = EvidenceSource.EVENTS,
    *,
    newest: int | None = None,
) -> tuple[WaveDayView, ...]:
    """Return every day of the wave so far, oldest first, by this source of evidence.

    `newest` limits the answer to so many of the last days, for pages. A gate uses the first
    complete days and needs all of them.
    """
    now = context.clock.now()
    # A wave that was closed at midnight has no part of the day that began then.
    last = now if wave.closed_at is None else min(now, wave.closed_at - timedelta.resolution)
    first_day = wave.opened_at.date()
    if newest is not None:
        first_day = max(first_day, last.date() - timedelta(days=newest - 1))
    days = [first_day + timedelta(days=at) for at in range((last.date() - first_day).days + 1)]
    earlier = [first_day - timedelta(days=back) for back in range(COMPARED_DAYS, 0, -1)]
    sealed = {
        day.day: day for day in context.evidence.sealed_days(environment, [*earlier, *days], source)
    }
    floors = floors_of(context, environment, source)
    return tuple(_view(day, wave, sealed, now=now, floors=floors) for day in days)


def floors_of(context: Context, environment: str, source: EvidenceSource) -> DayFloors:
    """Return the floors that the environment's policy sets for a day of this source."""
    policy = context.policies.of(environment)
    is_of_events = source is EvidenceSource.EVENTS
    return DayFloors(policy.contract_floor, policy.coverage_floor if is_of_events else None)


def complete_days(days: Sequence[WaveDayView]) -> tuple[date, ...]:
    """Return the complete days, in order."""
    return tuple(day.day for day in days if day.is_complete)


def _view(
    day: date,
    wave: Wave,
    sealed: dict[date, SealedDay],
    *,
    now: datetime,
    floors: DayFloors,
) -> WaveDayView:
    reason = _reason(day, wave, sealed, now=now, floors=floors)
    sealed_day = sealed.get(day)
    if sealed_day is None:
        return WaveDayView(day, is_complete=reason is None, reason=reason)
    is_off = reason is not None and reason == why_off_contract(sealed_day, floors.contract)
    return WaveDayView(
        day,
        is_complete=reason is None,
        reason=reason,
        notes=day_notes(sealed_day),
        is_off_contract=is_off,
    )


def _reason(
    day: date,
    wave: Wave,
    sealed: dict[date, SealedDay],
    *,
    now: datetime,
    floors: DayFloors,
) -> str | None:
    if day_start(day) < wave.opened_at:
        return "the wave began during it"
    if not is_whole(day, wave.opened_at, wave.closed_at):
        return "the wave was closed during it"
    if now < day_start(day + timedelta(days=1)):
        return NOT_OVER
    previous = [other for other in sealed.values() if other.day < day]
    return why_incomplete(sealed.get(day), previous, floors=floors)
