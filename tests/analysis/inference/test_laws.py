"""Laws: changes of a wave's evidence that must not change its results."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from guardwave.analysis.frames.owner_totals import COUNTS, owner_totals
from guardwave.analysis.gate.verdict import evaluate
from guardwave.analysis.report import MetricResult, to_wire
from guardwave.reducer.vocabulary import Cohort, Metric
from tests.support.frames.samples import NO_MINIMUM, POLICY, simulated_totals, wave


@st.composite
def owner_rows(draw: st.DrawFn) -> pd.DataFrame:
    """Draw owners of both cohorts with any possible counts, some idle or only cancelled."""
    treated = draw(st.integers(2, 8))
    owners = treated + draw(st.integers(2, 16))
    rows = []
    for place in range(owners):
        started = draw(st.integers(0, 40))
        cancelled = draw(st.integers(0, started))
        completed = draw(st.integers(0, started - cancelled))
        disrupted = draw(st.integers(0, started))
        tokens, turns = started * draw(st.integers(1, 9_000)), started * draw(st.integers(1, 20))
        cohort = "enforced" if place < treated else "control"
        counts = [started, cancelled, completed, disrupted, tokens, turns]
        rows.append([f"owner-{place:02d}", cohort, *counts])
    return pd.DataFrame(rows, columns=["owner", "cohort", *COUNTS])


def metrics_of(owners: pd.DataFrame, **changes: object) -> dict[Metric, MetricResult]:
    evaluation = evaluate(wave(owners, **changes), NO_MINIMUM)
    return {result.figures.metric: result for result in evaluation.metrics}


few_examples = settings(max_examples=15, deadline=None)


@few_examples
@given(owners=owner_rows(), seed=st.integers(0, 2**32 - 1))
def test_the_order_of_the_rows_changes_nothing(owners, seed):
    shuffled = owners.sample(frac=1.0, random_state=seed)

    assert to_wire(evaluate(wave(shuffled), POLICY)) == to_wire(evaluate(wave(owners), POLICY))


@few_examples
@given(owners=owner_rows(), data=st.data())
def test_the_split_of_the_counts_over_days_changes_nothing(owners, data):
    cuts = np.array(
        [[data.draw(st.integers(0, int(cell))) for cell in row] for row in owners[[*COUNTS]].values]
    )
    days = []
    for place, counts in enumerate((cuts, owners[[*COUNTS]].to_numpy() - cuts)):
        part = owners.assign(day=dt.date(2026, 11, 20 + place))
        days.append(part.assign(**dict(zip(COUNTS, counts.T, strict=True))))

    summed = owner_totals(pd.concat(days, ignore_index=True))

    assert to_wire(evaluate(wave(summed), POLICY)) == to_wire(evaluate(wave(owners), POLICY))


@few_examples
@given(owners=owner_rows())
def test_swapping_the_cohorts_turns_every_estimate_around(owners):
    there = metrics_of(owners)
    back = metrics_of(owners, treated=Cohort.CONTROL, reference=Cohort.ENFORCED)

    for metric, result in there.items():
        estimate, mirrored = result.figures.estimate, back[metric].figures.estimate
        assume(estimate is not None)
        assert estimate is not None
        assert mirrored is not None
        expected = 1.0 / estimate if metric.is_ratio else -estimate
        assert mirrored == pytest.approx(expected, rel=1e-12, abs=1e-15)


@few_examples
@given(owners=owner_rows(), times=st.integers(2, 50))
def test_multiplying_every_count_keeps_estimates_and_intervals(owners, times):
    """Owners are the sample, not prompts: more prompts of the same owners prove no more."""
    multiplied = owners.assign(**{column: owners[column] * times for column in COUNTS})

    once, often = metrics_of(owners), metrics_of(multiplied)

    for metric, result in once.items():
        before, after = result.figures, often[metric].figures
        assume(before.estimate is not None)
        assert after.estimate == pytest.approx(before.estimate, rel=1e-12, abs=1e-15)
        if before.interval is not None:
            assert after.interval is not None
            assert after.interval.low == pytest.approx(before.interval.low, rel=1e-9, abs=1e-12)
            assert after.interval.high == pytest.approx(before.interval.high, rel=1e-9, abs=1e-12)


@few_examples
@given(owners=owner_rows(), data=st.data())
def test_adding_only_cancelled_prompts_changes_nothing_about_completion(owners, data):
    extra = [data.draw(st.integers(0, 200)) for _ in range(len(owners))]
    cancelled = owners.assign(
        started=owners["started"] + extra, cancelled=owners["cancelled"] + extra
    )
    newcomer = pd.DataFrame(
        [["owner-new", "enforced", 9, 9, 0, 0, 0, 0]], columns=["owner", "cohort", *COUNTS]
    )

    after = metrics_of(pd.concat([cancelled, newcomer], ignore_index=True))

    assert after[Metric.COMPLETION] == metrics_of(owners)[Metric.COMPLETION]


@few_examples
@given(owners=owner_rows(), cohort=st.sampled_from(["everyone", "warned", "outside", "ineligible"]))
def test_owners_of_other_cohorts_change_no_metric(owners, cohort):
    others = owners.assign(owner=owners["owner"] + "-other", cohort=cohort)

    assert metrics_of(pd.concat([others, owners])) == metrics_of(owners)


def test_the_same_evidence_gives_the_same_evaluation():
    owners = simulated_totals(treated=40, control=400)

    assert to_wire(evaluate(wave(owners), POLICY)) == to_wire(evaluate(wave(owners), POLICY))
