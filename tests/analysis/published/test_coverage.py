"""The level of the decision test over simulated owners: a small part of benchmarks/coverage.py.

How often may the tests below fail although nothing is wrong? The guard is exactly at the margin,
and passes are binomial, with 5.5 % at most (the limit for the mean of the whole grid). The chance
to exceed each limit stands beside it; all of them together come to less than 1 in 10,000.
"""

import dataclasses

import pytest
from scipy import stats

from benchmarks.proof import tallies, waves
from benchmarks.proof.outcomes import Harm
from benchmarks.proof.owners import Sizes
from benchmarks.proof.tallies import Chunk, Design, Passes

# Waves share their random sets among metrics: pytest-xdist must not draw them twice.
pytestmark = pytest.mark.xdist_group("coverage")

DESIGN = Design(seed=20_261_130, permutations=199, chunk_size=200)
ROSTERS = ((40, Sizes.LOGNORMAL), (200, Sizes.ZIPF))
LEVEL = 0.055
# 20 cells and 4 sums: 20 * 2e-6 + 4 * 1e-5 < 1e-4.
OF_A_CELL = 2e-6
OF_A_SUM = 1e-5


@pytest.fixture(scope="module")
def counts():
    chunks = [Chunk(owners, sizes, 0) for owners, sizes in ROSTERS]
    return tallies.added_up(waves.repeat(chunk, DESIGN, (Harm.AT_MARGIN,)) for chunk in chunks)


def summed(counts, *, has_cuped: bool, owners: int) -> Passes:
    """Add up the metrics, which are simulated apart."""
    total = Passes()
    for cell, passes in counts.items():
        if cell.has_cuped is has_cuped and cell.owners == owners:
            total = total.plus(passes)
    return total


def test_no_cell_passes_a_guard_at_the_margin_much_more_often_than_alpha(counts):
    assert len(counts) == 20
    limit = stats.binom.isf(OF_A_CELL, DESIGN.chunk_size, LEVEL)
    assert {cell: passes for cell, passes in counts.items() if passes.test > limit} == {}


@pytest.mark.parametrize("has_cuped", [False, True], ids=["without CUPED", "with CUPED"])
@pytest.mark.parametrize("owners", [40, 200], ids="{} owners".format)
def test_over_all_metrics_a_guard_at_the_margin_passes_at_the_rate_of_alpha(
    counts, owners, has_cuped
):
    total = summed(counts, has_cuped=has_cuped, owners=owners)
    assert total.test <= stats.binom.isf(OF_A_SUM, total.waves, LEVEL)
    assert total.both <= total.test


def test_the_same_limit_catches_the_textbook_interval(counts):
    """The limits have teeth: the CR2 t interval exceeds them on the same waves."""
    total = summed(counts, has_cuped=False, owners=200)
    assert total.interval > stats.binom.isf(OF_A_SUM, total.waves, LEVEL)


def test_a_chunk_is_the_same_whenever_it_is_run():
    design = dataclasses.replace(DESIGN, chunk_size=3)
    again = [waves.repeat(Chunk(40, Sizes.ZIPF, 3), design) for _ in range(2)]
    assert again[0] == again[1]
