"""Version purity: prompts of versions that a wave is not about are few, or nothing is compared."""

import pytest

from analysis.evidence import Share
from analysis.frames import checked_totals
from analysis.gates import evaluate
from analysis.purity import version_purity
from reducer.vocabulary import Cohort, Gate, Verdict
from tests.analysis.samples import POLICY, simulated_totals, wave

EVERYONE = {
    "gate": Gate.SHADOW,
    "treated": Cohort.EVERYONE,
    "reference": Cohort.EVERYONE,
    "rostered": {},
}


@pytest.fixture(scope="module")
def good_owners():
    return simulated_totals(treated=200, control=1800)


def purity_of(evidence):
    return version_purity(evidence, checked_totals(evidence.owners), POLICY)


@pytest.mark.parametrize(
    ("enforced", "control", "verdict"),
    [
        pytest.param(Share(0, 100), Share(0, 1_900), Verdict.WITHIN, id="none"),
        pytest.param(Share(0, 100), Share(18, 1_900), Verdict.WITHIN, id="just below"),
        pytest.param(Share(0, 100), Share(19, 1_900), Verdict.INVALID, id="at the limit"),
        pytest.param(Share(1, 100), Share(0, 1_900), Verdict.INVALID, id="in the treated"),
        pytest.param(Share(0, 0), Share(0, 1_900), Verdict.WITHIN, id="an empty cohort"),
        pytest.param(Share(0, 0), Share(0, 0), Verdict.NO_DATA, id="no prompt"),
    ],
)
def test_one_percent_in_a_cohort_makes_the_comparison_invalid(
    good_owners, enforced, control, verdict
):
    off_pin = {Cohort.ENFORCED: enforced, Cohort.CONTROL: control}
    assert purity_of(wave(good_owners, off_pin=off_pin)).verdict is verdict


def test_an_impure_wave_is_invalid_and_the_sentence_names_the_numbers(good_owners):
    off_pin = {Cohort.ENFORCED: Share(30, 1_200), Cohort.CONTROL: Share(5, 20_000)}

    evaluation = evaluate(wave(good_owners, off_pin=off_pin), POLICY)

    assert evaluation.verdict is Verdict.INVALID
    assert evaluation.sentence == (
        "Not valid: versions that are not pinned started 5 of 20,000 prompts (0.02 %) in control "
        "and 30 of 1,200 prompts (2.5 %) in enforced; less than 1 % is asked for."
    )


def test_the_shadow_gate_asks_for_pinned_versions_too(good_owners):
    everyone = good_owners.assign(cohort="everyone")

    evaluation = evaluate(
        wave(everyone, **EVERYONE, off_pin={Cohort.EVERYONE: Share(2, 100)}), POLICY
    )

    assert evaluation.verdict is Verdict.INVALID
