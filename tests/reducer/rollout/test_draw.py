"""The draw: an order of the roster, and never more treated owners than requested."""

import json
import runpy
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardwave.reducer.rollout.draw import (
    ALGORITHM,
    Roster,
    draw,
    position,
    salt_text,
    treated_count,
)
from guardwave.reducer.rollout.fields import length_prefixed
from tests.strategies import environments, guards, rosters, salts, shares

FIXTURES = Path(__file__).parents[2] / "fixtures"
VECTORS = json.loads((FIXTURES / "draw_vectors.json").read_text(encoding="utf-8"))
SIXTY = tuple(f"{'A' * 14}{chr(65 + n // 26)}{chr(65 + n % 26)}" for n in range(60))
WORLD = ("internal", "repeated_tool_failure", "00" * 16 + ".0")


def test_the_published_vectors_are_of_this_algorithm():
    assert VECTORS["algorithm"] == ALGORITHM == "guardwave-draw-1"


def test_the_published_vectors_are_what_the_independent_script_writes(tmp_path):
    copy = tmp_path / "make_draw_vectors.py"
    copy.write_bytes((FIXTURES / copy.name).read_bytes())
    runpy.run_path(str(copy), run_name="__main__")
    written = (tmp_path / "draw_vectors.json").read_text(encoding="utf-8")
    assert json.loads(written) == VECTORS


@pytest.mark.parametrize(
    "vector",
    [
        pytest.param(row, id=f"{row['guard']} in {row['environment']}, epoch {row['salt'][-1]}")
        for row in VECTORS["positions"]
    ],
)
def test_a_position_agrees_with_the_vectors(vector):
    u = position(vector["environment"], vector["guard"], vector["salt"], vector["pseudonym"])
    assert f"{u:016x}" == vector["u"]


@pytest.mark.parametrize(
    "vector",
    [
        pytest.param(row, id=f"{len(row['pseudonyms'])} owners at {row['share_bps']} bps, no. {n}")
        for n, row in enumerate(VECTORS["rosters"])
    ],
)
def test_a_roster_agrees_with_the_vectors(vector):
    world = (vector["environment"], vector["guard"], vector["salt"])
    roster = draw(*world, vector["pseudonyms"], share_bps=vector["share_bps"])
    assert list(roster.pseudonyms) == vector["order"]
    assert (roster.treated, roster.digest) == (vector["treated"], vector["digest"])


@given(environments, guards, salts, rosters, shares)
def test_the_realised_share_never_exceeds_the_share_asked_for(env, guard, salt, owners, share):
    roster = draw(env, guard, salt, owners, share_bps=share)
    assert roster.treated * 10_000 <= share * len(owners)
    assert (roster.treated + 1) * 10_000 > share * len(owners)


@given(shares, st.integers(0, 10**9))
def test_the_treated_are_the_largest_count_within_the_share_at_any_size(share, owners):
    treated = treated_count(share, owners)
    assert treated * 10_000 <= share * owners < (treated + 1) * 10_000


@pytest.mark.parametrize(
    ("share_bps", "owners", "treated"),
    [
        pytest.param(500, 0, 0, id="nobody there"),
        pytest.param(500, 19, 0, id="19 owners at 5 %"),
        pytest.param(500, 20, 1, id="20 owners at 5 %"),
        pytest.param(500, 39, 1, id="39 owners at 5 %"),
        pytest.param(500, 1000, 50, id="1,000 owners at 5 %"),
        pytest.param(0, 1000, 0, id="a share of nothing"),
        pytest.param(10_000, 7, 7, id="everybody"),
        pytest.param(9_999, 7, 6, id="almost everybody"),
    ],
)
def test_the_number_of_treated_owners(share_bps, owners, treated):
    assert treated_count(share_bps, owners) == treated


@given(st.integers(0, 19))
def test_fewer_than_twenty_owners_at_five_percent_treat_nobody(owners):
    assert draw(*WORLD, SIXTY[:owners], share_bps=500).treated == 0


@pytest.mark.parametrize("share_bps", [-1, 10_001])
def test_a_share_outside_of_0_to_10000_basis_points_is_named_in_the_error(share_bps):
    with pytest.raises(ValueError, match=f"0 to 10000 basis points, not {share_bps}"):
        draw(*WORLD, SIXTY, share_bps=share_bps)


@given(salts, rosters, shares, shares)
def test_a_larger_share_only_adds_owners(salt, owners, one, other):
    small, large = (
        draw("internal", "identical_call", salt, owners, share_bps=share)
        for share in sorted((one, other))
    )
    assert small.pseudonyms == large.pseudonyms
    assert set(small.pseudonyms[: small.treated]) <= set(large.pseudonyms[: large.treated])


@given(st.permutations(SIXTY))
def test_the_order_in_which_owners_come_does_not_matter(shuffled):
    assert draw(*WORLD, shuffled, share_bps=500) == draw(*WORLD, SIXTY, share_bps=500)


@given(rosters, shares)
def test_a_draw_keeps_every_owner_and_adds_none(owners, share):
    assert sorted(draw(*WORLD, owners, share_bps=share).pseudonyms) == sorted(owners)


@pytest.mark.parametrize(
    ("environment", "guard", "salt"),
    [
        pytest.param("public-cloud", WORLD[1], WORLD[2], id="another environment"),
        pytest.param(WORLD[0], "identical_call", WORLD[2], id="another guard"),
        pytest.param(WORLD[0], WORLD[1], "01" * 16 + ".0", id="another salt"),
        pytest.param(WORLD[0], WORLD[1], "00" * 16 + ".1", id="another epoch of the salt"),
    ],
)
def test_another_world_has_another_order(environment, guard, salt):
    here = draw(*WORLD, SIXTY, share_bps=500)
    there = draw(environment, guard, salt, SIXTY, share_bps=500)
    assert here.pseudonyms != there.pseudonyms
    assert here.digest != there.digest


def test_an_owner_that_occurs_twice_is_refused():
    with pytest.raises(ValueError, match="one occurs twice"):
        draw(*WORLD, (*SIXTY, SIXTY[3]), share_bps=500)


@given(rosters, shares)
def test_a_packed_roster_comes_back_as_it_was(owners, share):
    roster = draw(*WORLD, owners, share_bps=share)
    assert len(roster.packed()) == 10 * len(owners)
    assert Roster.unpacked(roster.packed(), roster.treated) == roster


def test_packed_bytes_that_are_not_whole_owners_are_refused():
    with pytest.raises(ValueError, match="10 bytes an owner; 25 bytes"):
        Roster.unpacked(bytes(25), 0)


def test_two_orders_have_two_digests():
    assert Roster(SIXTY, 3).digest != Roster(SIXTY[::-1], 3).digest


def test_the_epoch_is_part_of_what_is_hashed():
    assert salt_text("ab" * 16, 3) == "ab" * 16 + ".3"


@given(st.lists(st.text(max_size=4), max_size=4), st.lists(st.text(max_size=4), max_size=4))
def test_two_lists_of_fields_never_give_the_same_bytes(one, other):
    assert (length_prefixed(*one) == length_prefixed(*other)) is (one == other)
