"""Exposure: the share of the treated cohort that was treated, beside unchanged estimates."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardwave.analysis.frames.evidence import Share
from guardwave.analysis.gate.exposure import exposure, exposure_of, missing_exposure
from guardwave.analysis.gate.verdict import evaluate
from guardwave.analysis.report import Check, Topic
from guardwave.reducer.vocabulary import Cohort, Gate, Verdict
from tests.support.frames.samples import POLICY, simulated_totals, wave

CONTROL = Share(18_000, 18_000)


@pytest.fixture(scope="module")
def good_owners():
    return simulated_totals(treated=200, control=1800)


def exposed(owners, treated, control=CONTROL):
    return wave(owners, exposure={Cohort.ENFORCED: treated, Cohort.CONTROL: control})


def check_of(evaluation):
    (found,) = [check for check in evaluation.checks if check.check is Check.EXPOSURE]
    return found


def owner_days(*rows):
    return pd.DataFrame(rows, columns=["cohort", "mode", "started"])


def test_prompts_of_a_cohort_are_counted_by_the_mode_they_ran_at():
    rows = owner_days(
        ("enforced", "enforce", 5),
        ("enforced", "shadow", 2),
        ("enforced", "warn", 1),
        ("control", "warn", 70),
        ("control", "off", 3),
        ("outside", "warn", 9),
    )
    assert exposure_of(rows, Gate.ENFORCE) == {
        Cohort.ENFORCED: Share(5, 8),
        Cohort.CONTROL: Share(70, 73),
    }
    assert exposure_of(owner_days(("warned", "warn", 4)), Gate.WARN) == {
        Cohort.WARNED: Share(4, 4),
        Cohort.HOLDBACK: Share(0, 0),
    }


def test_shadow_and_a_frame_without_modes_have_no_exposure():
    rows = owner_days(("everyone", "shadow", 5))
    assert exposure_of(rows, Gate.SHADOW) is None
    assert exposure_of(owner_days(("warned", "warn", 5)).drop(columns="mode"), Gate.WARN) is None


@pytest.mark.parametrize(
    ("treated", "verdict", "sentence"),
    [
        pytest.param(
            Share(2_000, 2_000),
            Verdict.WITHIN,
            "2,000 of 2,000 prompts of enforced (100 %) ran in enforce and 18,000 of 18,000 "
            "prompts of control (100 %) ran in warn.",
            id="all",
        ),
        pytest.param(
            Share(1_000, 2_000),
            Verdict.WITHIN,
            "1,000 of 2,000 prompts of enforced (50 %) ran in enforce and 18,000 of 18,000 prompts "
            "of control (100 %) ran in warn.",
            id="one half",
        ),
        pytest.param(
            Share(999, 2_000),
            Verdict.UNPROVEN,
            "999 of 2,000 prompts of enforced (49.95 %) ran in enforce and 18,000 of 18,000 "
            "prompts of control (100 %) ran in warn; at least 50 % of enforced is asked for.",
            id="below one half",
        ),
        pytest.param(
            Share(0, 2_000),
            Verdict.NO_DATA,
            "Nobody was treated: of 2,000 prompts of enforced none ran in enforce.",
            id="nobody",
        ),
        pytest.param(
            Share(0, 0),
            Verdict.NO_DATA,
            "Exposure is not known: no prompt of enforced was started.",
            id="no prompt",
        ),
    ],
)
def test_a_cohort_of_which_less_than_half_was_treated_is_not_proven(
    good_owners, treated, verdict, sentence
):
    evaluation = evaluate(exposed(good_owners, treated), POLICY)
    found = check_of(evaluation)
    assert (found.verdict, found.sentence) == (verdict, sentence)
    assert evaluation.verdict is verdict
    assert dict(found.numbers) == {
        "needed_share": 0.5,
        "enforced_at_mode": treated.part,
        "enforced_prompts": treated.whole,
        "control_at_mode": 18_000,
        "control_prompts": 18_000,
    }


def test_the_sentence_of_a_gate_in_which_nobody_was_treated_says_so(good_owners):
    evaluation = evaluate(exposed(good_owners, Share(0, 2_560)), POLICY)
    assert "obody was treated: of 2,560 prompts of enforced none ran" in evaluation.sentence


def test_the_modes_that_ran_change_no_estimate(good_owners):
    """Intention to treat: owners stay in the cohort that the draw gave them."""
    little, much = (exposed(good_owners, Share(part, 2_000)) for part in (1, 2_000))
    assert evaluate(little, POLICY).metrics == evaluate(much, POLICY).metrics


def test_a_cohort_without_prompts_is_left_out_of_the_sentence(good_owners):
    evidence = exposed(good_owners, Share(7, 8), Share(0, 0))
    found = exposure(evidence)
    assert found is not None
    assert found.sentence == "7 of 8 prompts of enforced (87.5 %) ran in enforce."


def test_modes_that_nobody_reported_are_a_note_and_decide_nothing(good_owners):
    evaluation = evaluate(wave(good_owners), POLICY)
    assert evaluation.verdict is Verdict.WITHIN
    assert Check.EXPOSURE not in {check.check for check in evaluation.checks}
    (note,) = [note for note in evaluation.notes if note.topic is Topic.EXPOSURE]
    assert "were not reported" in note.sentence
    assert missing_exposure(exposed(good_owners, Share(1, 1))) is None


def test_exposure_is_of_the_cohorts_that_are_compared(good_owners):
    with pytest.raises(ValueError, match="exposure names warned; give the shares of enforced and"):
        wave(good_owners, exposure={Cohort.WARNED: Share(1, 1)})


@given(whole=st.integers(1, 10**6), part=st.integers(0, 10**6))
def test_more_treated_prompts_never_make_the_verdict_worse(good_owners, whole, part):
    part = min(part, whole - 1)
    fewer, more = (
        exposure(exposed(good_owners, Share(count, whole))) for count in (part, part + 1)
    )
    assert fewer is not None
    assert more is not None
    assert more.verdict.rank <= fewer.verdict.rank
