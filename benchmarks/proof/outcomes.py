"""Outcomes of a simulated week, with or without harm from the guard.

Harm is drawn by numpy's generator, prompt by prompt and owner by owner; the test injects its
margin by hashes of owner names, into the other cohort. The two share no random number.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt
from scipy import special

from benchmarks.proof.owners import CARRIERS, Amount, Floats, Owners, Rate, Week

CANCELLED = 0.03
# Where harm is concentrated, a slow prompt takes eight times as long.
SLOW_DOUBLINGS = 3.0
TOKENS_PER_PROMPT = 20_000.0
TURNS_PER_PROMPT = 6.0
MEDIAN_MS, SIGMA_IN_OWNER = 8_000.0, 0.8
# Base-2 exponential buckets of guardwave's owner-days: growth 2^(1/128) = 1.0054.
SCALE = 7
BUCKETS_PER_DOUBLING = 2**SCALE
MARGINS = {Rate.FAILURE: 0.01, Rate.DISRUPTION: 0.005}
AMOUNT_MARGIN = 1.10
# The most whole buckets inside 1.10: the margin that is really tested is 2^(17/128) = 1.0964.
SHIFT = int(np.log2(AMOUNT_MARGIN) * BUCKETS_PER_DOUBLING)

Integers = npt.NDArray[np.int64]


class Harm(StrEnum):
    """The harm of the guard to the owners that it treats."""

    NONE = "none"
    AT_MARGIN = "at the margin"
    """Every treated owner is worse by exactly the margin."""
    CONCENTRATED = "concentrated"
    """One owner in fifty carries all of it; over all owners it is exactly the margin."""


@dataclass(frozen=True, slots=True)
class Durations:
    """Counts of prompts by owner and bucket, one entry per pair that has any, sorted."""

    owners: Integers
    buckets: Integers
    counts: Integers


@dataclass(frozen=True, slots=True)
class Outcome:
    """Counts of one week, one entry per owner, and its durations."""

    started: Floats
    cancelled: Floats
    failed: Floats
    disrupted: Floats
    tokens: Floats
    turns: Floats
    durations: Durations

    @property
    def ended(self) -> Floats:
        """Trials of completion: what started and was not cancelled."""
        return self.started - self.cancelled


@dataclass(frozen=True, slots=True)
class Doses:
    """The harm to each owner: a `risk` for trials without harm, and a `factor` for amounts."""

    risks: dict[Rate, Floats]
    factor: Floats
    shift: Integers
    """Buckets that every duration moves up."""
    slow_risk: Floats
    """Chance that a prompt takes eight times as long."""


def observe(source: np.random.Generator, week: Week, doses: Doses) -> Outcome:
    """Draw the counts of a week under the given doses."""
    started = week.prompts
    whole = started.astype(np.int64)
    cancelled = np.minimum(source.binomial(whole, CANCELLED), np.maximum(whole - 1, 0))
    failed = _harmed(source, whole - cancelled, week.rates[Rate.FAILURE], doses.risks[Rate.FAILURE])
    disrupted = _harmed(source, whole, week.rates[Rate.DISRUPTION], doses.risks[Rate.DISRUPTION])
    tokens = doses.factor * week.factors[Amount.TOKENS] * TOKENS_PER_PROMPT
    # Each prompt has one turn and more; the mean of all turns is what the factor multiplies.
    more = doses.factor * TURNS_PER_PROMPT - 1.0
    turns = source.poisson(source.gamma(2.0 * started, more * week.factors[Amount.TURNS] / 2.0))
    return Outcome(
        started=started,
        cancelled=cancelled.astype(np.float64),
        failed=failed,
        disrupted=disrupted,
        tokens=np.round(source.gamma(started, tokens)),
        turns=started + turns,
        durations=_durations(source, whole, week.factors[Amount.LATENCY], doses),
    )


def doses(owners: Owners, harm: Harm) -> Doses:
    """Return the doses of a harm, which only treated owners get."""
    count = len(owners.is_carrier)
    harmed = owners.is_treated.astype(np.float64)
    rate_margins, amount_margin = dict(MARGINS), AMOUNT_MARGIN - 1.0
    shift, slow_risk = SHIFT, 0.0
    if harm is Harm.NONE:
        harmed = np.zeros(count)
    elif harm is Harm.CONCENTRATED:
        harmed = harmed * owners.is_carrier
        rate_margins = {rate: margin / CARRIERS for rate, margin in MARGINS.items()}
        amount_margin /= CARRIERS
        shift, slow_risk = 0, _slow_risk()
    return Doses(
        risks={rate: harmed * margin / (1.0 - rate.mean) for rate, margin in rate_margins.items()},
        factor=1.0 + harmed * amount_margin,
        shift=(harmed * shift).astype(np.int64),
        slow_risk=harmed * slow_risk,
    )


def take(week: Week, chosen: slice) -> Week:
    """Return the week of some owners."""
    return Week(
        week.prompts[chosen],
        {rate: values[chosen] for rate, values in week.rates.items()},
        {amount: values[chosen] for amount, values in week.factors.items()},
    )


def take_doses(whole: Doses, chosen: slice) -> Doses:
    """Return the doses of some owners."""
    return Doses(
        {rate: values[chosen] for rate, values in whole.risks.items()},
        whole.factor[chosen],
        whole.shift[chosen],
        whole.slow_risk[chosen],
    )


def joined(first: Outcome, second: Outcome) -> Outcome:
    """Return the owners of both, the first ones first."""
    moved = second.durations.owners + len(first.started)
    pairs = zip(
        (first.durations.owners, first.durations.buckets, first.durations.counts),
        (moved, second.durations.buckets, second.durations.counts),
        strict=True,
    )
    durations = Durations(*(np.concatenate(pair) for pair in pairs))
    names = ("started", "cancelled", "failed", "disrupted", "tokens", "turns")
    columns = {
        name: np.concatenate([getattr(first, name), getattr(second, name)]) for name in names
    }
    return Outcome(**columns, durations=durations)


def _harmed(source: np.random.Generator, trials: Integers, rates: Floats, risks: Floats) -> Floats:
    return source.binomial(trials, rates + (1.0 - rates) * risks).astype(np.float64)


def _durations(
    source: np.random.Generator, prompts: Integers, factors: Floats, doses: Doses
) -> Durations:
    calls = int(prompts.sum())
    owners = np.repeat(np.arange(len(prompts)), prompts)
    doublings = np.log2(MEDIAN_MS * factors)[owners]
    doublings += SIGMA_IN_OWNER / np.log(2.0) * source.standard_normal(calls)
    if doses.slow_risk.any():
        doublings += SLOW_DOUBLINGS * (source.random(calls) < doses.slow_risk[owners])
    buckets = np.floor(BUCKETS_PER_DOUBLING * doublings).astype(np.int64) + doses.shift[owners]
    lowest = int(buckets.min(initial=0))
    width = int(buckets.max(initial=0)) - lowest + 1
    keys, counts = np.unique(owners * width + (buckets - lowest), return_counts=True)
    return Durations(keys // width, keys % width + lowest, counts.astype(np.int64))


def _slow_risk() -> float:
    """Return the chance of a slow prompt in carriers at which the p95 of all is the margin worse.

    A prompt's logarithm is normal over prompts and owners. The 95th percentile is 1.10 times as
    high when 5 % exceed 1.10 times the old one: some do without harm, and some become slow.
    """
    sigma = float(np.hypot(SIGMA_IN_OWNER, Amount.LATENCY.sigma))
    cut = float(special.ndtri(0.95)) * sigma + np.log(2.0) * SHIFT / BUCKETS_PER_DOUBLING
    anyway = float(special.ndtr(-cut / sigma))
    when_slow = float(special.ndtr(-(cut - SLOW_DOUBLINGS * np.log(2.0)) / sigma))
    return (0.05 - anyway) / (CARRIERS * (when_slow - anyway))
