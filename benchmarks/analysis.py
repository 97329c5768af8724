"""Cost of an enforce gate by owners, and of its CR2 part beside statsmodels in the same run.

The gate has five metrics with margins, bounds by inversion and CUPED over seven days; 5 % of the
owners are treated, with some 28 prompts each, on one core. "gate" is an evaluation by the worker
without the reads from the store, in processor seconds. The middle columns are one metric's ratio,
CR2 standard error, degrees of freedom and bound, ours and those of statsmodels (by owner with HC2,
which is the same number; by call clustered, up to 10,000 owners). Compare ratios of one run: other
work on the machine makes all times longer.

    python benchmarks/analysis.py [--million] [--json FILE]
"""

import argparse
import datetime as dt
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

# One core is measured; set before numpy reads these.
os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))
ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import numpy as np  # path first
import pandas as pd
import statsmodels.api as sm

from guardwave.analysis.frames.baseline import COMPARABLE, Baseline
from guardwave.analysis.frames.histograms import OwnerHistograms
from guardwave.analysis.frames.owner_totals import COUNTS, Outcomes, checked_totals, outcomes_of
from guardwave.analysis.gate.comparison import Judge
from guardwave.analysis.inference.cohorts import Contrast, cohort_ratio, difference
from guardwave.analysis.inference.rerandomisation import DrawKey
from guardwave.analysis.report import MetricResult
from guardwave.reducer.vocabulary import Metric
from tests.support.frames.samples import PAIR
from tests.support.policies import shipped_policy

SIZES = (1_000, 10_000, 100_000)
MILLION = 1_000_000
TREATED = 0.05
BY_CALL_UP_TO = 10_000
SCALE = 7
REPEATS = 5
MARGINS = {
    Metric.COMPLETION: 0.01,
    Metric.DISRUPTION: 0.005,
    Metric.LATENCY_P95: 1.10,
    Metric.TOKENS: 1.10,
    Metric.TURNS: 1.10,
}


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of one size of roster, and the most memory that the process has held so far."""

    owners: int
    gate: float
    cr2: float
    by_owner: float
    by_call: float | None
    peak_gigabytes: float
    refined: int


@dataclass(frozen=True, slots=True)
class Roster:
    """Owners with their wave and their baseline."""

    totals: pd.DataFrame
    durations: OwnerHistograms
    before: pd.DataFrame
    durations_before: OwnerHistograms


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--million", action="store_true", help="measure a million owners too")
    parser.add_argument("--json", type=Path, help="write the numbers to this file as well")
    options = parser.parse_args()
    costs = []
    print("| owners | gate s | CR2 ms | statsmodels ms | times | by call ms | times | peak GB |")
    print("|---|---|---|---|---|---|---|---|")
    for owners in (*SIZES, MILLION) if options.million else SIZES:
        cost = measured(owners)
        costs.append(cost)
        print(row(cost), flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(cost) for cost in costs], indent=1) + "\n")


def measured(owners: int) -> Cost:
    """Measure one size of roster."""
    roster = simulated(owners)
    began = time.process_time()
    results = gate(roster)
    spent = time.process_time() - began
    refined = sum(result.figures.permutations > 10_000 for result in results)
    own = outcomes_of(checked_totals(roster.totals), Metric.COMPLETION, PAIR)
    agree(own)
    by_call = best_of(1, partial(peer_by_call, own)) if owners <= BY_CALL_UP_TO else None
    return Cost(
        owners,
        spent,
        best_of(REPEATS, partial(bound, own)),
        best_of(REPEATS, partial(peer, own)),
        by_call,
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        refined,
    )


def row(cost: Cost) -> str:
    """Write one row of the table."""
    by_call = ("-", "-")
    if cost.by_call is not None:
        by_call = (f"{cost.by_call * 1e3:.1f}", f"{cost.by_call / cost.cr2:.0f}")
    note = f" ({cost.refined} refined)" if cost.refined else ""
    cells = (
        f"{cost.owners:,}",
        f"{cost.gate:.2f}{note}",
        f"{cost.cr2 * 1e3:.2f}",
        f"{cost.by_owner * 1e3:.2f}",
        f"{cost.by_owner / cost.cr2:.1f}",
        *by_call,
        f"{cost.peak_gigabytes:.2f}",
    )
    return f"| {' | '.join(cells)} |"


def gate(roster: Roster) -> list[MetricResult]:
    """Judge all five metrics as an evaluation does."""
    days = tuple(dt.date(2026, 11, 1) + dt.timedelta(days=place) for place in range(7))
    baseline = Baseline(roster.before, days, roster.durations_before)
    totals = checked_totals(roster.totals)
    policy = shipped_policy()
    judge = Judge(PAIR, DrawKey("internal", "guard", 1), policy, is_look_due=True)
    return [
        judge.compare(totals, metric, margin, durations=roster.durations, baseline=baseline)
        for metric, margin in MARGINS.items()
    ]


def simulated(owners: int) -> Roster:
    """Return owners of lognormal size, whose rates and durations persist over both weeks."""
    source = np.random.default_rng(owners)
    names = tuple(f"owner-{place:07d}" for place in range(owners))
    rates = source.beta(0.94 * 19.0, 0.06 * 19.0, owners)
    pace = 0.4 * source.standard_normal(owners)
    sizes = source.lognormal(2.8, 0.9, owners)
    totals, before = (counts(source, names, rates, sizes) for _ in range(2))
    is_treated = np.zeros(owners, dtype=bool)
    is_treated[source.choice(owners, int(TREATED * owners), replace=False)] = True
    return Roster(
        totals.assign(cohort=np.where(is_treated, *(cohort.value for cohort in PAIR))),
        histograms(source, names, totals["started"].to_numpy(), pace),
        before.assign(**{COMPARABLE: source.random(owners) < 0.9}),
        histograms(source, names, before["started"].to_numpy(), pace),
    )


def counts(
    source: np.random.Generator, names: tuple[str, ...], rates: np.ndarray, sizes: np.ndarray
) -> pd.DataFrame:
    """Return a period's owner totals."""
    started = np.maximum(1, source.poisson(sizes))
    cancelled = source.binomial(started, 0.03)
    values = (
        started,
        cancelled,
        source.binomial(started - cancelled, rates),
        source.binomial(started, 0.01),
        started * source.integers(9_000, 11_000, len(names)),
        started * 6 + source.integers(0, 60, len(names)),
    )
    return pd.DataFrame({"owner": names, **dict(zip(COUNTS, values, strict=True))})


