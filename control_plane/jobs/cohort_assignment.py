"""Cohort assignment: an owner seen in two cohorts counts only in the one of its draw."""

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
import pandas as pd

from guardwave.reducer.rollout.state import REFERENCE, TREATED, Wave


class AssignedRows(NamedTuple):
    """Owner-days with one cohort per owner, and the number of prompts left out for that."""

    rows: pd.DataFrame
    switched: int


def keep_assigned_cohorts(rows: pd.DataFrame, wave: Wave, treated: Collection[str]) -> AssignedRows:
    """Leave out the rows of an owner outside its assigned cohort; `treated` are the drawn owners.

    An owner in only one cohort keeps its rows, because the balance check decides whether that
    cohort is right. The prompts left out are counted as switches, which make the wave invalid.
    """
    assigned = np.where(
        rows["owner"].isin(list(treated)), TREATED[wave.phase].value, REFERENCE[wave.phase].value
    )
    is_assigned = pd.Series(rows["cohort"].to_numpy() == assigned, index=rows.index)
    is_mixed = rows.groupby("owner")["cohort"].transform("nunique").gt(1)
    is_left_out = is_mixed & ~is_assigned
    return AssignedRows(rows[~is_left_out], int(rows.loc[is_left_out, "started"].sum()))
