"""What a plan rests on: the newest complete days of the phase below the planned wave."""

from collections.abc import Sequence
from datetime import date
from typing import NamedTuple

import pandas as pd

from analysis.baseline import COMPARABLE, LEAST_DAYS, Baseline
from analysis.frames import COUNTS, owner_totals
from analysis.placebo import QuietDays
from analysis.untold import shares_of, why_untold_before
from control_plane.context import Context
from control_plane.jobs.concluding import durations_of
from control_plane.jobs.gathering import is_older_than_evidence
from control_plane.jobs.owner_day_table import OwnerDayTable
from control_plane.queries.days import complete_days, wave_days
from control_plane.state import Plan
from control_plane.stores.owner_days import OwnerDay
from reducer.rollout.phases import TREATED
from reducer.rollout.state import Rollout, Wave
from reducer.vocabulary import Gate, Mode


class Ground(NamedTuple):
    """A wave one phase below, its newest complete days, and their owner-days in its mode."""

    wave: Wave
    days: tuple[date, ...]
    rows: Sequence[OwnerDay]

    def quiet_days(self, count: int) -> QuietDays:
        """Return the last `count` days, and the week before them for CUPED where there is one."""
        chosen, before = self.days[-count:], self.days[:-count][-LEAST_DAYS:]
        table, rows = self._on(chosen)
        baseline = None
        if len(before) == LEAST_DAYS:
            earlier, earlier_rows = self._on(before)
            totals = earlier_rows.groupby("owner", as_index=False)[list(COUNTS)].sum()
            durations = durations_of(earlier, earlier_rows)
            baseline = Baseline(
                totals.assign(**{COMPARABLE: True}),
                before,
                durations,
                why_untold_before(shares_of(earlier_rows, durations)),
            )
        return QuietDays(owner_totals(rows), count, durations_of(table, rows), baseline)

    def _on(self, days: Sequence[date]) -> tuple[OwnerDayTable, pd.DataFrame]:
        table = OwnerDayTable.of([row for row in self.rows if row.started and row.day in days])
        return table, table.frame()


def find_ground(context: Context, rollout: Rollout, plan: Plan) -> Ground | None:
    """Return what a plan rests on; None where no wave of the phase below has the present pin."""
    phase = Mode.SHADOW if plan.gate is Gate.WARN else Mode.WARN
    for number in range(rollout.last_wave, 0, -1):
        wave = context.environments.wave(rollout.environment, rollout.guard, number)
        if wave is None or wave.phase is not phase:
            continue
        if wave.version_pin != rollout.version_pin or is_older_than_evidence(context, wave):
            return None
        complete = complete_days(
            wave_days(context, rollout.environment, wave, rollout.evidence_source)
        )
        days = complete[-(max(plan.days) + LEAST_DAYS) :]
        rows = context.evidence.owner_days(
            rollout.environment, rollout.guard, number, days, source=rollout.evidence_source
        )
        return Ground(wave, days, [row for row in rows if row.cohort is TREATED[phase]])
    return None
