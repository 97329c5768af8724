"""Durations of owner-days: the API's columns and Parquet's, against those of a gate."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from guardwave import analysis
from guardwave.analysis.frames.histograms import durations_of
from guardwave.control_plane.jobs.bundles import unpack_bundle
from guardwave.control_plane.jobs.conclude import evidence_of
from guardwave.reducer.rollout.state import EvidenceSource

BUNDLE = Path(__file__).parents[3] / "docs" / "example-wave.json.gz"


@pytest.fixture(scope="module")
def gathered():
    return unpack_bundle(BUNDLE.read_bytes()).gathered


@pytest.fixture(scope="module")
def exported(gathered):
    """Return the owner-days of the documented wave with the columns of the evidence API."""
    table = gathered.owner_days
    ends = np.cumsum((0, *table.durations_in))
    pairs = list(zip(table.duration_buckets, table.duration_counts, strict=True))
    lists = [[list(pair) for pair in pairs[a:z]] for a, z in pairwise(ends)]
    return table.frame().assign(
        guard=gathered.guard,
        wave=gathered.wave.number,
        source="events",
        scale=table.scale,
        durations=pd.Series(lists, dtype=object),
    )


def as_parquet(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the same as a Parquet export is read back: lists apart, and arrays."""
    sides = [
        [np.array([pair[side] for pair in pairs], dtype=np.int64) for pairs in frame["durations"]]
        for side in (0, 1)
    ]
    return frame.drop(columns="durations").assign(
        duration_buckets=pd.Series(sides[0], dtype=object),
        duration_counts=pd.Series(sides[1], dtype=object),
    )


@pytest.mark.parametrize(
    "form", [pytest.param(lambda frame: frame, id="API"), pytest.param(as_parquet, id="Parquet")]
)
def test_exported_owner_days_give_the_metrics_of_the_gate(gathered, exported, form):
    theirs = analysis.evaluate(replace(evidence_of(gathered), baseline=None), gathered.policy)

    evidence = analysis.evidence_of(
        form(exported), environment="internal", days=map(str, theirs.days.used)
    )
    ours = analysis.evaluate(evidence, gathered.policy)

    assert ours.metrics == theirs.metrics
    checks = {check.check: check for check in theirs.checks}
    for check in ours.checks:
        if check.check in {"dwell", "coverage", "exposure", "stop_consistency"}:
            assert check == checks[check.check]
    assert (ours.lost, ours.days) == (theirs.lost, theirs.days)


def of_rows(*rows: tuple[str, object, object]) -> pd.DataFrame:
    frame = pd.DataFrame({"owner": [row[0] for row in rows], "scale": [row[1] for row in rows]})
    return frame.assign(durations=pd.Series([row[2] for row in rows], dtype=object))


def test_rows_of_two_scales_are_merged_to_the_coarser():
    found = durations_of(
        of_rows(("b", 7, [[13, 2]]), ("a", 6, [[6, 1]]), ("b", 6, [[6, 1]])), EvidenceSource.EVENTS
    )
    assert found is not None
    assert (found.owners, found.scale) == (("a", "b"), 6)
    assert (found.buckets.tolist(), found.counts.tolist()) == ([6, 6], [1, 3])


def test_seconds_of_counters_become_milliseconds():
    found = durations_of(of_rows(("a", 3, [[0, 4]])), EvidenceSource.COUNTERS)
    assert found is not None
    # A second is the upper edge of bucket -1.
    assert found.upper_edge(int(found.buckets[0]) - 1) == pytest.approx(1000, rel=0.05)


def test_rows_without_a_duration_have_no_histogram():
    assert durations_of(of_rows(("a", 7, []), ("b", 7, ())), EvidenceSource.EVENTS) is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(
            {"durations": None}, "'durations', row 1: None is no list of .bucket, count.", id="none"
        ),
        pytest.param({"durations": "[[75, 1]]"}, r"'\[\[75, 1\]\]' is no list", id="text"),
        pytest.param({"durations": [75, 1]}, r"row 1: \[75, 1\] is no list", id="no pairs"),
        pytest.param({"durations": [[75, 1, 2]]}, "is no list of", id="three of them"),
        pytest.param({"durations": [[7.5, 1]]}, "row 1: 7.5 is no bucket", id="part of a bucket"),
        pytest.param({"durations": [[75, -1]]}, "row 1: -1 is no count", id="negative"),
        pytest.param({"scale": 21}, "'scale', row 1: 21 is no scale; it must be", id="scale"),
        pytest.param({"scale": None}, "'scale', row 1: (None|nan) is no scale", id="no scale"),
    ],
)
def test_durations_that_cannot_be_read_are_refused_by_their_row(change, words):
    row = {"scale": 7, "durations": [[75, 1]], **change}
    frame = of_rows(("a", 7, [[75, 1]]), ("b", row["scale"], row["durations"]))
    with pytest.raises(ValueError, match=words):
        durations_of(frame, EvidenceSource.EVENTS)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        pytest.param({"durations": [[]]}, "'durations' and lacks the column 'scale'", id="scale"),
        pytest.param(
            {"scale": 7, "duration_buckets": [[]]},
            "lacks the column 'duration_counts'",
            id="counts",
        ),
        pytest.param(
            {"scale": 7, "duration_buckets": [[1]], "duration_counts": [[]]},
            r"'duration_counts', row 0: \[\] has not as many entries as duration_buckets",
            id="uneven",
        ),
        pytest.param(
            {"scale": 7, "duration_buckets": [1], "duration_counts": [[]]},
            "'duration_buckets', row 0: 1 is no list",
            id="no list",
        ),
    ],
)
def test_columns_of_durations_go_together(columns, words):
    with pytest.raises(ValueError, match=words):
        durations_of(pd.DataFrame({"owner": ["a"], **columns}), EvidenceSource.EVENTS)
