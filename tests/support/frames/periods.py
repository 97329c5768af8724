"""Periods for tests: warn waves and the week before them, with the durations of both."""

import dataclasses
import datetime as dt

import numpy as np
import pandas as pd

from guardwave.analysis.frames.baseline import Baseline
from guardwave.analysis.frames.histograms import OwnerHistograms
from guardwave.analysis.frames.owner_totals import COUNTS
from guardwave.reducer.vocabulary import Cohort, Gate, Metric
from tests.support.frames.samples import POLICY, simulated_totals, wave

WARN_MARGINS = {
    Metric.CANCELLATION: 0.005,
    Metric.DISRUPTION: 0.005,
    Metric.TOKENS: 1.10,
    Metric.TURNS: 1.10,
}
WARN_POLICY = dataclasses.replace(POLICY, margins={**POLICY.margins, Gate.WARN: WARN_MARGINS})
WEEK_BEFORE = tuple(dt.date(2026, 11, 13) + dt.timedelta(days=place) for place in range(7))


def baseline_of(totals, *, days_before=WEEK_BEFORE, durations=None, comparable=True):
    owners = totals[["owner", *COUNTS]].assign(is_comparable=comparable)
    return Baseline(owners, days_before, durations)


def warn_wave(*, seed=7, before_seed=8, owners=600, **changes):
    """Return a warn wave without holdback, with the week before it."""
    after = simulated_totals(treated=owners, control=0, seed=seed).assign(cohort="warned")
    before = simulated_totals(treated=owners, control=0, seed=before_seed)
    days_before = changes.pop("days_before", WEEK_BEFORE)
    arguments = {"baseline": baseline_of(before, days_before=days_before), **changes}
    return wave(
        after, gate=Gate.WARN, treated=Cohort.WARNED, reference=Cohort.HOLDBACK, **arguments
    )


def durations_of(owners, *, times=1.0, seed=3, scale=7):
    source = np.random.default_rng(seed)
    names = np.repeat(owners["owner"].to_numpy(dtype=object), owners["started"])
    slow = source.lognormal(8.0, 0.8, len(names)) * times
    buckets = np.ceil(np.log2(slow) * 2.0**scale).astype(int) - 1
    return OwnerHistograms.of(pd.DataFrame({"owner": names, "bucket": buckets, "count": 1}), scale)
