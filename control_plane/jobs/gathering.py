"""Gathers from the store all that the verdict on a wave rests on."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import NamedTuple

from analysis.evidence import Share, WaveDay
from analysis.rerandomisation import DrawKey
from control_plane import __version__
from control_plane.clock import NANOSECONDS
from control_plane.commands.rollback import is_full
from control_plane.context import Context
from control_plane.jobs.bundles import BaselineDays, Gathered
from control_plane.jobs.owner_day_table import OwnerDayTable, coarsest_scale
from control_plane.queries.days import WaveDayView, complete_days, wave_days
from control_plane.stores.evidence import KEPT_DAYS
from control_plane.stores.owner_days import OwnerDay
from reducer.rollout.days import notes_touching
from reducer.rollout.policy import GatePolicy
from reducer.rollout.state import Rollout, Wave
from reducer.vocabulary import Gate, Invariant, Mode

# As many complete days of the phase below as a week has weekdays.
BASELINE_DAYS = 7


def look_of(wave: Wave, complete: int) -> int:
    """Return the declared look that is due: the largest one reached, before that the first."""
    return max((look for look in wave.looks if look <= complete), default=wave.looks[0])


def policy_at(policy: GatePolicy, wave: Wave) -> GatePolicy:
    """Return the policy with alpha split over the wave's looks (statistics: K looks at alpha/K)."""
    return per_look(policy, len(wave.looks))


def per_look(policy: GatePolicy, looks: int) -> GatePolicy:
    """Return the policy with the part of alpha that one of so many looks has."""
    return replace(policy, alpha=policy.alpha / looks)


def is_older_than_evidence(context: Context, wave: Wave) -> bool:
    """Whether evidence of the wave's first days may be gone, so that other days would be its first.

    Evidence is kept in real time, while a demo's days pass in seconds.
    """
    age_seconds = context.clock.wall_ns() / NANOSECONDS - context.clock.wall_at(wave.opened_at)
    return age_seconds > timedelta(days=KEPT_DAYS).total_seconds()


class Found(NamedTuple):
    """What was gathered, and the owner-days of the look's days as the store holds them."""

    gathered: Gathered
    rows: Sequence[OwnerDay]


def gather(
    context: Context, rollout: Rollout, wave: Wave, *, gate: Gate, declared: int | None = None
) -> Found:
    """Read from the store all that the gate of this wave is judged by.

    `declared` says how many complete days to use, None: those of the declared look that is due.
    """
    environment, guard, source = rollout.environment, rollout.guard, rollout.evidence_source
    days = wave_days(context, environment, wave, source)
    complete = complete_days(days)
    declared = look_of(wave, len(complete)) if declared is None else declared
    used = complete[:declared]
    rows = context.evidence.owner_days(environment, guard, wave.number, used, source=source)
    before = _rows_before(context, rollout, wave)
    scale = coarsest_scale((*rows, *(() if before is None else before.rows)))
    roster = context.environments.roster(environment, guard, wave) if wave.roster_size else None
    gathered = Gathered(
        environment=environment,
        guard=guard,
        gate=gate,
        # An imported wave is closed to further days. It was open where its days were lived.
        wave=replace(wave, closed_at=None),
        declared_days=declared,
        days=tuple(
            WaveDay(each.day, each.is_complete, each.reason, notes_touching(source, each.notes))
            for each in days
            if not each.is_running
        ),
        owner_days=OwnerDayTable.of(rows, scale),
        contract=_contract(context, rollout, days),
        violations=_violations(context, rollout, wave, switched=sum(row.switched for row in rows)),
        roster=() if roster is None else roster.pseudonyms,
        baseline=None if before is None else before.table(scale),
        policy=policy_at(context.policies.of(environment), wave),
        policy_hash=context.policies.hash,
        code_version=__version__,
        seed=str(DrawKey(environment, guard, wave.number).seed),
        source=source,
        is_latch_full=_is_latch_full(context, environment),
    )
    return Found(gathered, rows)


class _Before(NamedTuple):
    """The days before a wave, and their owner-days as the store holds them."""

    wave: int
    phase: Mode
    days: tuple[date, ...]
    rows: Sequence[OwnerDay]

    def table(self, scale: int) -> BaselineDays:
        return BaselineDays(self.wave, self.phase, self.days, OwnerDayTable.of(self.rows, scale))


def _rows_before(context: Context, rollout: Rollout, wave: Wave) -> _Before | None:
    """Return the last complete week of the newest wave one phase below, under the same pin.

    An enforce wave that restarts or widens another has no baseline in that one, where enforcement
    already changed what its treated owners did, but in the warn wave before.
    """
    if wave.phase.rank <= Mode.SHADOW.rank:
        return None
    source = rollout.evidence_source
    for number in range(wave.number - 1, 0, -1):
        below = context.environments.wave(rollout.environment, rollout.guard, number)
        if below is None or below.phase.rank != wave.phase.rank - 1:
            continue
        if below.version_pin != wave.version_pin or is_older_than_evidence(context, below):
            return None
        days = complete_days(wave_days(context, rollout.environment, below, source))[
            -BASELINE_DAYS:
        ]
        if len(days) < BASELINE_DAYS:
            return None
        rows = context.evidence.owner_days(
            rollout.environment, rollout.guard, number, days, source=source
        )
        return _Before(number, below.phase, days, rows)
    return None


def _contract(context: Context, rollout: Rollout, days: Sequence[WaveDayView]) -> Share | None:
    """Return the share of the last complete day, or of a later one that it keeps from counting.

    Telemetry that breaks after the days used is not seen in them.
    """
    asked = [each.day for each in days if each.is_complete or each.is_off_contract]
    if not asked:
        return None
    last = context.evidence.sealed_days(rollout.environment, asked[-1:], rollout.evidence_source)
    if not last or last[0].records == 0:
        return None
    return Share(last[0].conforming, last[0].records)


def _is_latch_full(context: Context, environment: str) -> bool:
    """Whether nothing is recorded of further violations; a release begins new waves."""
    held = context.environments.load(environment)
    return held is not None and held.latch is not None and is_full(held.latch)


def _violations(
    context: Context, rollout: Rollout, wave: Wave, *, switched: int
) -> Mapping[Invariant, int]:
    """Count every violation of the environment since the wave opened.

    So many prompts of this guard that switched are told by the owner-days: those that were
    recorded as violations, too, are not counted again.
    """
    found = context.incidents.violations(rollout.environment)
    since = [each for each in found if each.at > wave.opened_at]
    counted = Counter(each.invariant for each in since)
    recorded = sum(
        each.guard == rollout.guard and each.invariant is Invariant.TREATMENT_SWITCHED
        for each in since
    )
    counted[Invariant.TREATMENT_SWITCHED] -= min(recorded, switched)
    return dict(sorted((+counted).items()))
