"""Ladder laws: properties of a rollout after any history."""

from hypothesis import given
from hypothesis import strategies as st

from guardwave.reducer.rollout.draw import draw, treated_count
from guardwave.reducer.rollout.ladder import (
    ModeLowered,
    Refusal,
    Restarted,
    RolloutPromoted,
    RolloutResumed,
    apply,
)
from guardwave.reducer.rollout.state import SETTABLE, Rollout
from guardwave.reducer.vocabulary import Mode
from tests.strategies import histories, modes, rosters, states

# A history may begin as people begin one, or in any state that a fault might leave behind.
anywhere = histories() | histories(start=states)
settable = st.sampled_from(sorted(SETTABLE))


def what_generation_follows(rollout: Rollout) -> tuple[object, ...]:
    return rollout.phase, rollout.wave, rollout.treated_bps, rollout.version_pin


@given(anywhere)
def test_a_restart_is_never_refused_and_always_moves_generation_and_wave(steps):
    for step in steps:
        after = apply(step.after, Restarted())
        assert isinstance(after, Rollout)
        assert after.phase is Mode.SHADOW.at_most(step.after.phase)
        assert after.generation == step.after.generation + 1
        assert after.wave == (0 if after.phase is Mode.OFF else step.after.last_wave + 1)


@given(anywhere)
def test_the_salt_epoch_rises_by_one_exactly_when_a_rollout_that_is_not_off_restarts(steps):
    for before, event, _, after in steps:
        is_drawn_anew = isinstance(event, Restarted) and before.phase is not Mode.OFF
        assert after.salt_epoch == before.salt_epoch + is_drawn_anew


@given(histories(promotions=False))
def test_without_a_promotion_nobody_ever_gets_more_than_shadow(steps):
    assert all(step.after.phase.rank <= Mode.SHADOW.rank for step in steps)


@given(anywhere)
def test_only_a_promotion_raises_a_mode_or_a_share(steps):
    for before, event, _, after in steps:
        if isinstance(event, RolloutPromoted):
            continue
        is_resumed = isinstance(event, RolloutResumed) and before.phase is Mode.OFF
        assert after.phase.rank <= before.phase.rank or is_resumed
        if after.phase is before.phase and not isinstance(event, Restarted):
            assert after.treated_bps <= before.treated_bps


@given(anywhere)
def test_no_step_of_the_ladder_is_skipped(steps):
    assert all(step.after.phase.rank - step.before.phase.rank <= 1 for step in steps)


@given(histories(), rosters)
def test_the_enforced_share_never_exceeds_the_ceiling(steps, roster):
    for step in steps:
        rollout = step.after
        if rollout.phase is Mode.ENFORCE:
            assert rollout.treated_bps <= rollout.ceiling_bps
            share = rollout.treated_bps
            drawn = draw("internal", rollout.guard, rollout.salt, roster, share_bps=share)
            assert drawn.treated <= treated_count(rollout.ceiling_bps, len(roster))


@given(anywhere)
def test_the_generation_moves_by_one_with_phase_wave_share_pin_and_restart_alone(steps):
    for before, event, _, after in steps:
        differs = what_generation_follows(before) != what_generation_follows(after)
        changed = differs or isinstance(event, Restarted)
        assert after.generation == before.generation + changed
        assert (after is before) is not changed


@given(anywhere)
def test_a_wave_that_opens_has_a_number_that_was_never_used(steps):
    for before, _, _, after in steps:
        opens = after is not before and after.wave > 0
        assert after.last_wave == before.last_wave + opens
        assert not opens or after.wave == after.last_wave


@given(histories())
def test_the_open_wave_and_the_membership_wave_fit_the_phase(steps):
    for step in steps:
        rollout = step.after
        assert rollout.wave in {0, rollout.last_wave}
        assert (rollout.membership_wave > 0) is (rollout.phase.rank > Mode.SHADOW.rank)
        assert rollout.wave > 0 or rollout.phase is not Mode.ENFORCE


@given(anywhere, settable)
def test_switching_a_cohort_off_is_never_refused(steps, cohort):
    after = apply(steps[-1].after, ModeLowered(cohort, Mode.OFF))
    assert isinstance(after, Rollout)
    assert after.phase is Mode.OFF


@given(anywhere, settable, modes)
def test_a_lowering_that_is_sent_again_changes_nothing_more(steps, cohort, mode):
    event = ModeLowered(cohort, mode)
    once = apply(steps[-1].after, event)
    if isinstance(once, Rollout):
        assert apply(once, event) is once


@given(anywhere)
def test_a_refusal_has_a_sentence_that_names_what_was_asked_or_what_is(steps):
    for step in steps:
        if isinstance(step.answer, Refusal):
            assert step.after is step.before
            assert len(step.answer.sentence.split()) >= 6
