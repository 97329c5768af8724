"""Requirements on another environment: it took the step, treats somebody, and stands there."""

from collections.abc import Callable

import pytest

from guardwave.control_plane.commands.cohorts import CohortChange, set_cohort_mode
from guardwave.control_plane.commands.environments import create_environment, create_rollout
from guardwave.control_plane.commands.rollback import FoundViolation, latch, roll_back
from guardwave.control_plane.commands.waves import start_wave
from guardwave.control_plane.core.errors import StateConflict
from guardwave.control_plane.core.etags import rollout_etag
from guardwave.control_plane.core.state import PromotionStatus
from guardwave.reducer.vocabulary import Invariant, Mode
from tests.support.hosts import Calendar
from tests.support.latches import release
from tests.support.lives import BEGAN, Life
from tests.support.worlds import ENVIRONMENT, GUARD, OPERATOR, VERSION, WHY

PUBLIC = "public-cloud"
NEXT = "2.0.0"
Change = Callable[[Life], object]


@pytest.fixture
def public(store):
    """An environment that requires internal, which is not there yet."""
    found = Life.begin(store, environment=PUBLIC, calendar=Calendar(BEGAN))
    found.live(1)
    return found


@pytest.fixture
def internal(store, public):
    """The required environment, three days in shadow; 3 % of its 40 owners are one."""
    found = Life.begin(store, owners=40, calendar=public.calendar)
    found.live(3)
    return found


def restart(life: Life, *, pin: tuple[str, ...] | None) -> None:
    start_wave(
        life.context,
        life.environment,
        GUARD,
        version_pin=pin,
        looks=None,
        actor=OPERATOR,
        reason=WHY,
        if_match=rollout_etag(life.rollout),
    )


def set_cohort(life: Life, cohort: str, mode: Mode) -> None:
    asked = CohortChange(mode=mode)
    set_cohort_mode(
        life.context, ENVIRONMENT, GUARD, cohort, change=asked, actor=OPERATOR, reason=WHY
    )


def violate(life: Life) -> None:
    found = FoundViolation("record 1", Invariant.CONTRACT_VIOLATION, GUARD, Mode.WARN, 1)
    latch(life.context, ENVIRONMENT, [found])


def violate_and_acknowledge(life: Life) -> None:
    violate(life)
    release(life.context)


def roll(life: Life) -> None:
    roll_back(life.context, ENVIRONMENT, actor=OPERATOR, reason=WHY)


def warn(life: Life) -> None:
    assert life.promote(Mode.WARN).status is PromotionStatus.DONE


def enforce(life: Life, share_bps: int = 500) -> None:
    done = life.promote(Mode.ENFORCE, share_bps=share_bps)
    assert done.status is PromotionStatus.DONE


def refusal(public: Life, to: Mode, *, share_bps: int | None = None) -> str:
    """Return what the step is refused with; the same when the worker would carry it out."""
    with pytest.raises(StateConflict) as refused:
        public.ask_promotion(public.within(), to, share_bps=share_bps)
    return str(refused.value)


def test_a_required_environment_that_is_not_there_holds_the_step(public):
    said = refusal(public, Mode.WARN)
    assert said == (
        f"{PUBLIC} requires that internal took the step to warn first and stands there; {GUARD} "
        "has no rollout there"
    )
    create_environment(public.context, ENVIRONMENT, requires=None, actor=OPERATOR, reason=WHY)
    assert refusal(public, Mode.WARN) == said
    create_rollout(
        public.context, ENVIRONMENT, GUARD, version_pin=(VERSION,), actor=OPERATOR, reason=WHY
    )
    assert refusal(public, Mode.WARN).endswith(f"{GUARD} there is in shadow")


def test_a_step_that_the_required_environment_took_is_taken_after_it(internal, public):
    warn(internal)
    assert public.promote(Mode.WARN).status is PromotionStatus.DONE
    assert refusal(public, Mode.ENFORCE).endswith(f"{GUARD} there is in warn")


def lower_to_off(life: Life) -> None:
    set_cohort(life, "warned", Mode.OFF)


@pytest.mark.parametrize(
    ("since", "said"),
    [
        pytest.param(violate, "internal is latched by rollback 1", id="latched"),
        pytest.param(violate_and_acknowledge, "there is in shadow", id="latched and released"),
        pytest.param(roll, "there is in shadow", id="rolled back"),
        pytest.param(lower_to_off, "there is in off", id="switched off"),
    ],
)
def test_a_required_environment_that_fell_since_holds_the_step(
    internal, public, since: Change, said
):
    warn(internal)
    waits = public.ask_promotion(public.within(), Mode.WARN)
    since(internal)
    assert refusal(public, Mode.WARN).endswith(said)
    public.work()
    held = public.promotion(waits.id)
    assert held.status is PromotionStatus.REFUSED
    assert (held.refusal or "").endswith(said)
    assert public.rollout.phase is Mode.SHADOW


def test_a_roster_with_nobody_treated_has_not_taken_the_step(store, public):
    tiny = Life.begin(store, owners=1, calendar=public.calendar)
    tiny.live(1)
    warn(tiny)
    assert (tiny.wave.roster_size, tiny.wave.treated) == (1, 0)
    assert refusal(public, Mode.WARN).endswith("the warn wave 2 there treats nobody")


def test_a_version_that_the_required_environment_did_not_pass_with_is_named(internal, public):
    warn(internal)
    restart(public, pin=(VERSION, NEXT))
    assert refusal(public, Mode.WARN).endswith("wave 2 there pins 1.4.0, without 2.0.0")
    restart(public, pin=(VERSION,))
    assert public.ask_promotion(public.within(), Mode.WARN).id


def test_a_version_that_the_required_environment_left_out_since_is_named(internal, public):
    restart(internal, pin=(VERSION, NEXT))
    warn(internal)
    enforce(internal)
    restart(internal, pin=(VERSION,))
    restart(public, pin=(VERSION, NEXT))
    assert refusal(public, Mode.WARN).endswith(
        "the rollout there, in enforce, now pins 1.4.0, without 2.0.0"
    )
    restart(public, pin=(VERSION,))
    assert public.promote(Mode.WARN).status is PromotionStatus.DONE


def test_fewer_versions_than_the_required_environment_passed_with_are_enough(internal, public):
    restart(internal, pin=(VERSION, NEXT))
    warn(internal)
    assert public.promote(Mode.WARN).status is PromotionStatus.DONE


def test_an_environment_further_up_has_taken_the_steps_below(internal, public):
    warn(internal)
    enforce(internal)
    assert public.promote(Mode.WARN).status is PromotionStatus.DONE


def test_an_environment_that_was_lowered_to_a_phase_is_still_there(internal, public):
    warn(internal)
    enforce(internal)
    set_cohort(internal, "enforced", Mode.WARN)
    assert internal.rollout.wave == 0
    assert public.promote(Mode.WARN).status is PromotionStatus.DONE


def test_a_larger_share_is_a_step_that_the_required_environment_takes_first(internal, public):
    for life in (internal, public):
        warn(life)
    enforce(internal, 300)
    said = refusal(public, Mode.ENFORCE)
    assert "took the step to enforce for 500 basis points first" in said
    assert said.endswith("wave 3 there is enforce for 300 basis points")
    enforce(public, 300)
    enforce(internal, 500)
    enforce(public, 500)


def test_a_step_that_was_taken_stays_when_the_required_environment_falls(internal, public):
    warn(internal)
    assert public.promote(Mode.WARN).status is PromotionStatus.DONE
    roll(internal)
    assert public.rollout.phase is Mode.WARN
