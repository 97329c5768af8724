"""Steps up requested on a cohort: the step that is meant, and the answer of a dry run."""

import pytest

from guardwave.control_plane.commands.cohorts import CohortAnswer, CohortChange, set_cohort_mode
from guardwave.control_plane.core.errors import RuleViolated
from guardwave.reducer.vocabulary import Mode
from tests.support.lives import Life
from tests.support.worlds import ENVIRONMENT, GUARD, OPERATOR, WHY


def raising(life: Life, cohort: str, *, is_dry_run: bool = False, **changed) -> CohortAnswer:
    """Ask for a step on a stored evaluation, by cohort and without its mode."""
    evaluation = life.within()
    asked = CohortChange(gate_evaluation=evaluation.id, digest=evaluation.digest, **changed)
    return set_cohort_mode(
        life.context,
        ENVIRONMENT,
        GUARD,
        cohort,
        change=asked,
        actor=OPERATOR,
        reason=WHY,
        is_dry_run=is_dry_run,
    )


@pytest.fixture
def life(store):
    """Two days of shadow, so that there are owners to draw."""
    found = Life.begin(store)
    found.live(2)
    return found


def test_a_step_without_a_mode_is_the_one_to_the_mode_of_its_cohort(life):
    first = raising(life, "warned", share_bps=7000).promotion
    assert first is not None
    assert (first.to, first.share_bps) == (Mode.WARN, 7000)
    life.work()
    second = raising(life, "enforced", share_bps=400).promotion
    assert second is not None
    assert (second.to, second.share_bps) == (Mode.ENFORCE, 400)
    life.work()
    larger = raising(life, "enforced", share_bps=500).promotion
    assert larger is not None
    assert (larger.to, larger.share_bps) == (Mode.ENFORCE, 500)


@pytest.mark.parametrize("cohort", ["control", "holdback", "ineligible"])
def test_no_step_is_asked_for_on_a_cohort_that_no_step_treats(life, cohort):
    with pytest.raises(RuleViolated, match="is asked for on cohort"):
        raising(life, cohort)


def test_a_dry_run_of_a_step_reports_the_change_and_keeps_no_promotion(life):
    before = life.rollout
    tried = raising(life, "warned", is_dry_run=True)
    assert (tried.changed, life.rollout) == (True, before)
    assert life.context.gates.promotions(ENVIRONMENT, GUARD) == ()
    asked = raising(life, "warned")
    assert (asked.changed, asked.rollout) == (False, before)
    life.work()
    assert tried.rollout == life.rollout
