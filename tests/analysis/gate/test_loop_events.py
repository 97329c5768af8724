"""Loop events: how often other protections ended a turn, and unknown where nobody reported it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import special

from guardwave.analysis.frames.evidence import WaveEvidence
from guardwave.analysis.gate.loop_events import NO_LOOP_EVENTS, NO_LOOPS_BY_OWNER
from guardwave.analysis.gate.verdict import evaluate
from guardwave.analysis.inference.cohorts import cohort_ratio, difference
from guardwave.analysis.offline.notebook import evidence_of
from guardwave.analysis.report import Note, Topic
from tests.support.frames.samples import POLICY, consistent_stops, simulated_totals, wave


@pytest.fixture(scope="module")
def owners():
    return simulated_totals(treated=60, control=540)


def with_loops(owners: pd.DataFrame, *, treated: float, reference: float) -> WaveEvidence:
    """Return a wave with these rates of loop events per prompt started."""
    totals = consistent_stops(owners)
    assert totals is not None
    by_owner = owners.set_index("owner").loc[totals["owner"]]
    rates = np.where(by_owner["cohort"] == "enforced", treated, reference)
    loops = np.random.default_rng(8).poisson(rates * by_owner["started"].to_numpy(dtype=float))
    return wave(owners, guard_totals=totals.assign(loops=loops))


def loops_in(evidence: WaveEvidence) -> Note:
    notes = evaluate(evidence, POLICY).notes
    return next(note for note in notes if note.topic is Topic.OTHER_PROTECTIONS)


def test_rates_are_per_thousand_prompts_with_the_interval_of_their_difference(owners):
    evidence = with_loops(owners, treated=0.02, reference=0.01)
    note = loops_in(evidence)
    assert evidence.guard_totals is not None
    own = owners.merge(evidence.guard_totals[["owner", "loops"]], on="owner")
    treated, reference = (
        1000
        * own.loc[own["cohort"] == cohort, "loops"].sum()
        / own.loc[own["cohort"] == cohort, "started"].sum()
        for cohort in ("enforced", "control")
    )
    assert note.numbers["treated_per_1000"] == pytest.approx(treated)
    assert note.numbers["reference_per_1000"] == pytest.approx(reference)
    assert note.numbers["difference_per_1000"] == pytest.approx(treated - reference)
    assert note.sentence == (
        f"Other protections ended {treated:.2f} turns per 1,000 prompts in enforced, "
        f"{reference:.2f} in control; difference {treated - reference:+.2f} (90 % interval "
        f"{note.numbers['difference_low']:+.2f} to {note.numbers['difference_high']:+.2f})."
    )


def test_the_interval_is_blocked_by_owner_with_the_errors_of_statsmodels(owners):
    evidence = with_loops(owners, treated=0.02, reference=0.01)
    numbers = loops_in(evidence).numbers
    assert evidence.guard_totals is not None
    own = owners.merge(evidence.guard_totals[["owner", "loops"]], on="owner")
    own = own[own["started"] > 0]
    is_treated = (own["cohort"] == "enforced").to_numpy()
    loops, started = own["loops"].to_numpy(dtype=float), own["started"].to_numpy(dtype=float)
    fit = sm.WLS(loops / started, sm.add_constant(is_treated.astype(float)), weights=started)
    error = fit.fit(cov_type="HC2").bse[1]
    sides = [cohort_ratio(loops[at], started[at]) for at in (is_treated, ~is_treated)]
    assert sides[0] is not None
    assert sides[1] is not None
    contrast = difference(sides[0], sides[1])
    assert contrast is not None
    half = special.stdtrit(contrast.degrees_of_freedom, 0.95) * error
    middle = numbers["difference_per_1000"]
    assert numbers["difference_low"] == pytest.approx(middle - 1000 * half, rel=1e-9)
    assert numbers["difference_high"] == pytest.approx(middle + 1000 * half, rel=1e-9)


@pytest.mark.parametrize(
    ("treated", "reference"),
    [
        pytest.param(0.0, 0.01, id="none in the treated cohort alone is a rate of zero"),
        pytest.param(0.5, 0.001, id="many more of them"),
    ],
)
def test_no_rate_of_loop_events_decides_anything(owners, treated, reference):
    evidence = with_loops(owners, treated=treated, reference=reference)
    assert evidence.guard_totals is not None
    without = replace(evidence, guard_totals=evidence.guard_totals.drop(columns="loops"))
    with_them, same = evaluate(evidence, POLICY), evaluate(without, POLICY)
    assert not loops_in(evidence).is_warning
    assert loops_in(evidence).numbers["treated_per_1000"] == pytest.approx(
        1000 * treated, rel=0.2, abs=1e-12
    )
    assert (with_them.verdict, with_them.sentence) == (same.verdict, same.sentence)
    assert (with_them.checks, with_them.metrics) == (same.checks, same.metrics)


def test_an_interval_below_minimum_data_is_not_to_be_relied_on(owners):
    few = with_loops(owners, treated=0.001, reference=0.001)
    assert "of too little data to rely on)" in loops_in(few).sentence
    assert "too little" not in loops_in(with_loops(owners, treated=0.1, reference=0.1)).sentence


@pytest.mark.parametrize(
    "totals",
    [
        pytest.param(None, id="no guard totals"),
        pytest.param(consistent_stops(simulated_totals(treated=60, control=540)), id="no column"),
    ],
)
def test_loop_events_that_were_not_stored_are_unknown_and_not_zero(owners, totals):
    note = loops_in(wave(owners, guard_totals=totals))
    assert (note.sentence, note.numbers) == (NO_LOOPS_BY_OWNER, {})


def test_a_host_that_sends_none_is_unknown_and_no_rate_of_zero(owners):
    note = loops_in(with_loops(owners, treated=0.0, reference=0.0))
    assert (note.sentence, note.numbers) == (NO_LOOP_EVENTS, {})


def test_a_cohort_without_a_prompt_has_no_rate(owners):
    idle = owners.assign(
        **{
            count: owners[count].where(owners["cohort"] == "control", 0)
            for count in ("started", "cancelled", "completed", "disrupted", "tokens", "turns")
        }
    )
    note = loops_in(with_loops(idle, treated=0.0, reference=0.01))
    assert note.numbers == {}
    assert note.sentence == "Loop events of other protections are unknown: a cohort has no prompt."


def test_owners_without_a_spread_have_no_interval(owners):
    evidence = with_loops(owners, treated=0.0, reference=0.0)
    started = owners.set_index("owner")["started"]
    assert evidence.guard_totals is not None
    equal = evidence.guard_totals.assign(
        loops=started.loc[evidence.guard_totals["owner"]].to_numpy()
    )
    note = loops_in(replace(evidence, guard_totals=equal))
    assert "difference +0.00 (no interval, since no owner differs from another)" in note.sentence
    assert "difference_low" not in note.numbers


def test_one_owner_has_no_interval():
    few = simulated_totals(treated=1, control=40)
    note = loops_in(with_loops(few, treated=0.5, reference=0.1))
    assert "(no interval, since a cohort has a single owner)" in note.sentence


def test_a_frame_of_owner_days_has_them_in_a_column(owners):
    days = owners.assign(day="2026-11-20", loops=owners["started"] // 2)
    note = loops_in(evidence_of(days))
    own = owners[owners["cohort"] == "enforced"]
    expected = 1000 * (own["started"] // 2).sum() / own["started"].sum()
    assert note.numbers["treated_per_1000"] == pytest.approx(expected)
