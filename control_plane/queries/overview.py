"""Overview page: every rollout at a glance, and one rollout in full."""

from collections import Counter

from guardwave.control_plane.core.etags import rollout_etag
from guardwave.control_plane.core.state import Environment, EvaluationStatus
from guardwave.control_plane.queries import cards
from guardwave.control_plane.queries.interim import look_lines
from guardwave.control_plane.queries.page_models import (
    GuardCard,
    GuardPage,
    OverviewPage,
    RosterView,
    ViolationCount,
    WaveDayLine,
)
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.rollouts.days import wave_days
from guardwave.control_plane.rollouts.loading import load_environment, load_rollout
from guardwave.reducer.rollout.days import notes_touching
from guardwave.reducer.rollout.state import Wave

DAYS_SHOWN = 60


def overview(context: Context) -> OverviewPage:
    """Return every rollout of every environment."""
    rollout_cards: list[GuardCard] = []
    for name in context.environments.names():
        environment = context.environments.load(name)
        if environment is None:
            continue
        rollout_cards.extend(
            cards.card(context, environment, rollout)
            for rollout in context.environments.rollouts(environment)
        )
    return OverviewPage(cards.frame(context), tuple(rollout_cards))


def guard_page(context: Context, environment: str, guard: str) -> GuardPage:
    """Return one rollout in full.

    Raises:
        NotFound: no such environment or rollout.
    """
    stored = load_environment(context, environment)
    rollout = load_rollout(context, environment, guard)
    wave = cards.open_wave(context, rollout)
    roster = cards.membership_wave(context, rollout)
    days = (
        ()
        if wave is None
        else wave_days(context, environment, wave, rollout.evidence_source, newest=DAYS_SHOWN)
    )
    done = (
        evaluation
        for evaluation in context.gates.evaluations(environment, guard)
        if evaluation.status is EvaluationStatus.DONE
    )
    return GuardPage(
        frame=cards.frame(context),
        card=cards.card(context, stored, rollout),
        etag=rollout_etag(rollout),
        roster=None
        if roster is None
        else RosterView(roster.roster_size, roster.roster_digest, roster.algorithm),
        days=tuple(
            WaveDayLine(
                day.day,
                day.is_complete,
                day.reason,
                notes_touching(rollout.evidence_source, day.notes),
            )
            for day in days
        ),
        violations=_violations(context, stored, wave),
        evaluations=tuple(cards.gate_summary(evaluation) for evaluation in done),
        looks=look_lines(context, environment, guard),
    )


def evaluation_status(
    context: Context, environment: str, guard: str, number: int
) -> EvaluationStatus | None:
    """Return the status of a requested evaluation, None when there is none."""
    found = context.gates.evaluation(environment, guard, number)
    return None if found is None else found.status


def _violations(
    context: Context, environment: Environment, wave: Wave | None
) -> tuple[ViolationCount, ...]:
    """Count the environment's violations by invariant: those of the wave, and those still open.

    A violation that latched the environment closed the wave that it happened in.
    """
    latch = environment.latch
    counts = Counter(
        violation.invariant
        for violation in context.incidents.violations(environment.name)
        if wave is None
        or violation.at > wave.opened_at
        or (latch is not None and violation.id >= latch.first_violation)
    )
    return tuple(ViolationCount(invariant, count) for invariant, count in sorted(counts.items()))
