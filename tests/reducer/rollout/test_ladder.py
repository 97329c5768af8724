"""Ladder: its steps, one at a time."""

from dataclasses import replace

import pytest

from guardwave.reducer.rollout.ladder import (
    ModeLowered,
    Refusal,
    RefusalCode,
    Restarted,
    RolloutPromoted,
    RolloutResumed,
    WaveStarted,
    apply,
)
from guardwave.reducer.rollout.state import Rollout, gate_for
from guardwave.reducer.vocabulary import Cohort, Gate, Mode
from tests.strategies import SALT, wave

PIN = ("1.0.0",)


def rollout_in(phase: Mode, treated_bps: int = 10_000) -> Rollout:
    """Return a rollout that was promoted to the phase, one wave a step."""
    rollout = Rollout("internal", "repeated_tool_failure", PIN, SALT)
    if phase is Mode.OFF:
        return accept(apply(rollout, ModeLowered(Cohort.EVERYONE, Mode.OFF)))
    if phase.rank >= Mode.WARN.rank:
        share = 8000 if phase is Mode.ENFORCE else treated_bps
        rollout = accept(apply(rollout, RolloutPromoted(wave(Mode.WARN, 2, treated_bps=share))))
    if phase is Mode.ENFORCE:
        event = RolloutPromoted(wave(phase, 3, treated_bps=min(treated_bps, 500)))
        rollout = accept(apply(rollout, event))
    return rollout


def accept(answer: Rollout | Refusal) -> Rollout:
    assert isinstance(answer, Rollout)
    return answer


def refuse(answer: Rollout | Refusal) -> Refusal:
    assert isinstance(answer, Refusal)
    return answer


def test_a_new_rollout_starts_in_shadow_with_its_shadow_wave_open():
    rollout = Rollout("internal", "repeated_tool_failure", PIN, SALT)
    assert (rollout.phase, rollout.wave, rollout.membership_wave) == (Mode.SHADOW, 1, 0)
    assert rollout.ceiling_bps == 500


# Phase, cohort, and the answers when off, shadow, warn, enforce is asked for: a mode is the phase
# afterwards, anything else the code of the refusal.
LOWERINGS = """
off     everyone  off step_skipped above_cohort above_cohort
off     warned    off off step_skipped above_cohort
off     holdback  off off above_cohort above_cohort
off     enforced  off off step_skipped step_skipped
off     control   off off step_skipped above_cohort
shadow  everyone  off shadow above_cohort above_cohort
shadow  warned    off shadow gate_required above_cohort
shadow  holdback  off shadow above_cohort above_cohort
shadow  enforced  off shadow step_skipped step_skipped
shadow  control   off shadow step_skipped above_cohort
warn    everyone  off shadow above_cohort above_cohort
warn    warned    off shadow warn above_cohort
warn    holdback  off warn above_cohort above_cohort
warn    enforced  off shadow warn gate_required
warn    control   off shadow warn above_cohort
enforce everyone  off shadow above_cohort above_cohort
enforce warned    off shadow warn above_cohort
enforce holdback  off shadow above_cohort above_cohort
enforce enforced  off shadow warn enforce
enforce control   off shadow enforce above_cohort
"""


@pytest.mark.parametrize(
    ("phase", "cohort", "answers"),
    [
        pytest.param(phase, cohort, answers, id=f"{cohort} while in {phase}")
        for phase, cohort, *answers in map(str.split, LOWERINGS.strip().splitlines())
    ],
)
def test_setting_a_cohorts_mode_without_a_gate_lowers_or_is_refused(phase, cohort, answers):
    rollout = rollout_in(Mode(phase))
    found = []
    for mode in Mode:
        answer = apply(rollout, ModeLowered(Cohort(cohort), mode))
        found.append(str(answer.code if isinstance(answer, Refusal) else answer.phase))
    assert found == answers


def test_asking_for_shadow_while_off_is_pointed_to_the_free_step():
    answer = refuse(apply(rollout_in(Mode.OFF), ModeLowered(Cohort.EVERYONE, Mode.SHADOW)))
    assert "from off to shadow the step is free" in answer.sentence


