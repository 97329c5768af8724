"""Version purity: prompts of other versions must be few, and each pinned version must have run."""

import numpy as np
import pandas as pd
import pytest

from guardwave.analysis.frames.evidence import Share
from guardwave.analysis.frames.owner_totals import checked_totals
from guardwave.analysis.gate.verdict import evaluate
from guardwave.analysis.gate.version_purity import pinned_prompts, version_purity
from guardwave.reducer.vocabulary import Cohort, Gate, Verdict
from tests.support.frames.samples import POLICY, simulated_totals, wave

OLD, NEW = "1.4.0", "2.0.0"
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


def on_versions(owners, is_new, *, pin=(OLD, NEW)):
    """Return the owners' prompts on two versions: all of an owner's on the one that it runs."""
    days = pd.DataFrame(
        {
            "owner": owners["owner"],
            "version": np.where(is_new, NEW, OLD),
            "started": owners["started"],
        }
    )
    return pinned_prompts(days, pin)


def is_treated(owners):
    return (owners["cohort"] == "enforced").to_numpy()


def every(owners, number):
    return np.arange(len(owners)) % number == 0


def test_a_pinned_version_that_nobody_ran_is_not_proven_and_named(good_owners):
    pinned = on_versions(good_owners, every(good_owners, 3), pin=(OLD, NEW, "3.0.0", "3.1.0"))

    evaluation = evaluate(wave(good_owners, pinned=pinned), POLICY)

    assert evaluation.verdict is Verdict.UNPROVEN
    assert evaluation.sentence == (
        "Not proven: versions 3.0.0 and 3.1.0 are pinned, but enforced started no prompt on them "
        "on the days used; leave them out of the pin: start a wave that pins only what runs."
    )


def test_the_reference_alone_proves_nothing_of_a_version(good_owners):
    only_one = np.arange(len(good_owners)) == int(np.flatnonzero(~is_treated(good_owners))[0])

    found = purity_of(wave(good_owners, pinned=on_versions(good_owners, only_one)))

    assert found.verdict is Verdict.UNPROVEN
    assert found.sentence.startswith("Version 2.0.0 is pinned, but enforced started no prompt")
    assert found.numbers["pinned_without_prompts"] == 1


@pytest.mark.parametrize(
    ("ran", "verdict"),
    [
        pytest.param(True, Verdict.WITHIN, id="some ran it"),
        pytest.param(False, Verdict.UNPROVEN, id="nobody ran it"),
    ],
)
def test_in_shadow_everybody_may_run_a_version(good_owners, ran, verdict):
    everyone = good_owners.assign(cohort="everyone")
    pinned = on_versions(everyone, every(everyone, 500) & ran)

    evidence = wave(everyone, **EVERYONE, pinned=pinned)

    assert purity_of(evidence).verdict is verdict
    assert evaluate(evidence, POLICY).verdict is verdict


def test_one_version_that_ran_is_within_and_its_sentence_is_short(good_owners):
    pinned = on_versions(good_owners, every(good_owners, 1), pin=(NEW,))

    found = purity_of(wave(good_owners, pinned=pinned))

    assert (found.verdict, found.sentence) == (
        Verdict.WITHIN,
        "Every prompt came from a pinned version.",
    )


def test_a_treated_cohort_without_a_prompt_ran_no_version(good_owners):
    owners = good_owners.assign(started=good_owners["started"].where(~is_treated(good_owners), 0))
    owners = owners.assign(
        **{name: owners[name].clip(upper=owners["started"]) for name in ("cancelled", "disrupted")},
        completed=0,
    )
    pinned = on_versions(owners[owners["started"] > 0], every(owners[owners["started"] > 0], 2))

    found = purity_of(wave(owners, pinned=pinned))

    assert found.verdict is Verdict.UNPROVEN
    assert found.sentence == (
        "Versions 1.4.0 and 2.0.0 are pinned, but enforced started no prompt on them on the days "
        "used."
    )


@pytest.mark.parametrize(
    "is_new",
    [
        pytest.param(is_treated, id="all treated on the new one"),
        pytest.param(lambda owners: ~is_treated(owners), id="all treated on the old one"),
        pytest.param(
            lambda owners: is_treated(owners) | every(owners, 2), id="half of the others on it too"
        ),
    ],
)
def test_a_version_that_depends_on_the_cohort_makes_the_comparison_invalid(good_owners, is_new):
    pinned = on_versions(good_owners, is_new(good_owners))

    found = purity_of(wave(good_owners, pinned=pinned))

    assert found.verdict is Verdict.INVALID
    assert found.sentence.startswith("Version 1.4.0 started ")
    assert "cannot be separated from what the version does" in found.sentence
    assert 0 < found.numbers["p_versions"] < 0.001


def test_versions_that_run_equally_in_both_cohorts_are_within_and_counted(good_owners):
    found = purity_of(wave(good_owners, pinned=on_versions(good_owners, every(good_owners, 2))))
    treated = good_owners[is_treated(good_owners)]
    new = int(treated.loc[every(good_owners, 2)[is_treated(good_owners)], "started"].sum())

    assert found.verdict is Verdict.WITHIN
    assert found.sentence == (
        "Every prompt came from a pinned version. Prompts of enforced started: "
        f"{treated['started'].sum() - new:,} on 1.4.0 and {new:,} on 2.0.0."
    )


def test_prompts_off_the_pin_are_judged_before_pinned_versions(good_owners):
    evidence = wave(
        good_owners,
        pinned=on_versions(good_owners, is_treated(good_owners)),
        off_pin={Cohort.ENFORCED: Share(30, 1_200), Cohort.CONTROL: Share(0, 20_000)},
    )
    assert purity_of(evidence).sentence.startswith("Versions that are not pinned started")


def test_evidence_without_the_pin_is_named_in_the_sentence(good_owners):
    found = purity_of(wave(good_owners))
    assert found.sentence == (
        "Every prompt came from a pinned version. The pinned versions were not reported, so it "
        "is not known whether each of them ran."
    )


def test_no_prompt_is_no_prompt_of_any_pinned_version(good_owners):
    pinned = pinned_prompts(
        pd.DataFrame({"owner": [], "version": [], "started": np.zeros(0, dtype=np.int64)}), (OLD,)
    )
    assert list(pinned.columns) == [OLD]
    found = purity_of(wave(good_owners, pinned=pinned))
    assert found.verdict is Verdict.UNPROVEN
