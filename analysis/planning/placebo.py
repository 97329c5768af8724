"""Placebo planner: this gate, run on owners whom nothing happened to.

Random owner sets of the planned size stand for the treated of as many waves. Unchanged, they show
how often a harmless guard would pass: the power. With the margin added to what the set did, they
show how often harm exactly at the margin would pass: the false promotions. Both rest on the
environment's own owners, their sizes and their habits, and on no formula.

The gate's own test, interval and minimum data decide. Two steps are left out: the refinement of p
values near alpha, and the search for a bound, which changes no verdict.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from guardwave.analysis import sentences
from guardwave.analysis.frames import (
    OWNER,
    Baseline,
    Flags,
    Outcomes,
    OwnerHistograms,
    checked_totals,
    outcomes_of,
)
from guardwave.analysis.inference import (
    NO_TRIALS,
    ComparisonTerms,
    DrawKey,
    Draws,
    Labels,
    MetricTest,
    NoComparison,
    P95Test,
    Sets,
    harm_margin,
    prepare_p95_test,
    prepare_test,
    stands_for_treated,
)
from guardwave.analysis.report import Figures
from guardwave.reducer.rollout.draw import BPS, treated_count
from guardwave.reducer.rollout.policy import GatePolicy
from guardwave.reducer.rollout.state import REFERENCE, TREATED
from guardwave.reducer.vocabulary import Cohort, Gate, Metric, Mode

# A plan with less power than this says so: the likeliest end of such a wave is "not proven".
WEAK_POWER = 0.5
_PHASES = {Gate.WARN: Mode.WARN, Gate.ENFORCE: Mode.ENFORCE}


@dataclass(frozen=True, slots=True, eq=False)
class QuietDays:
    """What owners did on days without the treatment: owner totals, whose cohorts are ignored.

    `days` counts the days. `durations` are those of the same days; without them latency p95 is not
    planned. `baseline` has the days before, for a gate that will have them too.
    """

    totals: pd.DataFrame
    days: int
    durations: OwnerHistograms | None = None
    baseline: Baseline | None = None


@dataclass(frozen=True, slots=True)
class Placebos:
    """The number of placebo waves to run for one gate, and the seed of their sets."""

    gate: Gate
    policy: GatePolicy
    waves: int = 500
    seed: int = 1

    def __post_init__(self) -> None:
        if self.gate not in _PHASES:
            raise ValueError(f"the {self.gate} gate compares no cohorts; plan for warn or enforce")
        if self.waves < 1:
            raise ValueError(f"waves is {self.waves}; run at least one")


class MetricRates(NamedTuple):
    """The parts of all placebo waves in which a metric would have been within its margin."""

    metric: Metric
    power: float
    false_promotion: float


@dataclass(frozen=True, slots=True)
class PlaceboPlan:
    """What the gate would decide at one share after a number of days. Rates are parts of `waves`.

    `power` is for all metrics together, None when nobody would be treated.
    """

    share_bps: int
    days: int
    owners: int
    treated: int
    waves: int
    metrics: tuple[MetricRates, ...]
    power: float | None
    is_weak: bool
    sentence: str


def plan_by_placebo(
    quiet: Sequence[QuietDays], shares_bps: Sequence[int], placebos: Placebos
) -> tuple[PlaceboPlan, ...]:
    """Run the placebo waves of every share on each of the quiet periods.

    The same arguments give the same plans.

    Raises:
        ValueError: for totals that fail their checks, and for a share outside 1 to 5000 basis
            points, beyond which the sets would no longer stand for the treated.
    """
    for share in shares_bps:
        if not 0 < share <= BPS // 2:
            raise ValueError(f"a share is {share} basis points; plan for 1 to {BPS // 2}")
    return tuple(_planned(period, share, placebos) for period in quiet for share in shares_bps)


@dataclass(frozen=True, slots=True, eq=False)
class _SharedDraws(Draws):
    """Random sets whose labels are made once for all waves: they depend on sizes alone."""

    labels: dict[tuple[int, int], list[Labels]] = field(default_factory=dict)

    def of(self, is_treated: Flags, count: int) -> Sets:
        is_member = is_treated if stands_for_treated(is_treated) else ~is_treated
        cached = self.labels.setdefault((len(is_member), int(is_member.sum())), [])
        return Sets(is_member, self.key.seed, count, cached)


class _Passes(NamedTuple):
    """Whether a metric passes unchanged, and with the margin added."""

    harmless: bool
    at_margin: bool


@dataclass(frozen=True, slots=True, eq=False)
class _Runner:
    """Runs the gate's test of each metric for one placebo set after another."""

    quiet: QuietDays
    totals: pd.DataFrame
    placebos: Placebos
    draws: _SharedDraws
    source: np.random.Generator

    def run(self, metric: Metric, margin: float, is_treated: pd.Series) -> _Passes:
        """Return whether the metric is within, unchanged and with the margin added."""
        if metric is Metric.LATENCY_P95:
            return self._latency(margin, is_treated)
        everyone = (Cohort.EVERYONE, Cohort.EVERYONE)
        plain = outcomes_of(self.totals, metric, everyone)
        drawn = plain._replace(is_treated=is_treated[list(plain.owners)].to_numpy(dtype=np.bool_))
        harmed = drawn._replace(harm=self._harmed(drawn, metric, margin))
        return _Passes(
            self._is_within(drawn, metric, margin), self._is_within(harmed, metric, margin)
        )

    def _is_within(self, outcomes: Outcomes, metric: Metric, margin: float) -> bool:
        limit = harm_margin(metric, margin)
        test = prepare_test(
            _blank(metric, margin), outcomes, self.quiet.baseline, margin=limit, terms=self._terms
        )
        return self._passes(test)

    def _harmed(self, outcomes: Outcomes, metric: Metric, margin: float) -> np.ndarray:
        """Add the margin to the treated: by chance to each trial of a rate, else by scaling."""
        is_treated, harm, trials = outcomes.is_treated, outcomes.harm, outcomes.trials
        if metric.is_ratio:
            return np.where(is_treated, margin * harm, harm)
        rate = float(harm.sum() / trials.sum())
        spared = np.where(is_treated, trials - harm, 0.0).astype(np.int64)
        chance = min(1.0, margin / (1.0 - rate)) if rate < 1.0 else 0.0
        return harm + self.source.binomial(spared, chance)

    def _latency(self, margin: float, is_treated: pd.Series) -> _Passes:
        durations = self.quiet.durations
        names = tuple(self.totals[OWNER])
        flags = is_treated[list(names)].to_numpy(dtype=np.bool_)
        owners = Outcomes(names, flags, np.zeros(len(names)), np.zeros(len(names)))
        harmed = None if durations is None else _slower(durations, is_treated, margin)
        return _Passes(
            self._is_p95_within(owners, durations, margin),
            self._is_p95_within(owners, harmed, margin),
        )

    def _is_p95_within(
        self, owners: Outcomes, durations: OwnerHistograms | None, margin: float
    ) -> bool:
        test = prepare_p95_test(
            _blank(Metric.LATENCY_P95, margin),
            owners,
            durations,
            baseline=self.quiet.baseline,
            terms=self._terms,
        )
        return self._passes(test)

    @property
    def _terms(self) -> ComparisonTerms:
        phase = _PHASES[self.placebos.gate]
        return ComparisonTerms((TREATED[phase], REFERENCE[phase]), self.placebos.policy)

    def _passes(self, test: MetricTest | P95Test | NoComparison) -> bool:
        if isinstance(test, NoComparison) or test.shortfalls or test.upper is None:
            return False
        if test.upper >= test.margin:
            return False
        trial, policy = test.trial(self.draws), self.placebos.policy
        return trial.test(test.margin, trial.sets(policy.permutations)).p_harm <= policy.alpha