@pytest.mark.parametrize("cohort", [Cohort.OUTSIDE, Cohort.INELIGIBLE])
def test_a_cohort_that_follows_the_phase_cannot_be_set(cohort):
    answer = refuse(apply(rollout_in(Mode.WARN), ModeLowered(cohort, Mode.OFF)))
    assert answer.code is RefusalCode.UNKNOWN_COHORT
    assert "control, enforced, everyone, holdback, warned" in answer.sentence


def test_lowering_enforced_to_warn_closes_the_wave_and_keeps_its_roster():
    before = rollout_in(Mode.ENFORCE)
    after = accept(apply(before, ModeLowered(Cohort.ENFORCED, Mode.WARN)))
    assert (after.phase, after.wave, after.last_wave) == (Mode.WARN, 0, 3)
    assert after.membership_wave == 3
    assert after.salt_epoch == before.salt_epoch


def test_lowering_to_shadow_forgets_the_roster():
    after = accept(apply(rollout_in(Mode.WARN), ModeLowered(Cohort.WARNED, Mode.SHADOW)))
    assert (after.phase, after.wave, after.membership_wave) == (Mode.SHADOW, 0, 0)


@pytest.mark.parametrize("phase", [Mode.SHADOW, Mode.WARN, Mode.ENFORCE])
def test_a_restart_opens_a_shadow_wave_under_a_new_salt_from_any_phase(phase):
    before = rollout_in(phase)
    after = accept(apply(before, Restarted()))
    assert (after.phase, after.wave, after.salt_epoch) == (Mode.SHADOW, before.last_wave + 1, 1)
    assert after.generation == before.generation + 1


def test_a_restart_of_off_moves_only_the_generation():
    before = rollout_in(Mode.OFF)
    after = accept(apply(before, Restarted()))
    assert after == replace(before, generation=before.generation + 1)


def test_off_to_shadow_is_free_and_opens_a_shadow_wave():
    after = accept(apply(rollout_in(Mode.OFF), RolloutResumed()))
    assert (after.phase, after.wave, after.salt_epoch) == (Mode.SHADOW, 2, 0)


@pytest.mark.parametrize("phase", [Mode.SHADOW, Mode.WARN, Mode.ENFORCE])
def test_only_a_rollout_that_is_off_can_be_resumed(phase):
    answer = refuse(apply(rollout_in(phase), RolloutResumed()))
    assert (answer.code, answer.sentence) == (
        RefusalCode.NOT_OFF,
        f"the rollout is in {phase}, not off",
    )


@pytest.mark.parametrize(
    ("phase", "to", "share", "outcome"),
    [
        pytest.param("off", "shadow", 10_000, "step_skipped", id="off to shadow is no promotion"),
        pytest.param("off", "warn", 8000, "step_skipped", id="over shadow"),
        pytest.param("shadow", "warn", 8000, "warn", id="shadow to warn"),
        pytest.param("shadow", "enforce", 500, "step_skipped", id="over warn"),
        pytest.param("shadow", "shadow", 10_000, "step_skipped", id="shadow again"),
        pytest.param("warn", "warn", 10_000, "step_skipped", id="warn again"),
        pytest.param("warn", "enforce", 500, "enforce", id="warn to enforce at the ceiling"),
        pytest.param("warn", "enforce", 501, "above_ceiling", id="one basis point too many"),
        pytest.param("enforce", "enforce", 300, "enforce", id="a larger share"),
        pytest.param("enforce", "enforce", 200, "step_skipped", id="the same share"),
        pytest.param("enforce", "enforce", 100, "step_skipped", id="a smaller share"),
        pytest.param("enforce", "enforce", 501, "above_ceiling", id="a share over the ceiling"),
        pytest.param("enforce", "warn", 8000, "step_skipped", id="down is no promotion"),
    ],
)
def test_a_promotion_takes_one_step(phase, to, share, outcome):
    rollout = rollout_in(Mode(phase), treated_bps=200)
    number = rollout.last_wave + 1
    answer = apply(rollout, RolloutPromoted(wave(Mode(to), number, treated_bps=share)))
    assert (answer.code if isinstance(answer, Refusal) else answer.phase) == outcome


