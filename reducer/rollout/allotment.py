"""Allotment: the present mode of one owner, for assignments, explanations and pages alike."""

from dataclasses import dataclass

from guardwave.reducer.rollout.draw import ALGORITHM
from guardwave.reducer.rollout.eligibility import (
    OwnerFacts,
    Question,
    lowered_mode,
    reasons_against,
)
from guardwave.reducer.rollout.state import COHORT_MODES, REFERENCE, TREATED, Rollout
from guardwave.reducer.vocabulary import Cohort, Mode, Reason


@dataclass(frozen=True, slots=True)
class Place:
    """An owner's place on the roster that divides the cohorts.

    `rank` counts from 1, `size` is the length of the roster, and the first `treated` ranks are
    treated.
    """

    rank: int
    size: int
    treated: int
    algorithm: str = ALGORITHM

    @property
    def is_treated(self) -> bool:
        """Whether the owner is among the first `treated` of the draw."""
        return 1 <= self.rank <= self.treated


@dataclass(frozen=True, slots=True)
class Allotment:
    """The mode, cohort and wave of one owner, with reasons. Wave 0 is evidence of no wave."""

    mode: Mode
    cohort: Cohort
    wave: int
    reasons: tuple[Reason, ...] = ()
    diagnostic: str | None = None


def allot(
    rollout: Rollout,
    facts: OwnerFacts | None,
    question: Question,
    *,
    place: Place | None,
    trusted_producers: frozenset[str],
    is_latched: bool = False,
) -> Allotment:
    """Return the allotment of this owner for this question; it never raises.

    `place` is None for an owner that is not on the roster of `rollout.membership_wave`.
    """
    against = reasons_against(
        facts, question, version_pin=rollout.version_pin, trusted_producers=trusted_producers
    )
    reasons = ((Reason.ROLLOUT_LATCHED,) if is_latched else ()) + against
    cohort, wave = _cohort(rollout, place, is_eligible=not against)
    if rollout.phase is Mode.OFF:
        return Allotment(Mode.OFF, cohort, wave, reasons)
    if reasons:
        return Allotment(lowered_mode(rollout.phase, question.route), cohort, wave, reasons)
    if place is not None and place.algorithm != ALGORITHM:
        diagnostic = f"the wave was drawn by {place.algorithm}, which this server does not know"
        return Allotment(Mode.SHADOW, cohort, wave, (), diagnostic)
    if cohort is Cohort.OUTSIDE:
        mode = COHORT_MODES[rollout.phase][REFERENCE[rollout.phase]]
        return Allotment(mode, cohort, wave, (Reason.NOT_IN_ROSTER,))
    return Allotment(COHORT_MODES[rollout.phase][cohort], cohort, wave)


def _cohort(rollout: Rollout, place: Place | None, *, is_eligible: bool) -> tuple[Cohort, int]:
    """Return cohort and wave; a rostered owner keeps both even while it is not eligible."""
    if rollout.phase.rank <= Mode.SHADOW.rank:
        return (Cohort.EVERYONE, rollout.wave) if is_eligible else (Cohort.INELIGIBLE, 0)
    if place is None:
        return (Cohort.OUTSIDE if is_eligible else Cohort.INELIGIBLE), 0
    if rollout.wave == 0:
        # Lowering a mode closed the wave: every owner of its roster now gets the mode of the phase.
        # Only warn treats them: enforce without a wave has no frozen share.
        return (TREATED if rollout.phase is Mode.WARN else REFERENCE)[rollout.phase], 0
    treated = place.is_treated
    return (TREATED if treated else REFERENCE)[rollout.phase], rollout.wave
