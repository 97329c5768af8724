"""Owners whose prompts ran in two cohorts of a wave: each is kept in the one the draw gave it."""

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
import pandas as pd

from reducer.rollout.phases import REFERENCE, TREATED
from reducer.rollout.state import Wave


class Drawn(NamedTuple):
    """Owner-days with one cohort per owner, and how many prompts of other cohorts were left out."""

    rows: pd.DataFrame
    switched: int


def in_drawn_cohorts(rows: pd.DataFrame, wave: Wave, treated: Collection[str]) -> Drawn:
    """Leave out what an owner did in another cohort than its own; `treated` are those drawn.

    An owner in one cohort alone keeps its rows, whichever that is: the balance check asks whether
    it is the right one. Prompts left out are counted, and the same check calls the wave not valid.
    """
    own = np.where(
        rows["owner"].isin(list(treated)), TREATED[wave.phase].value, REFERENCE[wave.phase].value
    )
    is_own = pd.Series(rows["cohort"].to_numpy() == own, index=rows.index)
    is_mixed = rows.groupby("owner")["cohort"].transform("nunique").gt(1)
    is_left_out = is_mixed & ~is_own
    return Drawn(rows[~is_left_out], int(rows.loc[is_left_out, "started"].sum()))
