"""The search for a bound: the least of evenly spaced margins that a test passes."""

import math
from collections.abc import Callable

FIRST_STRIDE = 8
# Gaps are cut off here, so that an infinite statistic does not stop the interpolation.
LARGEST_GAP = 50.0


def least_passing(
    gap: Callable[[int], float], *, start: float, guess: int, limits: tuple[int, int]
) -> int | None:
    """Return the step at which `gap` falls below zero, from `start`, its value at step 0.

    A step passes when its gap is below zero; None when not even the last one does. The search
    brackets the turn from `guess` outwards and closes in by the Illinois variant of false position
    (Dowell and Jarratt 1971), halving now and then in case the gap jumps. Where steps fail above a
    passing one, it finds one of the turns.
    """
    known = {0: _bounded(start)}

    def at(step: int) -> float:
        if step not in known:
            known[step] = _bounded(gap(step))
        return known[step]

    bracket = _bracket(at, guess, limits)
    if bracket is None:
        return limits[0] if at(0) < 0.0 else None
    low, high = bracket
    low_gap, high_gap = at(low), at(high)
    last, turn = 0.0, 0
    while high - low > 1:
        turn += 1
        middle = low + round((high - low) * low_gap / (low_gap - high_gap))
        if turn % 4 == 0:
            middle = (low + high) // 2
        middle = min(max(middle, low + 1), high - 1)
        found = at(middle)
        if found < 0.0:
            high, high_gap = middle, found
            low_gap = low_gap / 2.0 if last < 0.0 else low_gap
        else:
            low, low_gap = middle, found
            high_gap = high_gap / 2.0 if last > 0.0 else high_gap
        last = math.copysign(1.0, found)
    return high


def _bracket(
    at: Callable[[int], float], guess: int, limits: tuple[int, int]
) -> tuple[int, int] | None:
    """Return steps on both sides of a turn, the lower one failing; None where there is no turn."""
    lowest, highest = limits
    passes = at(0) < 0.0
    towards = -1 if passes else 1
    step, stride = 0, FIRST_STRIDE
    ahead = guess if guess * towards > 0 else towards * stride
    while True:
        if step == (lowest if passes else highest):
            return None
        before, step = step, min(max(ahead, lowest), highest)
        if (at(step) < 0.0) is not passes:
            return (step, before) if passes else (before, step)
        ahead = step + towards * stride
        stride *= 2


def _bounded(gap: float) -> float:
    """Return a gap that can be calculated with; one that is no number does not pass."""
    if math.isnan(gap):
        return LARGEST_GAP
    return min(max(gap, -LARGEST_GAP), LARGEST_GAP)