def test_an_attested_ceiling_lets_a_larger_share_through():
    attested = replace(rollout_in(Mode.ENFORCE), ceiling_bps=2500)
    after = accept(apply(attested, RolloutPromoted(wave(Mode.ENFORCE, 4, treated_bps=2500))))
    assert after.treated_bps == 2500


@pytest.mark.parametrize("number", [2, 4], ids=["a number used before", "a number left out"])
@pytest.mark.parametrize("event", [RolloutPromoted, WaveStarted])
def test_a_wave_prepared_before_something_else_happened_is_refused(event, number):
    rollout = rollout_in(Mode.WARN)
    phase = Mode.ENFORCE if event is RolloutPromoted else Mode.WARN
    answer = refuse(apply(rollout, event(wave(phase, number, treated_bps=500))))
    assert answer.code is RefusalCode.WAVE_OUT_OF_ORDER
    assert f"the next wave is 3, not {number}" in answer.sentence


def test_a_promotion_cannot_bring_in_a_version_that_its_gate_did_not_see():
    event = RolloutPromoted(wave(Mode.ENFORCE, 3, treated_bps=500, pin=("1.0.0", "2.0.0")))
    answer = refuse(apply(rollout_in(Mode.WARN), event))
    assert answer.code is RefusalCode.WAVE_OUT_OF_ORDER
    assert "versions 1.0.0;" in answer.sentence


@pytest.mark.parametrize("phase", [Mode.SHADOW, Mode.WARN, Mode.ENFORCE])
def test_a_wave_restarts_with_a_new_pin_and_the_same_share(phase):
    before = rollout_in(phase, treated_bps=400)
    again = wave(phase, before.last_wave + 1, treated_bps=before.treated_bps, pin=("2.0.0",))
    after = accept(apply(before, WaveStarted(again)))
    assert (after.phase, after.treated_bps) == (phase, before.treated_bps)
    assert (after.version_pin, after.wave) == (("2.0.0",), before.last_wave + 1)
    assert after.membership_wave == (0 if phase is Mode.SHADOW else after.wave)
    assert after.generation == before.generation + 1


@pytest.mark.parametrize(
    ("phase", "to", "share", "ceiling", "code"),
    [
        pytest.param("off", "off", 10_000, 500, "step_skipped", id="off has no wave"),
        pytest.param("shadow", "warn", 8000, 500, "step_skipped", id="another phase"),
        pytest.param("enforce", "enforce", 401, 500, "gate_required", id="a larger share"),
        pytest.param("warn", "warn", 401, 500, "gate_required", id="a smaller holdback"),
        pytest.param("enforce", "enforce", 400, 300, "above_ceiling", id="the ceiling fell"),
    ],
)
def test_a_restarted_wave_is_no_back_door_to_a_promotion(phase, to, share, ceiling, code):
    rollout = replace(rollout_in(Mode(phase), treated_bps=400), ceiling_bps=ceiling)
    event = WaveStarted(wave(Mode(to), rollout.last_wave + 1, treated_bps=share))
    assert refuse(apply(rollout, event)).code == code


def test_a_restart_may_treat_fewer_as_when_the_ceiling_fell():
    rollout = replace(rollout_in(Mode.ENFORCE, treated_bps=400), ceiling_bps=300)
    after = accept(apply(rollout, WaveStarted(wave(Mode.ENFORCE, 4, treated_bps=300))))
    assert after.treated_bps == 300


@pytest.mark.parametrize(
    ("phase", "gate"),
    [
        pytest.param(Mode.OFF, None, id="off is left freely"),
        pytest.param(Mode.SHADOW, Gate.SHADOW, id="shadow"),
        pytest.param(Mode.WARN, Gate.WARN, id="warn"),
        pytest.param(Mode.ENFORCE, Gate.ENFORCE, id="enforce, to a larger share"),
    ],
)
def test_each_phase_above_off_has_the_gate_of_its_name(phase, gate):
    assert gate_for(phase) is gate
