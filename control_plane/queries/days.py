"""The days of a wave: which are complete, and why the others do not count."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from control_plane.context import Context
from reducer.rollout.days import (
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
from reducer.rollout.state import EvidenceSource, Wave

NOT_OVER = "it is not over yet"


@dataclass(frozen=True, slots=True)
class WaveDayView:
    """One UTC day of a wave; `reason` says why it does not count (yet).

    `notes` say what is not exact of it, complete or not. `is_off_contract` says that the reason is
    its records, too few of which met the telemetry contract.
    """

    day: date
    is_complete: bool
    reason: str | None
    notes: tuple[DayNote, ...] = ()
    is_off_contract: bool = False

    @property
    def is_running(self) -> bool:
        """Whether the day is not over, which is no fault of it."""
        return self.reason == NOT_OVER


def wave_days(
    context: Context,
    environment: str,
    wave: Wave,
    source: EvidenceSource = EvidenceSource.EVENTS,
    *,
    newest: int | None = None,
) -> tuple[WaveDayView, ...]:
    """Return every day the wave has touched so far, oldest first, as the source shows them.

    `newest` leaves all but that many of the last ones out, for showing. A gate is evaluated on the
    first complete days, so for that nothing may be left out.
    """
    now = context.clock.now()
    # What was closed at midnight has not touched the day that began then.
    last = now if wave.closed_at is None else min(now, wave.closed_at - timedelta.resolution)
    first_day = wave.opened_at.date()
    if newest is not None:
        first_day = max(first_day, last.date() - timedelta(days=newest - 1))
    days = [first_day + timedelta(days=at) for at in range((last.date() - first_day).days + 1)]
    looked_at = [first_day - timedelta(days=back) for back in range(COMPARED_DAYS, 0, -1)]
    sealed = {
        each.day: each
        for each in context.evidence.sealed_days(environment, [*looked_at, *days], source)
    }
    floors = floors_of(context, environment, source)
    return tuple(_view(day, wave, sealed, now=now, floors=floors) for day in days)


def floors_of(context: Context, environment: str, source: EvidenceSource) -> DayFloors:
    """Return what the environment's policy asks of a day as the source shows it."""
    policy = context.policies.of(environment)
    is_of_events = source is EvidenceSource.EVENTS
    return DayFloors(policy.contract_floor, policy.coverage_floor if is_of_events else None)


def complete_days(days: Sequence[WaveDayView]) -> tuple[date, ...]:
    """Return the complete ones, in order."""
    return tuple(each.day for each in days if each.is_complete)


def _view(
    day: date,
    wave: Wave,
    sealed: dict[date, SealedDay],
    *,
    now: datetime,
    floors: DayFloors,
) -> WaveDayView:
    reason = _reason(day, wave, sealed, now=now, floors=floors)
    held = sealed.get(day)
    if held is None:
        return WaveDayView(day, is_complete=reason is None, reason=reason)
    is_off = reason is not None and reason == why_off_contract(held, floors.contract)
    return WaveDayView(
        day,
        is_complete=reason is None,
        reason=reason,
        notes=day_notes(held),
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
    previous = [each for each in sealed.values() if each.day < day]
    return why_incomplete(sealed.get(day), previous, floors=floors)
