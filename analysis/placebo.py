"""The placebo planner: this gate, run on owners whom nothing happened to.

Random owner sets of the planned size stand for the treated of as many waves. As they are, they
show how often a harmless guard would pass: the power. With the margin added to what the set did,
they show how often harm exactly at the margin would pass: the false promotions. Both rest on the
environment's own owners, their sizes and their habits, and on no formula.

What decides is the gate's own test, interval and minimum data. Left out are the refinement of p
values near alpha, and the search for a bound, which moves no verdict.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis import sentences
from analysis.baseline import Baseline
from analysis.figures import NO_TRIALS
from analysis.frames import OWNER, Flags, Outcomes, checked_totals, outcomes
from analysis.histograms import OwnerHistograms
from analysis.latency_questions import LatencyQuestion, of_durations
from analysis.margins import harm_margin
from analysis.questions import Asker, NoAnswer, Question, of_totals
from analysis.report import Figures
from analysis.rerandomisation import DrawKey, Draws, stands_for_treated
from analysis.shuffles import Labels, Sets
from reducer.rollout.draw import BPS, treated_count
from reducer.rollout.phases import REFERENCE, TREATED
from reducer.rollout.policy import GatePolicy
from reducer.vocabulary import Cohort, Gate, Metric, Mode

# A plan with less power than this says so: the likeliest end of such a wave is "not proven".
WEAK_POWER = 0.5
_PHASES = {Gate.WARN: Mode.WARN, Gate.ENFORCE: Mode.ENFORCE}


@dataclass(frozen=True, slots=True, eq=False)
class QuietDays:
    """What owners did on days without the treatment: owner totals, of which cohorts are not read.

    `days` is how many days they are of. `durations` are those of the same days, without which
    latency p95 is not planned; `baseline` the days before, for a gate that will have them too.
    """

    totals: pd.DataFrame
    days: int
    durations: OwnerHistograms | None = None
    baseline: Baseline | None = None


@dataclass(frozen=True, slots=True)
class Placebos:
    """How many placebo waves are run for one gate, and the seed that their sets come from."""

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
    """Of all placebo waves, the parts in which a metric would have been within its margin."""

    metric: Metric
    power: float
    false_promotion: float


@dataclass(frozen=True, slots=True)
class PlaceboPlan:
    """What the gate would do at one share with so many days. Rates are parts of `waves`.

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
    return tuple(_planned(each, share, placebos) for each in quiet for share in shares_bps)


@dataclass(frozen=True, slots=True, eq=False)
class _SharedDraws(Draws):
    """Random sets whose labels are walked once for all waves: they depend on sizes alone."""

    labels: dict[tuple[int, int], list[Labels]] = field(default_factory=dict)

    def of(self, is_treated: Flags, count: int) -> Sets:
        is_member = is_treated if stands_for_treated(is_treated) else ~is_treated
        kept = self.labels.setdefault((len(is_member), int(is_member.sum())), [])
        return Sets(is_member, self.key.seed, count, kept)


class _Counted(NamedTuple):
    harmless: bool
    at_margin: bool


@dataclass(frozen=True, slots=True, eq=False)
class _Runner:
    """Asks the gate's question of each metric for one placebo set after another."""

    quiet: QuietDays
    totals: pd.DataFrame
    placebos: Placebos
    draws: _SharedDraws
    source: np.random.Generator

    def count(self, metric: Metric, margin: float, is_treated: pd.Series) -> _Counted:
        """Return whether the metric is within, as it is and with the margin added."""
        if metric is Metric.LATENCY_P95:
            return self._latency(margin, is_treated)
        everyone = (Cohort.EVERYONE, Cohort.EVERYONE)
        plain = outcomes(self.totals, metric, everyone)
        own = plain._replace(is_treated=is_treated[list(plain.owners)].to_numpy(dtype=np.bool_))
        harmed = own._replace(harm=self._harmed(own, metric, margin))
        return _Counted(
            self._is_within(own, metric, margin), self._is_within(harmed, metric, margin)
        )

    def _is_within(self, own: Outcomes, metric: Metric, margin: float) -> bool:
        limit = harm_margin(metric, margin)
        asked = of_totals(
            _blank(metric, margin), own, self.quiet.baseline, margin=limit, asker=self._asker
        )
        return self._passes(asked)

    def _harmed(self, own: Outcomes, metric: Metric, margin: float) -> np.ndarray:
        """Add the margin to the treated: by chance to each trial of a rate, else by scaling."""
        if metric.is_ratio:
            return np.where(own.is_treated, margin * own.harm, own.harm)
        rate = float(own.harm.sum() / own.trials.sum())
        spared = np.where(own.is_treated, own.trials - own.harm, 0.0).astype(np.int64)
        chance = min(1.0, margin / (1.0 - rate)) if rate < 1.0 else 0.0
        return own.harm + self.source.binomial(spared, chance)

    def _latency(self, margin: float, is_treated: pd.Series) -> _Counted:
        durations = self.quiet.durations
        names = tuple(self.totals[OWNER])
        flags = is_treated[list(names)].to_numpy(dtype=np.bool_)
        own = Outcomes(names, flags, np.zeros(len(names)), np.zeros(len(names)))
        found = []
        for is_harmed in (False, True):
            told = durations
            if durations is not None and is_harmed:
                told = _slower(durations, is_treated, margin)
            asked = of_durations(
                _blank(Metric.LATENCY_P95, margin),
                own,
                told,
                baseline=self.quiet.baseline,
                asker=self._asker,
            )
            found.append(self._passes(asked))
        return _Counted(*found)

    @property
    def _asker(self) -> Asker:
        phase = _PHASES[self.placebos.gate]
        return Asker((TREATED[phase], REFERENCE[phase]), self.placebos.policy)

    def _passes(self, asked: Question | LatencyQuestion | NoAnswer) -> bool:
        if isinstance(asked, NoAnswer) or asked.shortfalls or asked.upper is None:
            return False
        if asked.upper >= asked.margin:
            return False
        trial, policy = asked.trial(self.draws), self.placebos.policy
        return trial.test(asked.margin, trial.sets(policy.permutations)).p_harm <= policy.alpha


def _planned(quiet: QuietDays, share_bps: int, placebos: Placebos) -> PlaceboPlan:
    totals = checked_totals(quiet.totals).assign(cohort=Cohort.EVERYONE.value)
    totals = totals[totals["started"] > 0]
    owners, treated = len(totals), treated_count(share_bps, len(totals))
    named = placebos.policy.margins[placebos.gate]
    margins = {
        metric: named[metric]
        for metric in Metric
        if metric in named and (metric is not Metric.LATENCY_P95 or quiet.durations is not None)
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
    passed = 0
    for _ in range(placebos.waves):
        members = np.zeros(owners, dtype=np.bool_)
        members[source.choice(owners, treated, replace=False)] = True
        is_treated = pd.Series(members, index=totals[OWNER].to_numpy(dtype=object))
        found = {
            metric: runner.count(metric, margin, is_treated) for metric, margin in margins.items()
        }
        for metric, counted in found.items():
            counts[metric] += (counted.harmless, counted.at_margin)
        passed += all(counted.harmless for counted in found.values())
    rates = tuple(
        MetricRates(metric, *(counts[metric] / placebos.waves).tolist()) for metric in margins
    )
    return _told(replace(blank, waves=placebos.waves, metrics=rates), passed / placebos.waves)


def _told(plan: PlaceboPlan, power: float) -> PlaceboPlan:
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