def histograms(
    source: np.random.Generator, names: tuple[str, ...], started: np.ndarray, pace: np.ndarray
) -> OwnerHistograms:
    """Return a period's durations by owner, in steps of some thousands of owners."""
    entries, buckets, numbers = [], [], []
    for low in range(0, len(names), 20_000):
        size = started[low : low + 20_000]
        owner = np.repeat(np.arange(len(size)), size)
        logs = 8.5 + pace[low + owner] + 0.8 * source.standard_normal(len(owner))
        bucket = np.floor(logs / np.log(2.0) * 2**SCALE).astype(np.int64)
        cells, number = np.unique(owner * 2**16 + bucket, return_counts=True)
        entries.append(np.bincount(cells // 2**16, minlength=len(size)))
        buckets.append((cells % 2**16).astype(np.int32))
        numbers.append(number.astype(np.int64))
    starts = np.concatenate([[0], np.cumsum(np.concatenate(entries))]).astype(np.int64)
    return OwnerHistograms(names, SCALE, starts, np.concatenate(buckets), np.concatenate(numbers))


def interval(own: Outcomes) -> Contrast:
    """Return the contrast of the cohorts with its CR2 standard error and degrees of freedom."""
    treated = cohort_ratio(own.harm[own.is_treated], own.trials[own.is_treated])
    reference = cohort_ratio(own.harm[~own.is_treated], own.trials[~own.is_treated])
    assert treated is not None
    assert reference is not None
    contrast = difference(treated, reference)
    assert contrast is not None
    return contrast


def bound(own: Outcomes) -> float:
    """Return the one-sided upper bound at 95 %."""
    return interval(own).upper(0.95)


def peer(own: Outcomes) -> tuple[float, float]:
    """Return difference and standard error by weighted least squares, HC2 (which is CR2 here)."""
    design = np.column_stack([np.ones(len(own.trials)), own.is_treated])
    fit = sm.WLS(own.harm / own.trials, design, weights=own.trials).fit(cov_type="HC2")
    return float(fit.params[1]), float(fit.bse[1])


def peer_by_call(own: Outcomes) -> tuple[float, float]:
    """Return difference and standard error call by call, clustered by owner."""
    calls = own.trials.astype(int)
    owner = np.repeat(np.arange(len(calls)), calls)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(calls) - calls, calls)
    design = np.column_stack([np.ones(len(owner)), own.is_treated[owner]])
    fit = sm.OLS((place < own.harm[owner]).astype(float), design).fit(
        cov_type="cluster", cov_kwds={"groups": owner}
    )
    return float(fit.params[1]), float(fit.bse[1])


def agree(own: Outcomes) -> None:
    """Stop when the two differ: a faster wrong answer is no measurement."""
    ours, (estimate, error) = interval(own), peer(own)
    if not np.allclose((ours.estimate, ours.standard_error), (estimate, error), rtol=1e-8):
        raise SystemExit(f"{ours} is not statsmodels' {estimate} with {error}")


def best_of(times: int, work: Callable[[], object]) -> float:
    """Return the shortest of some runs, in processor seconds."""
    taken = []
    for _ in range(times):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return min(taken)


if __name__ == "__main__":
    main()
