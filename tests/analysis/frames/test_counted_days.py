"""Owner-days from counters: a frame of them has the sums that the store gives a gate."""

import datetime as dt
from dataclasses import MISSING, fields

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from guardwave import analysis
from guardwave.analysis.offline.notebook import whole_prompts
from guardwave.control_plane.stores.evidence.owner_days import OwnerDay
from guardwave.control_plane.stores.evidence.owner_days import whole_prompts as stored
from guardwave.reducer.rollout.state import EvidenceSource
from guardwave.reducer.vocabulary import Cohort
from tests.support.frames.samples import over_days, simulated_totals

COLUMNS = [field.name for field in fields(OwnerDay)]
NEEDED = [field.name for field in fields(OwnerDay) if field.default is MISSING]
MENDED = ["started", "disrupted"]


@st.composite
def counted(draw: st.DrawFn) -> OwnerDay:
    """Draw an owner-day of counters; in some of them more prompts ended than started."""
    completed, cancelled = draw(st.integers(0, 4)), draw(st.integers(0, 2))
    own = {
        "owner": draw(st.sampled_from("ab")),
        "day": dt.date(2026, 11, 20) + dt.timedelta(days=draw(st.integers(0, 6))),
        "cohort": Cohort.CONTROL,
        "version": "1",
        "started": draw(st.integers(0, 6)),
        "completed": completed,
        "cancelled": cancelled,
        "ended": completed + cancelled,
        "disrupted": draw(st.integers(0, 7)),
        "unreliable": draw(st.integers(0, 9)),
        "source": EvidenceSource.COUNTERS,
    }
    zeros = {name: 0 for name in NEEDED if name not in own}
    return OwnerDay(**zeros, **own)  # type: ignore[arg-type]  # by field name


rows_of_owners = st.lists(counted(), unique_by=lambda row: (row.owner, row.day), max_size=14)


def frame_of(rows: list[OwnerDay] | tuple[OwnerDay, ...]) -> pd.DataFrame:
    return pd.DataFrame([[getattr(row, name) for name in COLUMNS] for row in rows], columns=COLUMNS)


@given(rows_of_owners)
def test_sums_are_those_that_a_gate_would_have(rows):
    ordered = sorted(rows, key=lambda row: (row.owner, row.day))
    columns = [*MENDED, "unreliable"]

    ours = whole_prompts(frame_of(ordered)).groupby("owner")[columns].sum()
    theirs = frame_of(stored(ordered)).groupby("owner")[columns].sum()

    assert ours.to_dict() == theirs.to_dict()


@given(rows_of_owners, st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing(rows, source):
    shuffled = source.sample(rows, len(rows))
    frames = (whole_prompts(frame_of(own)) for own in (rows, shuffled))
    one, other = (frame[["owner", "day", *MENDED]].to_numpy().tolist() for frame in frames)
    assert one == other


def test_a_prompt_over_the_first_midnight_counts_as_started():
    frame = over_days(simulated_totals(treated=2, control=4), 7)
    frame = frame.assign(source="counters", ended=frame["started"] + 1)
    owners = analysis.evidence_of(frame).owners
    started = frame.groupby("owner")["started"].sum() + 7
    assert owners.set_index("owner")["started"].to_dict() == started.to_dict()


def test_without_the_column_ended_rows_stay_as_they_are():
    frame = over_days(simulated_totals(treated=1, control=1), 2)
    pd.testing.assert_frame_equal(whole_prompts(frame), frame)
