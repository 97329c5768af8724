"""Modes of a cohort: lowered at once, without effect when repeated, never raised."""

from dataclasses import replace

import pytest

from guardwave.control_plane.commands.cohorts import CohortAnswer, CohortChange, set_cohort_mode
from guardwave.control_plane.commands.rollback import FoundViolation, latch
from guardwave.control_plane.commands.waves import start_wave
from guardwave.control_plane.core.errors import (
    GateRequired,
    InvalidField,
    Latched,
    NotFound,
    PreconditionFailed,
    PreconditionRequired,
    RuleViolated,
    StepSkipped,
    WaveFrozenField,
)
from guardwave.control_plane.core.etags import rollout_etag
from guardwave.control_plane.core.state import Action
from guardwave.control_plane.rollouts.changes import Change, Note, change, put_rollout
from guardwave.reducer.vocabulary import Invariant, Mode
from tests.support.worlds import ENVIRONMENT, GUARD, NOW, OPERATOR, WHY, context_over, world_in


@pytest.fixture(params=[Mode.WARN, Mode.ENFORCE])
def raised(store, request):
    return world_in(context_over(store), request.param)


@pytest.fixture
def enforced(store):
    return world_in(context_over(store), Mode.ENFORCE)


@pytest.fixture
def warned(store):
    return world_in(context_over(store), Mode.WARN)


@pytest.fixture
def off(store):
    world = world_in(context_over(store), Mode.SHADOW)
    set_mode(world, "everyone", Mode.OFF)
    return world


def set_mode(world, cohort: str, mode: Mode | None, **how) -> CohortAnswer:
    asked = CohortChange(mode=mode, share_bps=how.pop("share_bps", None))
    how.setdefault("reason", WHY)
    return set_cohort_mode(
        world.context, ENVIRONMENT, GUARD, cohort, change=asked, actor=OPERATOR, **how
    )


def rollout(world):
    found = world.context.environments.rollout(ENVIRONMENT, GUARD)
    assert found is not None
    return found


def entries(world) -> int:
    return len(world.context.environments.audit_entries(ENVIRONMENT))


def test_setting_enforced_to_warn_closes_the_wave_and_keeps_the_roster(enforced):
    answer = set_mode(enforced, "enforced", Mode.WARN)
    after = rollout(enforced)
    assert answer == CohortAnswer(after, changed=True)
    assert (after.phase, after.wave, after.membership_wave) == (Mode.WARN, 0, 2)
    wave = enforced.context.environments.wave(ENVIRONMENT, GUARD, 2)
    assert wave is not None
    assert wave.closed_at == NOW


def test_lowering_again_changes_nothing_and_makes_no_entry(raised):
    cohort = "warned" if rollout(raised).phase is Mode.WARN else "enforced"
    set_mode(raised, cohort, Mode.SHADOW)
    before, count = rollout(raised), entries(raised)
    assert not set_mode(raised, cohort, Mode.SHADOW).changed
    assert (rollout(raised), entries(raised)) == (before, count)


def test_a_dry_run_reports_the_change_and_makes_none(enforced):
    before = rollout(enforced)
    answer = set_mode(enforced, "enforced", Mode.SHADOW, is_dry_run=True)
    assert (answer.changed, answer.rollout.phase) == (True, Mode.SHADOW)
    assert rollout(enforced) == before


def test_lowering_is_possible_while_latched(enforced):
    latch(
        enforced.context,
        ENVIRONMENT,
        [FoundViolation("r", Invariant.MODE_MISMATCH, GUARD, Mode.WARN, 1)],
    )
    assert set_mode(enforced, "everyone", Mode.OFF).rollout.phase is Mode.OFF


def test_off_is_resumed_by_its_own_cohort_and_opens_a_shadow_wave(off):
    before = rollout(off)
    answer = set_mode(off, "everyone", Mode.SHADOW, if_match=rollout_etag(before))
    after = rollout(off)
    assert answer.changed
    assert (after.phase, after.wave) == (Mode.SHADOW, before.last_wave + 1)
    newest = off.context.environments.audit_entries(ENVIRONMENT)
    assert Action.RESUMED in {entry["action"] for entry in newest}


