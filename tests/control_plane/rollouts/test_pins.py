"""Version pins: a version starts in shadow, and no wave above pins what no gate has judged."""

import pytest

from guardwave.control_plane.commands.cohorts import CohortChange, set_cohort_mode
from guardwave.control_plane.commands.rollback import roll_back
from guardwave.control_plane.commands.waves import start_wave
from guardwave.control_plane.core.errors import StepSkipped
from guardwave.control_plane.core.etags import rollout_etag
from guardwave.reducer.vocabulary import Mode
from tests.support.lives import Life
from tests.support.worlds import ENVIRONMENT, GUARD, OPERATOR, VERSION, WHY

NEXT = "2.0.0"


@pytest.fixture
def life(store):
    """A rollout whose shadow wave pins two versions."""
    found = Life.begin(store)
    found.live(1)
    restart(found, VERSION, NEXT)
    return found


def restart(life: Life, *pin: str):
    _, wave = start_wave(
        life.context,
        ENVIRONMENT,
        GUARD,
        version_pin=pin or None,
        looks=None,
        actor=OPERATOR,
        reason=WHY,
        if_match=rollout_etag(life.rollout),
    )
    return wave


def climb(life: Life, to: Mode) -> None:
    for phase in list(Mode)[Mode.WARN.rank : to.rank + 1]:
        assert life.promote(phase).refusal is None


def lower(life: Life, cohort: str, mode: Mode) -> None:
    asked = CohortChange(mode=mode)
    set_cohort_mode(
        life.context, ENVIRONMENT, GUARD, cohort, change=asked, actor=OPERATOR, reason=WHY
    )


@pytest.mark.parametrize("phase", [Mode.WARN, Mode.ENFORCE])
def test_above_shadow_a_pin_is_kept_or_narrowed(life, phase):
    climb(life, phase)
    assert restart(life).version_pin == (VERSION, NEXT)
    assert restart(life, NEXT, VERSION).version_pin == (VERSION, NEXT)
    assert restart(life, NEXT).version_pin == (NEXT,)
    assert life.rollout.phase is phase


@pytest.mark.parametrize("phase", [Mode.WARN, Mode.ENFORCE])
@pytest.mark.parametrize(
    ("pin", "said"),
    [
        pytest.param(
            ("3.0.0",), "version 3.0.0 was left out of the pin, or passed no gate", id="another one"
        ),
        pytest.param(
            (VERSION, "3.0.0"),
            "version 3.0.0 was left out of the pin, or passed no gate",
            id="one beside",
        ),
        pytest.param(
            (VERSION, "4.0.0", "3.0.0"),
            "versions 3.0.0, 4.0.0 were left out of the pin, or passed no gate",
            id="two",
        ),
    ],
)
def test_above_shadow_a_version_that_no_gate_judged_is_refused(life, phase, pin, said):
    climb(life, phase)
    before = life.rollout
    with pytest.raises(StepSkipped, match=f"{said}.*start a shadow wave that pins"):
        restart(life, *pin)
    assert life.rollout == before


def test_a_version_that_a_pin_left_does_not_come_back_above_shadow(life):
    climb(life, Mode.WARN)
    restart(life, VERSION)
    with pytest.raises(StepSkipped, match=f"version {NEXT} was left out of the pin"):
        restart(life, VERSION, NEXT)


def test_a_wave_after_a_demotion_to_warn_pins_no_new_version(life):
    climb(life, Mode.ENFORCE)
    lower(life, "enforced", Mode.WARN)
    with pytest.raises(StepSkipped, match="in warn a wave keeps the pin"):
        restart(life, "3.0.0")


def test_in_shadow_any_version_is_pinned_and_comes_up_by_its_gates(life):
    climb(life, Mode.ENFORCE)
    roll_back(life.context, ENVIRONMENT, actor=OPERATOR, reason=WHY)
    assert restart(life, "3.0.0").version_pin == ("3.0.0",)
    climb(life, Mode.WARN)
    assert life.wave.version_pin == ("3.0.0",)


def test_in_shadow_after_a_demotion_any_version_is_pinned(life):
    climb(life, Mode.WARN)
    lower(life, "warned", Mode.SHADOW)
    assert restart(life, "3.0.0").version_pin == ("3.0.0",)
