"""Rosters too small: 5 % of nineteen owners treats nobody, and every view of the wave says so."""

import pytest

from guardwave.control_plane.queries import conditions
from guardwave.control_plane.queries.cards import card
from guardwave.control_plane.queries.conditions import nobody_would_be_treated
from guardwave.control_plane.queries.gates import gate_page
from guardwave.control_plane.queries.rollbacks import rollback_page
from guardwave.control_plane.rollouts.days import wave_days
from guardwave.reducer.vocabulary import Mode
from tests.support.lives import Life
from tests.support.worlds import ENVIRONMENT, GUARD, environment_of

NOBODY = "Nobody is enforced: 19 owners are too few for 5 %."


def enforced(store, *, owners: int) -> Life:
    life = Life.begin(store, owners=owners)
    life.live(3)
    for mode in (Mode.WARN, Mode.ENFORCE):
        life.promote(mode)
    return life


def shown(life: Life):
    held = environment_of(life.context)
    return card(life.context, held, life.rollout)


@pytest.mark.parametrize(
    ("owners", "said"),
    [
        pytest.param(19, NOBODY, id="too few"),
        pytest.param(20, None, id="just enough"),
        pytest.param(1, "Nobody is enforced: 1 owner is too few for 5 %.", id="one"),
        pytest.param(0, "Nobody is enforced: no owner is on the roster.", id="none"),
    ],
)
def test_a_card_says_that_nobody_is_treated(store, owners, said):
    assert shown(enforced(store, owners=owners)).nobody_treated == said


def test_shadow_treats_everybody(store):
    assert shown(Life.begin(store, owners=1)).nobody_treated is None


def test_the_conditions_of_rollout_and_wave_say_it_too(store):
    life = enforced(store, owners=19)
    held = environment_of(life.context)
    days = wave_days(life.context, ENVIRONMENT, life.wave)
    for found in (
        conditions.of_rollout(held, shown(life))[-1],
        conditions.of_wave(life.wave, days)[-1],
    ):
        assert (found.type, found.holds, found.message) == ("nobody_treated", True, NOBODY)
        assert found.since == life.wave.opened_at


def test_the_offer_of_a_step_counts_the_present_roster(store):
    life = Life.begin(store, owners=19)
    life.live(3)
    life.promote(Mode.WARN)
    life.live(8)
    life.evaluate()
    offer = gate_page(life.context, ENVIRONMENT, GUARD, 2).offer
    assert offer is not None
    assert offer.nobody_treated == "Nobody would be enforced: 19 owners are too few for 5 %."
    assert nobody_would_be_treated(Mode.ENFORCE, 500, 20) is None


def test_a_rollback_changes_no_guard_that_is_off(store):
    (found,) = rollback_page(enforced(store, owners=19).context, ENVIRONMENT).consequences
    assert found.enforced_share_bps is None
