"""Baseline drift: cohorts that differed before the wave, a control that moved, and power."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from guardwave.analysis.frames.evidence import DrawInputs
from guardwave.analysis.frames.histograms import OwnerHistograms, merge_histograms
from guardwave.analysis.gate import baseline_drift
from guardwave.analysis.gate.verdict import evaluate
from guardwave.analysis.report import Comparison, Topic
from guardwave.reducer.vocabulary import Cohort, Gate, Metric, Verdict
from tests.support.frames.periods import baseline_of, durations_of
from tests.support.frames.samples import POLICY, simulated_totals, wave


def enforce_wave(baseline, owners=None):
    owners = simulated_totals(treated=100, control=900) if owners is None else owners
    return wave(owners, baseline=baseline)


def note_of(evidence, topic):
    return next((note for note in evaluate(evidence, POLICY).notes if note.topic is topic), None)


def test_equal_days_before_the_wave_are_noted_without_a_warning():
    evidence = enforce_wave(baseline_of(simulated_totals(treated=100, control=900, seed=9)))

    alike = note_of(evidence, Topic.BASELINE_BALANCE)
    still = note_of(evidence, Topic.CONTROL_MOVED)

    assert alike is not None
    assert still is not None
    assert (alike.is_warning, still.is_warning) == (False, False)
    assert alike.sentence == "On the 7 days before the wave the cohorts were alike."
    assert still.sentence == "Control did as in the days before the wave."
    assert "p_completion" in alike.numbers
    assert "p_latency_p95" not in alike.numbers


def test_cohorts_whose_durations_differed_before_the_wave_warn():
    before = simulated_totals(treated=100, control=900, seed=8)
    is_treated = (before["cohort"] == "enforced").to_numpy()
    slow, same = durations_of(before, times=2.0), durations_of(before)
    mixed = merge_histograms(
        [
            OwnerHistograms.of(
                pd.DataFrame(
                    {
                        "owner": np.array(own.owners, dtype=object)[own.places],
                        "bucket": own.buckets,
                        "count": own.counts,
                    }
                )[np.isin(own.places, places)],
                7,
            )
            for own, places in (
                (slow, _places(slow, before[is_treated])),
                (same, _places(same, before[~is_treated])),
            )
        ]
    )

    note = note_of(enforce_wave(baseline_of(before, durations=mixed)), Topic.BASELINE_BALANCE)

    assert note is not None
    assert note.is_warning
    assert "already differed in latency p95 (p = " in note.sentence


def _places(durations, owners):
    return np.flatnonzero(np.isin(np.array(durations.owners, dtype=object), owners["owner"]))


@pytest.mark.parametrize(
    ("p", "is_warning"),
    [pytest.param(0.003, False, id="not so for three"), pytest.param(0.002, True, id="for all")],
)
def test_a_metric_moves_only_below_one_percent_divided_by_the_metrics_tested(p, is_warning):
    metrics = (Metric.COMPLETION, Metric.TOKENS, Metric.TURNS, Metric.DISRUPTION)
    p_values = dict.fromkeys(metrics, 1.0) | {Metric.TOKENS: p}

    assert bool(baseline_drift.significant_metrics(p_values)) is is_warning


def test_cohorts_that_differed_before_the_wave_warn_and_decide_nothing():
    before = simulated_totals(treated=100, control=900, seed=8)
    is_treated = before["cohort"] == "enforced"
    apart = before.assign(tokens=before["tokens"].where(~is_treated, before["tokens"] * 2))

    evaluation = evaluate(enforce_wave(baseline_of(apart)), POLICY)

    note = next(note for note in evaluation.notes if note.topic is Topic.BASELINE_BALANCE)
    assert note.is_warning
    assert "the cohorts already differed in tokens (p = " in note.sentence
    assert all(check.verdict is Verdict.WITHIN for check in evaluation.checks)


def test_a_control_that_moved_warns():
    before = simulated_totals(treated=100, control=900, seed=8)
    quiet = before.assign(disrupted=0)

    note = note_of(enforce_wave(baseline_of(quiet)), Topic.CONTROL_MOVED)

    assert note is not None
    assert note.is_warning
    assert "Control moved against the days before the wave in disruption (p = " in note.sentence


def test_a_baseline_of_another_mode_gives_no_note_about_control():
    before = simulated_totals(treated=100, control=900, seed=8)
    evidence = enforce_wave(baseline_of(before, comparable=False))

    assert note_of(evidence, Topic.CONTROL_MOVED) is None


@pytest.mark.parametrize(
    "draw",
    [None, DrawInputs("other-draw-9", "00.0", 500, ())],
    ids=["no draw", "an unknown draw"],
)
def test_without_the_draw_there_is_no_note_about_balance(draw):
    before = baseline_of(simulated_totals(treated=100, control=900, seed=8))
    evidence = dataclasses.replace(enforce_wave(before), draw=draw)

    assert note_of(evidence, Topic.BASELINE_BALANCE) is None


def test_power_is_noted_for_every_metric_with_a_standard_error():
    note = note_of(enforce_wave(None), Topic.POWER)

    assert note is not None
    assert set(note.numbers) == {
        "power_completion",
        "power_disruption",
        "power_tokens",
        "power_turns",
    }
    assert all(0.0 < float(reached) <= 1.0 for reached in note.numbers.values())
    assert note.sentence.startswith(
        "A guard that does no harm is within the margin with a chance of completion "
    )


def test_the_shadow_gate_notes_neither_power_nor_cohorts():
    everyone = simulated_totals(treated=5, control=5).assign(cohort="everyone")
    evidence = wave(
        everyone, gate=Gate.SHADOW, treated=Cohort.EVERYONE, reference=Cohort.EVERYONE, rostered={}
    )

    evaluation = evaluate(evidence, POLICY)

    assert evaluation.comparison is Comparison.NONE
    assert {note.topic for note in evaluation.notes} <= {Topic.SUPPORTED_HOSTS}
