"""The chance that the draw chose no owner that a harm would hit, where few owners carry all of it.

No test can see harm in owners that nobody drew. With N owners, n of them treated and K of them
carrying the harm, the draw misses every carrier with the hypergeometric chance
C(N - K, n) / C(N, n). It follows from the draw alone, whatever the evidence shows.
"""

import math
from bisect import bisect_left
from dataclasses import dataclass

from analysis.report import Note, Topic
from reducer.rollout.draw import BPS

# The harm that few owners carry in the coverage study, in basis points of the owners, and how often
# it may pass there (docs/coverage.md).
CARRIERS_BPS = 200
MOST_CHANCE = 0.10


@dataclass(frozen=True, slots=True)
class Unseen:
    """How a draw stands to harm in few owners: its sizes, and the chance to miss every carrier.

    `owners` is N, the whole roster, `treated` n and `carriers` K. `treated_needed` is the least n
    whose chance is `MOST_CHANCE` or less.
    """

    owners: int
    treated: int
    carriers: int
    chance: float
    treated_needed: int

    @property
    def is_small(self) -> bool:
        """Whether too few owners are treated to see harm in few owners."""
        return self.treated < self.treated_needed

    @property
    def sentence(self) -> str:
        """Say the chance, and how many treated owners would make it small."""
        limit = (
            f"a chance of {100 * MOST_CHANCE:g} % or less takes {self.treated_needed:,} treated "
            "owners"
        )
        told = (
            f"If {100 * CARRIERS_BPS / BPS:g} % of the owners ({self.carriers:,} of "
            f"{self.owners:,}) carried all harm, the chance that the draw of {self.treated:,} has "
            f"none of them is {_percent(self.chance)}"
        )
        if not self.is_small:
            return f"{told}; {limit}."
        return f"{told}. The wave is too small to see harm in few owners: {limit}."


def unseen_of(owners: int, treated: int) -> Unseen | None:
    """Return how a draw of so many owners stands to harm in few of them; None if none is drawn.

    Raises:
        ValueError: `treated` is not from 0 to `owners`.
    """
    if not 0 <= treated <= owners:
        raise ValueError(f"treated is {treated} of {owners} owners; give 0 to {owners}")
    if treated == 0:
        return None
    carriers = -(-CARRIERS_BPS * owners // BPS)
    # More treated owners never miss more often, so the least that do is found by halving.
    needed = bisect_left(
        range(owners + 1), -MOST_CHANCE, key=lambda drawn: -missed(owners, carriers, drawn)
    )
    return Unseen(owners, treated, carriers, missed(owners, carriers, treated), needed)


def missed(owners: int, carriers: int, drawn: int) -> float:
    """Return C(N - K, n) / C(N, n): the chance that none of the carriers is drawn.

    It is the same with K and n exchanged, so the product has as many factors as the smaller has.
    """
    if carriers + drawn > owners:
        return 0.0
    factors, other = sorted((carriers, drawn))
    return math.exp(math.fsum(math.log1p(-other / (owners - at)) for at in range(factors)))


def unseen_note(owners: int, treated: int) -> Note | None:
    """Return it as a note; None where nobody is treated."""
    found = unseen_of(owners, treated)
    if found is None:
        return None
    numbers: dict[str, int | float | str] = {
        "owners": found.owners,
        "treated": found.treated,
        "carriers": found.carriers,
        "chance_unseen": found.chance,
        "treated_needed": found.treated_needed,
    }
    return Note(Topic.UNSEEN_OWNERS, False, found.sentence, numbers)


def _percent(chance: float) -> str:
    """Write a chance in percent; a small one is not rounded to none."""
    if chance < 0.001:
        return "under 0.1 %"
    return f"{100.0 * chance:.{0 if chance >= 0.095 else 1}f} %"
