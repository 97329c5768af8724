"""The margin injected into the reference cohort, so that both cohorts are alike if harm equals it.

Shifting the treated cohort instead would make impossible counts where events are rare. A rate's
harm is thinned in or out by a binomial draw whose uniform belongs to the owner, so the injected
counts are the same wherever they are computed and never fall when the margin grows.
"""

import hashlib
import math

import numpy as np
from scipy import stats

from analysis.frames import Floats, Outcomes
from reducer.vocabulary import Metric


def uniforms(owners: tuple[str, ...], metric: Metric, *, wave: int) -> Floats:
    """Return one uniform in (0, 1) per owner, from a hash of wave, owner and metric."""
    prefix = f"guardwave-injection-1\0{wave}\0{metric}".encode()
    person = hashlib.blake2b(prefix, digest_size=hashlib.blake2b.PERSON_SIZE).digest()
    digests = [
        hashlib.blake2b(owner.encode(), digest_size=8, person=person).digest() for owner in owners
    ]
    # 53 bits, shifted by half a step: neither 0 nor 1 can come out.
    whole = np.frombuffer(b"".join(digests), dtype=">u8") >> np.uint64(11)
    return (whole.astype(np.float64) + 0.5) / 2.0**53


def with_rate_margin(outcomes: Outcomes, margin: float, own_uniforms: Floats) -> Floats:
    """Return every owner's harm after the reference's rate is moved by `margin` (a fraction).

    A positive margin makes each trial without harm harmful with q = margin / (1 - R); a negative
    one keeps each harm with 1 - |margin| / R, where R is the reference's own rate of harm.
    """
    chosen = ~outcomes.is_treated
    harm, trials = outcomes.harm[chosen], outcomes.trials[chosen]
    rate = float(harm.sum() / trials.sum())
    draws = own_uniforms[chosen]
    injected = outcomes.harm.copy()
    if margin > 0.0 and rate < 1.0:
        injected[chosen] = harm + _binomial(draws, trials - harm, margin / (1.0 - rate))
    elif margin < 0.0 and rate > 0.0:
        injected[chosen] = _binomial(draws, harm, 1.0 + margin / rate)
    return injected


def with_ratio_margin(outcomes: Outcomes, log_margin: float) -> Floats:
    """Return every owner's amount after the reference's is multiplied by exp(`log_margin`)."""
    return np.where(outcomes.is_treated, outcomes.harm, math.exp(log_margin) * outcomes.harm)


def _binomial(draws: Floats, trials: Floats, probability: float) -> Floats:
    return np.asarray(stats.binom.ppf(draws, trials, min(max(probability, 0.0), 1.0)))
