"""Baseline: what the owners did before the wave, and its days matched with the wave's by weekday.

The first half are the covariates of CUPED. The second half is for a wave without a holdback, whose
owners are compared with themselves: a difference of weekdays must not look like an effect.
"""

import datetime as dt
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd

from guardwave.analysis.frames.column_checks import OWNER, refuse_cells, require_columns
from guardwave.analysis.frames.histograms import Durations, OwnerHistograms
from guardwave.analysis.frames.owner_totals import (
    COUNTS,
    block_names,
    checked_counts,
    refuse_contradictions,
    sorted_by_owner,
)
from guardwave.reducer.vocabulary import Metric

COMPARABLE = "is_comparable"
# With fewer complete days before the wave the test does without CUPED.
LEAST_DAYS = 7
# With fewer weekdays in common the two periods are no longer a week each.
LEAST_WEEKDAYS = 5
WEEK = range(7)


@dataclass(frozen=True, slots=True, eq=False)
class Baseline:
    """Owner totals over complete days before the wave, under the wave's own contract.

    `owners` has a row per owner with `owner`, the counts of owner totals and `is_comparable`:
    whether the owner was then in the mode that the treated cohort was in. An owner for whom that
    is false counts as new, and so does one without a row. `durations` are those of the same days
    where they were stored. `missing_reasons` has a sentence for each metric that too many prompts
    of these days did not report (`missing_values`): such a metric is neither adjusted nor compared.
    Only what was known before the wave may stand here, since enforcement can change how much an
    owner prompts during it.

    Raises:
        ValueError: naming column, row and value where the frame is wrong, and for days that are
            not in order, each once.
    """

    owners: pd.DataFrame
    days: tuple[dt.date, ...]
    durations: OwnerHistograms | None = None
    missing_reasons: Mapping[Metric, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if any(later <= earlier for earlier, later in itertools.pairwise(self.days)):
            raise ValueError("the days of a baseline must be in order, each once")
        object.__setattr__(self, "owners", _checked(self.owners))

    @property
    def is_long_enough(self) -> bool:
        """Whether there are as many complete days as CUPED needs."""
        return len(self.days) >= LEAST_DAYS

    def by_block(self, blocks: Mapping[str, str]) -> "Baseline":
        """Sum the owners of each block; one incomparable owner makes its block count as new.

        Raises:
            ValueError: for an owner that `blocks` does not name.
        """
        renamed = self.owners.assign(**{OWNER: block_names(self.owners[OWNER], blocks)})
        grouped = renamed.groupby(OWNER, as_index=False, sort=True)
        sums = grouped.agg({**dict.fromkeys(COUNTS, "sum"), COMPARABLE: "all"})
        durations = None if self.durations is None else self.durations.by_block(blocks)
        return Baseline(sums, self.days, durations, self.missing_reasons)


class MatchedDays(NamedTuple):
    """Days of the wave, and days before it with the same weekdays in the same proportion."""

    after: tuple[dt.date, ...]
    before: tuple[dt.date, ...]

    @property
    def weekdays(self) -> int:
        """How many weekdays are compared."""
        return len({day.weekday() for day in self.before})


@dataclass(frozen=True, slots=True, eq=False)
class MatchedEvidence:
    """Owners and durations of the matched days, where these are not all days of both sides.

    `owners` are owner totals over `days.after`, and `baseline` is over exactly `days.before`.
    `missing_reasons` has a sentence for each metric that too many prompts of `days.after` did not
    report.
    """

    days: MatchedDays
    owners: pd.DataFrame
    durations: Durations | None
    baseline: Baseline
    missing_reasons: Mapping[Metric, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.baseline.days != self.days.before:
            raise ValueError(
                f"the baseline is over {len(self.baseline.days)} days and not over the "
                f"{len(self.days.before)} matched ones; give the days of the same weekdays"
            )


def matched_days(after: Sequence[dt.date], before: Sequence[dt.date]) -> MatchedDays | None:
    """Match days by weekday, the earliest first; None with fewer than five weekdays in common.

    A wave of two weeks has each weekday twice for every one before it, so that both sides give
    their weekdays the same weight. A weekday that is short on either side is left out of both.
    """
    ratio = max(1, round(len(after) / len(before))) if before else 1
    for times in dict.fromkeys((ratio, 1)):
        days = _matched(after, before, times)
        if days.weekdays >= LEAST_WEEKDAYS:
            return days
    return None


def _checked(owners: pd.DataFrame) -> pd.DataFrame:
    require_columns(owners, (OWNER, *COUNTS, COMPARABLE))
    flags = owners[COMPARABLE].to_numpy(dtype=object)
    is_flag = np.fromiter(
        (isinstance(flag, bool | np.bool_) for flag in flags), np.bool_, len(flags)
    )
    refuse_cells(owners, ~is_flag, COMPARABLE, why="is no flag; give true or false")
    checked = checked_counts(owners)
    refuse_contradictions(checked)
    checked[COMPARABLE] = flags.astype(np.bool_)
    is_repeated = checked[OWNER].duplicated().to_numpy()
    refuse_cells(checked, is_repeated, OWNER, why="is there twice; an owner has one row")
    return sorted_by_owner(checked)


def _matched(after: Sequence[dt.date], before: Sequence[dt.date], times: int) -> MatchedDays:
    kept: tuple[list[dt.date], list[dt.date]] = ([], [])
    for weekday in WEEK:
        later, earlier = (_on_weekday(days, weekday) for days in (after, before))
        pairs = min(len(later) // times, len(earlier))
        kept[0].extend(later[: pairs * times])
        kept[1].extend(earlier[:pairs])
    return MatchedDays(tuple(sorted(kept[0])), tuple(sorted(kept[1])))


def _on_weekday(days: Iterable[dt.date], weekday: int) -> list[dt.date]:
    return sorted(day for day in days if day.weekday() == weekday)
