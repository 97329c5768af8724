"""Rosters that are too small for a share: the draw rounds down, so that nobody is treated."""

from reducer.rollout.draw import treated_count
from reducer.rollout.phases import TREATED
from reducer.rollout.state import Wave
from reducer.vocabulary import Mode


def nobody_treated(wave: Wave) -> str | None:
    """Say that a wave treats nobody, and why; None when it treats somebody, or is in shadow."""
    if wave.phase.rank <= Mode.SHADOW.rank or wave.treated > 0:
        return None
    return f"Nobody is {TREATED[wave.phase]}: {_why(wave.treated_bps, wave.roster_size)}."


def nobody_would_be_treated(to: Mode, share_bps: int, owners: int) -> str | None:
    """Say that a step would treat nobody of so many owners; None when it would treat somebody."""
    if treated_count(share_bps, owners) > 0:
        return None
    return f"Nobody would be {TREATED[to]}: {_why(share_bps, owners)}."


def _why(share_bps: int, owners: int) -> str:
    if owners == 0:
        return "no owner is on the roster"
    noun = "owner is" if owners == 1 else "owners are"
    return f"{owners:,} {noun} too few for {share_bps / 100:g} %"