@pytest.mark.parametrize("cohort", ["warned", "holdback", "enforced", "control"])
def test_while_off_shadow_for_another_cohort_changes_nothing(off, cohort):
    before, count = rollout(off), entries(off)
    assert not set_mode(off, cohort, Mode.SHADOW).changed
    assert (rollout(off), entries(off)) == (before, count)


def test_resuming_needs_to_know_what_is_resumed(off):
    with pytest.raises(PreconditionRequired):
        set_mode(off, "everyone", Mode.SHADOW)
    with pytest.raises(PreconditionFailed):
        set_mode(off, "everyone", Mode.SHADOW, if_match='"stale"')


def test_a_stale_if_match_is_refused_for_lowering_too(enforced):
    with pytest.raises(PreconditionFailed):
        set_mode(enforced, "enforced", Mode.WARN, if_match='"stale"')


@pytest.mark.parametrize(
    ("cohort", "mode", "error"),
    [
        pytest.param("enforced", Mode.ENFORCE, GateRequired, id="the next step without a gate"),
        pytest.param("control", Mode.ENFORCE, RuleViolated, id="a control above its line"),
        pytest.param("holdback", Mode.WARN, RuleViolated, id="a holdback above its line"),
        pytest.param("ineligible", Mode.SHADOW, RuleViolated, id="a cohort the phase gives"),
        pytest.param("nobody", Mode.SHADOW, NotFound, id="a cohort that is none"),
        pytest.param("../warned", Mode.SHADOW, NotFound, id="a path"),
    ],
)
def test_steps_that_the_ladder_does_not_allow_are_refused(warned, cohort, mode, error):
    before = rollout(warned)
    with pytest.raises(error):
        set_mode(warned, cohort, mode)
    assert rollout(warned) == before


def test_enforce_from_shadow_skips_a_step(store):
    world = world_in(context_over(store), Mode.SHADOW)
    with pytest.raises(StepSkipped):
        set_mode(world, "enforced", Mode.ENFORCE)


@pytest.mark.parametrize("reason", ["", "too short", "   short   "])
def test_a_reason_has_ten_characters(enforced, reason):
    with pytest.raises(InvalidField, match="say why in at least 10"):
        set_mode(enforced, "enforced", Mode.WARN, reason=reason)


def test_a_digest_without_its_evaluation_is_refused(enforced):
    with pytest.raises(InvalidField, match="one is missing"):
        set_cohort_mode(
            enforced.context,
            ENVIRONMENT,
            GUARD,
            "enforced",
            change=CohortChange(digest="f" * 64),
            actor=OPERATOR,
            reason=WHY,
        )


def test_a_share_alone_never_changes(enforced):
    assert not set_mode(enforced, "enforced", None, share_bps=500).changed
    with pytest.raises(GateRequired):
        set_mode(enforced, "enforced", None, share_bps=501)
    with pytest.raises(WaveFrozenField):
        set_mode(enforced, "enforced", None, share_bps=499)


@pytest.mark.parametrize("mode", [None, "given"])
@pytest.mark.parametrize(
    ("phase", "cohort", "to", "share_bps"),
    [
        pytest.param(Mode.WARN, "enforced", Mode.ENFORCE, 500, id="enforced in warn"),
        pytest.param(Mode.SHADOW, "warned", Mode.WARN, 8000, id="warned in shadow"),
    ],
)
def test_a_step_with_its_share_asks_for_a_gate(store, phase, cohort, to, share_bps, mode):
    world = world_in(context_over(store), phase)
    with pytest.raises(GateRequired, match=f"Raising {cohort} to {to} is a promotion") as refused:
        set_mode(world, cohort, to if mode else None, share_bps=share_bps)
    assert str(refused.value.extras["links"]).endswith("gate-evaluations'}")


