"""Bound search: the least step that passes, against a trial of every step."""

import math

from hypothesis import given
from hypothesis import strategies as st

from guardwave.analysis.inference.rerandomisation import least_passing

LIMITS = (-400, 900)


@given(
    turn=st.integers(-450, 950),
    guess=st.integers(-2000, 2000),
    slope=st.floats(1e-4, 1e3),
    jump=st.floats(0.0, 10.0),
)
def test_the_least_passing_step_is_found_from_any_guess(
    turn: int, guess: int, slope: float, jump: float
):
    def gap(step: int) -> float:
        return slope * (turn - step - 0.5) + (jump if step < turn else -jump)

    found = least_passing(gap, start=gap(0), guess=guess, limits=LIMITS)

    passing = [step for step in range(LIMITS[0], LIMITS[1] + 1) if gap(step) < 0.0]
    assert found == min(passing, default=None)


@given(turn=st.integers(-300, 800), sharpness=st.integers(1, 3))
def test_a_gap_of_infinities_is_searched_too(turn, sharpness):
    tried = []

    def gap(step: int) -> float:
        tried.append(step)
        return math.inf if step < turn - sharpness else -math.inf if step >= turn else 1e-9

    found = least_passing(gap, start=gap(0), guess=0, limits=LIMITS)

    assert found == turn
    assert len(tried) < 45


def test_a_gap_that_is_no_number_does_not_pass():
    assert least_passing(lambda _: math.nan, start=math.nan, guess=0, limits=(-5, 5)) is None


def test_a_smooth_gap_takes_a_handful_of_tries():
    tried = []

    def gap(step: int) -> float:
        tried.append(step)
        return math.tanh((431.5 - step) / 300.0)

    assert least_passing(gap, start=0.9, guess=380, limits=LIMITS) == 432
    assert len(tried) <= 6
