"""Owner-days made from counters, which do not know which prompt they are about.

A prompt over the first midnight, or of a process that was not up when it began, has its end alone
on these days. It counts as started, as it does by events.
"""

import numpy as np
import pandas as pd

from analysis.cells import OWNER, Counts, counts_of
from analysis.frames import COHORT, DAY

_ENDED, _UNRELIABLE = "ended", "unreliable"
# What tells the rows of an owner apart, so that their order changes nothing.
_ORDER = (OWNER, DAY, COHORT, "version", "mode")


def whole_prompts(rows: pd.DataFrame) -> pd.DataFrame:
    """Return checked rows in which no owner ends, or disrupts, more prompts than it started.

    Without a column `ended` nothing tells which prompts began elsewhere, and rows stay as they are.
    """
    if _ENDED not in rows.columns:
        return rows
    rows = rows.assign(**{_ENDED: counts_of(rows, _ENDED)})
    rows = rows.sort_values([name for name in _ORDER if name in rows.columns], kind="stable")
    started, ended = rows["started"].to_numpy(), rows[_ENDED].to_numpy()
    disrupted = rows["disrupted"].to_numpy()
    begun = started + _spread(rows, ended - started, np.maximum(ended - started, 0))
    too_many = _spread(rows, disrupted - begun, disrupted)
    whole = rows.assign(started=begun, disrupted=disrupted - too_many)
    if _UNRELIABLE in rows.columns:
        whole[_UNRELIABLE] = np.minimum(counts_of(rows, _UNRELIABLE), begun)
    return whole


def _spread(rows: pd.DataFrame, surplus: Counts, room: Counts) -> Counts:
    """Spread each owner's surplus, where it sums to more than 0, over its rows: the first first."""
    both = pd.DataFrame({"surplus": surplus, "room": room}, dtype=np.int64)
    by_owner = both.groupby(rows[OWNER].to_numpy(dtype=object))
    total = by_owner["surplus"].transform("sum").to_numpy()
    before = by_owner["room"].cumsum().to_numpy() - room
    return np.clip(total - before, 0, room)
