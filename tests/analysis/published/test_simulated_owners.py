"""Simulated owners: their harm is the stated one, and the counts of the proof are stored."""

import numpy as np
import pytest

from benchmarks.proof import outcomes, tallies
from benchmarks.proof.outcomes import AMOUNT_MARGIN, MARGINS, SHIFT, Durations, Harm, doses, observe
from benchmarks.proof.owners import Rate, Sizes, draw_owners
from benchmarks.proof.tallies import Cell, Chunk, Design, Passes
from guardwave.reducer.vocabulary import Metric

CHUNK = Chunk(40, Sizes.ZIPF, 2)
DESIGN = Design(seed=1, permutations=199, chunk_size=10)
COUNTS = {
    Cell(40, Sizes.ZIPF, Metric.TOKENS, True, Harm.CONCENTRATED): Passes(10, 1, 2, 1, 0),
    Cell(40, Sizes.ZIPF, Metric.COMPLETION, False, Harm.AT_MARGIN): Passes(10, 3, 4, 2, 1),
}


@pytest.mark.parametrize("harm", [Harm.AT_MARGIN, Harm.CONCENTRATED], ids=str)
def test_the_harm_of_all_treated_owners_together_is_the_margin(harm):
    owners = draw_owners(np.random.default_rng(5), 200_000, Sizes.EQUAL, treated=200_000)
    dose = doses(owners, harm)

    for rate in Rate:
        harmless = owners.wave.rates[rate]
        worse = float(((1.0 - harmless) * dose.risks[rate]).mean())
        assert worse == pytest.approx(MARGINS[rate], rel=0.03)
        assert float(harmless.mean()) == pytest.approx(rate.mean, rel=0.02)
    assert float(dose.factor.mean()) == pytest.approx(AMOUNT_MARGIN, rel=0.003)


@pytest.mark.parametrize(
    ("harm", "shift"),
    [
        pytest.param(Harm.NONE, 0, id="no harm"),
        pytest.param(Harm.AT_MARGIN, SHIFT, id="harm at the margin"),
        pytest.param(Harm.CONCENTRATED, SHIFT, id="harm that few owners carry"),
    ],
)
def test_the_95th_percentile_moves_by_as_many_buckets_as_the_margin_has(harm, shift):
    source = np.random.default_rng(6)
    owners = draw_owners(source, 20_000, Sizes.EQUAL, treated=20_000)
    moved = percentile(observe(source, owners.wave, doses(owners, harm)).durations)
    before = percentile(observe(source, owners.wave, doses(owners, Harm.NONE)).durations)

    assert moved - before == pytest.approx(shift, abs=4)


def percentile(durations: Durations) -> int:
    order = np.argsort(durations.buckets)
    reached = np.cumsum(durations.counts[order]) / durations.counts.sum()
    return int(durations.buckets[order][np.searchsorted(reached, 0.95)])


def test_nobody_is_harmed_whom_the_draw_did_not_choose():
    owners = draw_owners(np.random.default_rng(7), 1_000, Sizes.ZIPF, treated=50)
    for harm in Harm:
        dose = doses(owners, harm)
        assert not any(dose.risks[rate][50:].any() for rate in Rate)
        assert (dose.factor[50:] == 1.0).all()
        assert not dose.shift[50:].any()
        assert not dose.slow_risk[50:].any()


def test_the_smallest_owner_has_a_trial_of_every_metric():
    source = np.random.default_rng(8)
    owners = draw_owners(source, 5_000, Sizes.LOGNORMAL, treated=1)
    seen = outcomes.observe(source, owners.wave, doses(owners, Harm.NONE))
    assert seen.ended.min() >= 1


def test_kept_counts_come_back_as_they_were(tmp_path):
    results = tmp_path / "results" / "counts.jsonl"
    assert tallies.read(results, DESIGN) == {}
    tallies.append(results, DESIGN, CHUNK, COUNTS)
    tallies.append(results, DESIGN, CHUNK._replace(number=3), COUNTS)

    found = tallies.read(results, DESIGN)

    assert found == {CHUNK: COUNTS, CHUNK._replace(number=3): COUNTS}
    doubled = {cell: passes.plus(passes) for cell, passes in COUNTS.items()}
    assert tallies.added_up(found.values()) == doubled


def test_counts_of_another_design_are_not_added(tmp_path):
    results = tmp_path / "counts.jsonl"
    tallies.append(results, DESIGN, CHUNK, COUNTS)
    with pytest.raises(ValueError, match=r"line 1 is of the design \[1, 199, 10\]"):
        tallies.read(results, Design(seed=2, permutations=199, chunk_size=10))


def test_a_line_that_was_cut_off_is_named(tmp_path):
    results = tmp_path / "counts.jsonl"
    tallies.append(results, DESIGN, CHUNK, COUNTS)
    with results.open("a") as file:
        file.write('{"design": [1, 1')
    with pytest.raises(ValueError, match="line 2 is cut off"):
        tallies.read(results, DESIGN)
