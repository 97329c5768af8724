"""Minimum data before a wave: how often a random draw of the planned size would lack it.

The power in closed form (analysis.power) knows nothing of minimum data, below which a gate calls a
metric unproven whatever the p value. Here owners whom nothing happened to are drawn as a wave would
draw them, and each draw is held against what the gate itself asks for.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.frames import OWNER, Outcomes, checked_totals, outcomes
from analysis.margins import harm_margin, shortfalls
from analysis.questions import ratios
from reducer.rollout.draw import BPS, treated_count
from reducer.rollout.phases import REFERENCE, TREATED
from reducer.rollout.policy import GatePolicy
from reducer.vocabulary import Cohort, Gate, Metric, Mode

_PHASES = {Gate.WARN: Mode.WARN, Gate.ENFORCE: Mode.ENFORCE}
_NOBODY = "no owner with data in a cohort"


class DataPlan(NamedTuple):
    """In which part of the draws a metric lacks minimum data, 0 to 1.

    `lack` is what the draw lacks that is in the middle of those that lack something, by the prompts
    of its treated; None where every draw has enough.
    """

    metric: Metric
    short: float
    lack: str | None


class _Short(NamedTuple):
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
    """Hold random draws of a share against the policy's minimum data, for each metric of a gate.

    `totals` are owner totals of as many days as the wave will use, whatever the cohorts were. The
    same arguments give the same plan. Latency p95, which owner totals do not hold, is left out, and
    there is no plan where nobody would be treated.

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
    asked = _asked(together, policy.margins[gate])
    # The seed is an argument: the same days give the same plan.
    source = np.random.default_rng(seed)
    found: Mapping[Metric, list[_Short]] = {metric: [] for metric in asked}
    for _ in range(draws):
        members = np.zeros(len(together), dtype=np.bool_)
        members[source.choice(len(together), treated, replace=False)] = True
        for metric, (own, places) in asked.items():
            short = _short(metric, own._replace(is_treated=members[places]), gate, policy)
            if short is not None:
                found[metric].append(short)
    return tuple(_told(metric, lacking, draws) for metric, lacking in found.items())


def _asked(
    totals: pd.DataFrame, margins: Mapping[Metric, float]
) -> Mapping[Metric, tuple[Outcomes, npt.NDArray[np.intp]]]:
    """Return the outcomes of each metric, and in which rows of the totals its owners are."""
    rows = pd.Index(totals[OWNER])
    found: dict[Metric, tuple[Outcomes, npt.NDArray[np.intp]]] = {}
    for metric in Metric:
        if metric in margins and metric is not Metric.LATENCY_P95:
            own = outcomes(totals, metric, (Cohort.EVERYONE, Cohort.EVERYONE))
            found[metric] = (own, rows.get_indexer(list(own.owners)))
    return found


def _short(metric: Metric, own: Outcomes, gate: Gate, policy: GatePolicy) -> _Short | None:
    """Return what one draw lacks, in the words of the gate; None where it has enough."""
    treated, reference = ratios(own)
    if treated is None or reference is None:
        return _Short(0.0 if treated is None else treated.trials, _NOBODY)
    phase = _PHASES[gate]
    lacking = shortfalls(
        metric,
        harm_margin(metric, policy.margins[gate][metric]),
        (treated, reference),
        cohorts=(TREATED[phase], REFERENCE[phase]),
        policy=policy,
    )
    return _Short(treated.trials, ", ".join(lacking)) if lacking else None


def _told(metric: Metric, lacking: list[_Short], draws: int) -> DataPlan:
    middle = sorted(lacking)[len(lacking) // 2].lack if lacking else None
    return DataPlan(metric, len(lacking) / draws, middle)