def _planned(quiet: QuietDays, share_bps: int, placebos: Placebos) -> PlaceboPlan:
    totals = checked_totals(quiet.totals).assign(cohort=Cohort.EVERYONE.value)
    totals = totals[totals["started"] > 0]
    owners, treated = len(totals), treated_count(share_bps, len(totals))
    of_policy = placebos.policy.margins[placebos.gate]
    margins = {
        metric: of_policy[metric]
        for metric in Metric
        if metric in of_policy and (metric is not Metric.LATENCY_P95 or quiet.durations is not None)
    }
    blank = PlaceboPlan(share_bps, quiet.days, owners, treated, 0, (), None, True, "")
    if treated == 0:
        nobody = f"{share_bps / 100:g} % of {owners:,} owners treats nobody."
        return replace(blank, sentence=nobody)
    # The seed is an argument: the same days give the same plan.
    source = np.random.default_rng(placebos.seed)
    draws = _SharedDraws(DrawKey("placebo", placebos.gate.value, placebos.seed))
    runner = _Runner(quiet, totals, placebos, draws, source)
    counts = {metric: np.zeros(2) for metric in margins}
    waves_passed = 0
    for _ in range(placebos.waves):
        members = np.zeros(owners, dtype=np.bool_)
        members[source.choice(owners, treated, replace=False)] = True
        is_treated = pd.Series(members, index=totals[OWNER].to_numpy(dtype=object))
        passes_of = {
            metric: runner.run(metric, margin, is_treated) for metric, margin in margins.items()
        }
        for metric, passes in passes_of.items():
            counts[metric] += (passes.harmless, passes.at_margin)
        waves_passed += all(passes.harmless for passes in passes_of.values())
    rates = tuple(
        MetricRates(metric, *(counts[metric] / placebos.waves).tolist()) for metric in margins
    )
    plan = replace(blank, waves=placebos.waves, metrics=rates)
    return _with_power(plan, waves_passed / placebos.waves)


def _with_power(plan: PlaceboPlan, power: float) -> PlaceboPlan:
    error = math.sqrt(power * (1.0 - power) / plan.waves)
    least = min(plan.metrics, key=lambda rates: rates.power)
    most = max(plan.metrics, key=lambda rates: rates.false_promotion)
    sentence = (
        f"A harmless guard would pass {100 * power:.0f} % (give or take {100 * error:.0f}) of "
        f"waves with {plan.treated:,} of {plan.owners:,} owners treated for {plan.days} days; "
        f"{sentences.label(least.metric)} passes least, {100 * least.power:.0f} %. Harm at the "
        f"margin of {sentences.label(most.metric)} would pass {100 * most.false_promotion:.1f} %."
    )
    is_weak = power < WEAK_POWER
    if is_weak:
        sentence += " Such a wave will most likely prove nothing: treat more owners."
    return replace(plan, power=power, is_weak=is_weak, sentence=sentence)


def _blank(metric: Metric, margin: float) -> Figures:
    shown = -margin if metric.is_higher_better else margin
    return Figures(metric, NO_TRIALS, NO_TRIALS, margin=shown)


def _slower(durations: OwnerHistograms, is_treated: pd.Series, margin: float) -> OwnerHistograms:
    """Move the durations of the treated up by as many buckets as the tested margin has."""
    flags = is_treated.reindex(list(durations.owners), fill_value=False).to_numpy(dtype=np.bool_)
    steps = int(np.floor(np.log2(margin) * 2.0**durations.scale + 1e-9))
    moved = np.where(flags[durations.places], durations.buckets + steps, durations.buckets)
    return replace(durations, buckets=moved.astype(np.int32))
