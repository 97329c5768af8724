"""What a full enforce gate costs, and its CR2 part beside statsmodels on the same owner totals.

Four metrics with a margin and one for information, 5 % of the owners treated, one core. The first
column is what the worker takes for an evaluation, without reading the store; the others are one
metric's ratio, CR2 standard error and interval. Ratios of one run are what to read.
"""

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402  # path first
import statsmodels.api as sm  # noqa: E402

from analysis.cohorts import Contrast, cohort_ratio, difference  # noqa: E402
from analysis.frames import Outcomes  # noqa: E402
from analysis.gates import evaluate  # noqa: E402
from reducer.vocabulary import Cohort, Metric  # noqa: E402
from tests.analysis.samples import POLICY, compared, simulated_totals, wave  # noqa: E402

SIZES = (1_000, 10_000, 100_000)
TREATED = 0.05
REPEATS = 5


def main() -> None:
    """Measure and print the table."""
    print(f"{'owners':>8}{'full gate':>12}{'CR2':>12}{'statsmodels':>14}{'times':>8}")
    for owners in SIZES:
        treated = int(owners * TREATED)
        totals = simulated_totals(treated=treated, control=owners - treated)
        rostered = {Cohort.ENFORCED: treated, Cohort.CONTROL: owners - treated}
        evidence = wave(totals, rostered=rostered)
        own = compared(totals, Metric.COMPLETION)
        agree(own)
        gate = best_of(1, partial(evaluate, evidence, POLICY))
        ours = best_of(REPEATS, partial(bound, own))
        peers = best_of(REPEATS, partial(peer, own))
        print(
            f"{owners:>8}{gate:>10.2f} s{ours * 1e3:>9.2f} ms{peers * 1e3:>11.2f} ms"
            f"{peers / ours:>8.1f}"
        )


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


def agree(own: Outcomes) -> None:
    """Stop when the two do not say the same: a faster wrong answer is no measurement."""
    ours, (estimate, error) = interval(own), peer(own)
    if not np.allclose((ours.estimate, ours.standard_error), (estimate, error), rtol=1e-8):
        raise SystemExit(f"{ours} is not statsmodels' {estimate} with {error}")


def best_of(times: int, work: Callable[[], object]) -> float:
    """Return the shortest of some runs, in seconds."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return min(taken)


if __name__ == "__main__":
    main()
