"""What the owners did on the days before the wave: the covariates of CUPED, and of nothing else."""

import datetime as dt
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from analysis.cells import OWNER, refuse_cells, require_columns
from analysis.frames import (
    COUNTS,
    block_names,
    checked_counts,
    refuse_contradictions,
    sorted_by_owner,
)
from analysis.histograms import OwnerHistograms
from reducer.vocabulary import Metric

COMPARABLE = "is_comparable"
# With fewer complete days before the wave the test does without CUPED.
LEAST_DAYS = 7


@dataclass(frozen=True, slots=True, eq=False)
class Baseline:
    """Owner totals over complete days before the wave, under the wave's own contract.

    `owners` has a row per owner with `owner`, the counts of owner totals and `is_comparable`:
    whether the owner was then in the mode that the treated cohort was in. An owner for whom that
    is false counts as new, and so does one without a row. `durations` are those of the same days
    where they were kept. `untold` says in words of which metrics too many prompts of these days
    told nothing (analysis.untold): by them nothing is adjusted or compared. Only what was known
    before the wave may stand here: enforcement can change how much an owner prompts during it.

    Raises:
        ValueError: naming column, row and value where the frame is wrong, and for days that are
            not in order, each once.
    """

    owners: pd.DataFrame
    days: tuple[dt.date, ...]
    durations: OwnerHistograms | None = None
    untold: Mapping[Metric, str] = field(default_factory=dict)

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
        return Baseline(sums, self.days, durations, self.untold)


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
