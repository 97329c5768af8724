"""Gathered evidence: all that the verdict on a wave rests on, read from the store."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import NamedTuple

from guardwave import __version__
from guardwave.analysis.frames import Share, WaveDay
from guardwave.analysis.inference import DrawKey
from guardwave.control_plane.commands.rollback import is_full
from guardwave.control_plane.core.clock import NANOSECONDS
from guardwave.control_plane.jobs.bundles import BaselineDays, GatheredEvidence
from guardwave.control_plane.jobs.owner_day_table import OwnerDayTable, coarsest_scale
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.rollouts.days import WaveDayView, complete_days, wave_days
from guardwave.control_plane.stores.evidence.owner_days import OwnerDay
from guardwave.control_plane.stores.evidence.store import KEPT_DAYS
from guardwave.reducer.rollout.days import notes_touching
from guardwave.reducer.rollout.policy import GatePolicy
from guardwave.reducer.rollout.state import Rollout, Wave
from guardwave.reducer.vocabulary import Gate, Invariant, Mode

# As many complete days of the phase below as a week has weekdays.
BASELINE_DAYS = 7


def look_of(wave: Wave, complete: int) -> int:
    """Return the declared look that is due: the largest one reached, or the first."""
    return max((look for look in wave.looks if look <= complete), default=wave.looks[0])


def policy_at(policy: GatePolicy, wave: Wave) -> GatePolicy:
    """Return the policy with alpha split over the wave's looks (K looks at alpha/K)."""
    return per_look(policy, len(wave.looks))


def per_look(policy: GatePolicy, looks: int) -> GatePolicy:
    """Return the policy with the share of alpha that one of so many looks has."""
    return replace(policy, alpha=policy.alpha / looks)


def is_older_than_evidence(context: Context, wave: Wave) -> bool:
    """Whether evidence of the wave's first days may be deleted, so that others would seem first.

    Evidence is kept by wall time, while a demo's days pass in seconds.
    """
    age_seconds = context.clock.wall_ns() / NANOSECONDS - context.clock.wall_at(wave.opened_at)
    return age_seconds > timedelta(days=KEPT_DAYS).total_seconds()


class GatherResult(NamedTuple):
    """The gathered evidence, and the stored owner-days of the look's days."""

    gathered: GatheredEvidence
    rows: Sequence[OwnerDay]


def gather(
    context: Context, rollout: Rollout, wave: Wave, *, gate: Gate, declared: int | None = None
) -> GatherResult:
    """Read from the store all that the gate of this wave is judged by.

    `declared` is the number of complete days to use; None means those of the look that is due.
    """
    environment, guard, source = rollout.environment, rollout.guard, rollout.evidence_source
    days = wave_days(context, environment, wave, source)
    complete = complete_days(days)
    declared = look_of(wave, len(complete)) if declared is None else declared
    used = complete[:declared]
    rows = context.evidence.owner_days(environment, guard, wave.number, used, source=source)
    before = _baseline_rows(context, rollout, wave)
    scale = coarsest_scale((*rows, *(() if before is None else before.rows)))
    roster = context.environments.roster(environment, guard, wave) if wave.roster_size else None
    gathered = GatheredEvidence(
        environment=environment,
        guard=guard,
        gate=gate,
        # An import closes a wave to further days; where its days happened it was open.
        wave=replace(wave, closed_at=None),
        declared_days=declared,
        days=tuple(
            WaveDay(day.day, day.is_complete, day.reason, notes_touching(source, day.notes))
            for day in days
            if not day.is_running
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
    return GatherResult(gathered, rows)


class _BaselineRows(NamedTuple):
    """The baseline days of a wave, and their stored owner-days."""

    wave: int
    phase: Mode
    days: tuple[date, ...]
    rows: Sequence[OwnerDay]

    def table(self, scale: int) -> BaselineDays:
        return BaselineDays(self.wave, self.phase, self.days, OwnerDayTable.of(self.rows, scale))


def _baseline_rows(context: Context, rollout: Rollout, wave: Wave) -> _BaselineRows | None:
    """Return the last complete week of the newest wave one phase below, under the same pin.

    An enforce wave that restarts or widens another takes its baseline from the warn wave before:
    in the earlier enforce wave, enforcement already changed its treated owners.
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
        return _BaselineRows(number, below.phase, days, rows)
    return None


def _contract(context: Context, rollout: Rollout, days: Sequence[WaveDayView]) -> Share | None:
    """Return the contract share of the last day that is complete or off contract.

    Telemetry may break after the days that the gate uses.
    """
    days_with_share = [day.day for day in days if day.is_complete or day.is_off_contract]
    if not days_with_share:
        return None
    last = context.evidence.sealed_days(
        rollout.environment, days_with_share[-1:], rollout.evidence_source
    )
    if not last or last[0].records == 0:
        return None
    return Share(last[0].conforming, last[0].records)


def _is_latch_full(context: Context, environment: str) -> bool:
    """Whether further violations are not recorded; a release opens new waves."""
    stored = context.environments.load(environment)
    return stored is not None and stored.latch is not None and is_full(stored.latch)


def _violations(
    context: Context, rollout: Rollout, wave: Wave, *, switched: int
) -> Mapping[Invariant, int]:
    """Count the violations of the environment since the wave opened, by invariant.

    The owner-days report `switched` prompts of this guard; those that were recorded as violations,
    too, are counted once.
    """
    found = context.incidents.violations(rollout.environment)
    since = [violation for violation in found if violation.at > wave.opened_at]
    counts = Counter(violation.invariant for violation in since)
    recorded = sum(
        violation.guard == rollout.guard and violation.invariant is Invariant.TREATMENT_SWITCHED
        for violation in since
    )
    counts[Invariant.TREATMENT_SWITCHED] -= min(recorded, switched)
    return dict(sorted((+counts).items()))