@pytest.mark.parametrize("cohort", ["control", "warned", "everyone", "ineligible"])
def test_a_share_alone_is_set_of_the_treated_cohort_only(enforced, cohort):
    with pytest.raises(RuleViolated, match=f"a share is set of enforced, not of {cohort}") as no:
        set_mode(enforced, cohort, None, share_bps=500)
    assert "'pointer': '/share_bps'" in str(no.value.extras["errors"])


def test_a_share_does_not_hinder_a_demotion(enforced):
    assert set_mode(enforced, "enforced", Mode.WARN, share_bps=300).rollout.phase is Mode.WARN
    assert not set_mode(enforced, "enforced", Mode.WARN, share_bps=300).changed


def test_the_share_of_a_running_wave_is_frozen_with_its_mode_named_too(enforced):
    with pytest.raises(WaveFrozenField):
        set_mode(enforced, "enforced", Mode.ENFORCE, share_bps=499)


def restart(world, *, looks=None, pin=None, if_match: str | None = ""):
    return start_wave(
        world.context,
        ENVIRONMENT,
        GUARD,
        version_pin=pin,
        looks=looks,
        actor=OPERATOR,
        reason=WHY,
        if_match=rollout_etag(rollout(world)) if if_match == "" else if_match,
    )


def test_a_restarted_wave_keeps_phase_share_and_pin(warned):
    before = rollout(warned)
    after, wave = restart(warned, looks=(7, 14))
    assert (after.phase, after.treated_bps, after.generation) == (
        before.phase,
        before.treated_bps,
        before.generation + 1,
    )
    assert (wave.number, wave.version_pin, wave.looks) == (3, before.version_pin, (7, 14))
    old = warned.context.environments.wave(ENVIRONMENT, GUARD, 2)
    assert old is not None
    assert old.closed_at == NOW


def test_a_restarted_enforce_wave_treats_at_most_the_ceiling(enforced):
    lowered = replace(rollout(enforced), ceiling_bps=300)
    note = Note(OPERATOR, Action.WAVE_STARTED, GUARD, WHY)
    change(
        enforced.context,
        ENVIRONMENT,
        lambda before: Change(before, (put_rollout(lowered),), note, None),
    )
    after, wave = restart(enforced)
    assert (after.treated_bps, wave.treated_bps) == (300, 300)


def test_a_wave_after_a_demotion_to_warn_draws_a_new_holdback(enforced):
    set_mode(enforced, "enforced", Mode.WARN)
    after, wave = restart(enforced)
    assert (after.phase, wave.treated_bps) == (Mode.WARN, 8000)


def test_a_restart_needs_to_know_what_is_restarted(warned):
    with pytest.raises(PreconditionRequired):
        restart(warned, if_match=None)
    with pytest.raises(PreconditionFailed):
        restart(warned, if_match='"stale"')


def test_nothing_is_restarted_above_shadow_while_latched(warned):
    latched = rollout(warned)
    latch(
        warned.context,
        ENVIRONMENT,
        [FoundViolation("r", Invariant.MODE_MISMATCH, GUARD, Mode.WARN, 1)],
    )
    assert rollout(warned).phase is Mode.SHADOW
    warned.store_rollout(latched)
    with pytest.raises(Latched):
        restart(warned)


def test_off_has_no_wave_to_restart(off):
    with pytest.raises(StepSkipped):
        restart(off)


@pytest.mark.parametrize("looks", [(), (0, 7), (7, 7), (14, 7), (91,), tuple(range(7, 17))])
def test_looks_are_a_few_rising_numbers_of_days(warned, looks):
    with pytest.raises(InvalidField, match="rising numbers of complete days, up to 90"):
        restart(warned, looks=looks)


def test_no_look_comes_before_the_dwell(warned):
    with pytest.raises(RuleViolated, match="after 6 complete days and the policy asks for 7") as no:
        restart(warned, looks=(6, 14))
    assert "'pointer': '/looks/0'" in str(no.value.extras["errors"])


@pytest.mark.parametrize("pin", [(), ("",), ("x" * 65,), (" 1.4",), ("1\n4",), ("v",) * 17])
def test_a_version_pin_is_a_short_list_of_names(warned, pin):
    with pytest.raises(InvalidField):
        restart(warned, pin=pin)
