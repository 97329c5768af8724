"""Durations and baselines for tests: of the reference datasets and of simulated owners."""

import datetime as dt
import re

import numpy as np
import pandas as pd

from guardwave.analysis.frames.baseline import COMPARABLE, Baseline
from guardwave.analysis.frames.histograms import OwnerHistograms
from guardwave.analysis.frames.owner_totals import COUNTS
from tests.support.frames.samples import REFERENCES

SEVEN_DAYS = tuple(dt.date(2026, 11, 1) + dt.timedelta(days=place) for place in range(7))


def reference_durations(dataset: str) -> OwnerHistograms:
    """Return the histograms of a reference dataset."""
    table = pd.read_csv(REFERENCES / f"{dataset}.csv")
    (scale,) = table["latency_scale"].dropna().unique()
    rows = [
        (owner, int(bucket), int(count))
        for owner, text in zip(table["owner"], table["latency_hist"].fillna(""), strict=True)
        for bucket, count in re.findall(r"(-?\d+):(\d+)", text)
    ]
    frame = pd.DataFrame(rows, columns=["owner", "bucket", "count"])
    return OwnerHistograms.of(frame, int(scale))


def reference_baseline(dataset: str) -> Baseline:
    """Return the days before of a reference dataset."""
    table = pd.read_csv(REFERENCES / f"{dataset}.csv")
    owners = pd.DataFrame(
        {
            "owner": table["owner"],
            "started": table["pre_prompts"],
            "cancelled": 0,
            "completed": table["pre_completions"],
            "disrupted": table["pre_disconnects"],
            "tokens": table["pre_tokens"],
            "turns": table["pre_turns"],
            COMPARABLE: True,
        }
    )
    return Baseline(owners, SEVEN_DAYS)


def lognormal_durations(
    totals: pd.DataFrame, *, scale: int, seed: int = 5, treated_times: float = 1.0
) -> OwnerHistograms:
    """Return durations of every prompt started, those of the treated `treated_times` as long."""
    source = np.random.default_rng(seed)
    started = totals["started"].to_numpy()
    owner = np.repeat(np.arange(len(totals)), started)
    logs = 8.5 + started[owner] % 5 / 10.0 + 0.5 * source.standard_normal(len(owner))
    is_treated = (totals["cohort"] == "enforced").to_numpy()
    milliseconds = np.exp(logs) * np.where(is_treated[owner], treated_times, 1.0)
    # (g^b, g^(b + 1)]; no simulated duration lies on an edge.
    buckets = np.floor(np.log2(milliseconds) * 2.0**scale).astype(int)
    names = totals["owner"].to_numpy()[owner]
    frame = pd.DataFrame({"owner": names, "bucket": buckets, "count": 1})
    return OwnerHistograms.of(frame, scale)


def identical_baseline(totals: pd.DataFrame, days: int = 7) -> Baseline:
    """Return a baseline with the counts that every owner has in the wave."""
    owners = totals[["owner", *COUNTS]].assign(**{COMPARABLE: True})
    return Baseline(owners, SEVEN_DAYS[:days])
