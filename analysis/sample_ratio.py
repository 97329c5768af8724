"""The sample ratio: whether as many owners are in the treated cohort as the draw put there.

Exact and two-sided, on owners and never on prompts, which cluster and which enforcement changes.
"""

from dataclasses import dataclass

from scipy import optimize, stats

# Below this p value an imbalance is no chance: it is looked at in every evaluation of every wave.
ALPHA = 0.001
DETECTED = 0.8


@dataclass(frozen=True, slots=True)
class Detectable:
    """What the test can see: shares further out than these are found in 80 of 100 waves.

    `low` or `high` is None where no share on that side is found so often.
    """

    low: float | None
    high: float | None


def p_value(treated: int, owners: int, share: float) -> float:
    """Return the exact two-sided binomial p of `treated` of `owners` for a planned share."""
    return float(stats.binomtest(treated, owners, share).pvalue)


def rejected(owners: int, share: float) -> tuple[int, int]:
    """Return the counts that are rejected: at most the first (-1: none), at least the second."""
    expected = int(owners * share)
    low, high = -1, expected
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if p_value(middle, owners, share) < ALPHA else (low, middle)
    inside, outside = expected, owners + 1
    while outside - inside > 1:
        middle = (inside + outside) // 2
        if p_value(middle, owners, share) < ALPHA:
            outside = middle
        else:
            inside = middle
    return low, outside


def detectable(owners: int, share: float) -> Detectable:
    """Return the true shares from which on the test finds the imbalance in 80 of 100 waves."""
    low, high = rejected(owners, share)

    def found(true_share: float) -> float:
        below = float(stats.binom.cdf(low, owners, true_share))
        return below + float(stats.binom.sf(high - 1, owners, true_share)) - DETECTED

    return Detectable(
        optimize.brentq(found, 0.0, share) if low >= 0 else None,
        optimize.brentq(found, share, 1.0) if high <= owners else None,
    )
