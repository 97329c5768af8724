"""Minimum data before a wave: how often a random draw of the planned size would lack it.

The closed form of the power (`inference.power`) ignores minimum data, below which a gate calls a
metric unproven at any p value. Here untreated owners are drawn as a wave would draw them, and each
draw is judged by the minimum data of the gate itself.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from guardwave.analysis.frames import OWNER, Outcomes, checked_totals, outcomes_of
from guardwave.analysis.inference import harm_margin, ratios, shortfalls
from guardwave.reducer.rollout.draw import BPS, treated_count
from guardwave.reducer.rollout.policy import GatePolicy
from guardwave.reducer.rollout.state import REFERENCE, TREATED
from guardwave.reducer.vocabulary import Cohort, Gate, Metric, Mode

_PHASES = {Gate.WARN: Mode.WARN, Gate.ENFORCE: Mode.ENFORCE}
_NOBODY = "no owner with data in a cohort"


class DataPlan(NamedTuple):
    """The part of the draws, 0 to 1, in which a metric lacks minimum data.

    `lack` says what the median draw of these lacks, ordered by the prompts of its treated; None
    where every draw has enough.
    """

    metric: Metric
    short: float
    lack: str | None


class _Shortfall(NamedTuple):
    treated_trials: float
    lack: str


def plan_data(
    totals: pd.DataFrame,
    gate: Gate,
    *,
    policy: GatePolicy,
    share_bps: int,
    draws: int = 200,
    seed: int = 1,
) -> tuple[DataPlan, ...]:
    """Judge random draws of a share by the policy's minimum data, for each metric of a gate.

    `totals` are owner totals of as many days as the wave will use; their cohorts are ignored. The
    same arguments give the same plan. Latency p95 is left out, since owner totals do not hold it,
    and there is no plan where nobody would be treated.

    Raises:
        ValueError: for totals that fail their checks, a gate that compares no cohorts, a share
            outside 1 to 9999 basis points, and less than one draw.
    """
    if gate not in _PHASES:
        raise ValueError(f"the {gate} gate compares no cohorts; plan for warn or enforce")
    if not 0 < share_bps < BPS:
        raise ValueError(f"share_bps is {share_bps}; a wave treats 1 to {BPS - 1} basis points")
    if draws < 1:
        raise ValueError(f"draws is {draws}; draw at least once")
    together = checked_totals(totals).assign(cohort=Cohort.EVERYONE.value)
    together = together[together["started"] > 0]
    treated = treated_count(share_bps, len(together))
    if treated == 0:
        return ()
    by_metric = _outcomes_by_metric(together, policy.margins[gate])
    # The seed is an argument: the same days give the same plan.
    source = np.random.default_rng(seed)
    shortfalls_of: Mapping[Metric, list[_Shortfall]] = {metric: [] for metric in by_metric}
    for _ in range(draws):
        members = np.zeros(len(together), dtype=np.bool_)
        members[source.choice(len(together), treated, replace=False)] = True
        for metric, (outcomes, places) in by_metric.items():
            drawn = outcomes._replace(is_treated=members[places])
            shortfall = _shortfall(metric, drawn, gate, policy)
            if shortfall is not None:
                shortfalls_of[metric].append(shortfall)
    return tuple(_plan(metric, short_draws, draws) for metric, short_draws in shortfalls_of.items())


def _outcomes_by_metric(
    totals: pd.DataFrame, margins: Mapping[Metric, float]
) -> Mapping[Metric, tuple[Outcomes, npt.NDArray[np.intp]]]:
    """Return the outcomes of each metric, and the rows of the totals that its owners are in."""
    rows = pd.Index(totals[OWNER])
    by_metric: dict[Metric, tuple[Outcomes, npt.NDArray[np.intp]]] = {}
    for metric in Metric:
        if metric in margins and metric is not Metric.LATENCY_P95:
            outcomes = outcomes_of(totals, metric, (Cohort.EVERYONE, Cohort.EVERYONE))
            by_metric[metric] = (outcomes, rows.get_indexer(list(outcomes.owners)))
    return by_metric


def _shortfall(
    metric: Metric, outcomes: Outcomes, gate: Gate, policy: GatePolicy
) -> _Shortfall | None:
    """Return what one draw lacks, in the words of the gate; None where it has enough."""
    treated, reference = ratios(outcomes)
    if treated is None or reference is None:
        return _Shortfall(0.0 if treated is None else treated.trials, _NOBODY)
    phase = _PHASES[gate]
    shortages = shortfalls(
        metric,
        harm_margin(metric, policy.margins[gate][metric]),
        (treated, reference),
        cohorts=(TREATED[phase], REFERENCE[phase]),
        policy=policy,
    )
    return _Shortfall(treated.trials, ", ".join(shortages)) if shortages else None


def _plan(metric: Metric, short_draws: list[_Shortfall], draws: int) -> DataPlan:
    ordered = sorted(short_draws, key=lambda draw: (draw.treated_trials, draw.lack))
    median = ordered[len(ordered) // 2].lack if ordered else None
    return DataPlan(metric, len(short_draws) / draws, median)
