"""The overview and the page of one rollout."""

from collections import Counter

from control_plane.commands.changes import load_environment, load_rollout
from control_plane.context import Context
from control_plane.etags import rollout_etag
from control_plane.queries import cards
from control_plane.queries.days import wave_days
from control_plane.queries.looks import look_lines
from control_plane.queries.pages import (
    GuardCard,
    GuardPage,
    OverviewPage,
    RosterView,
    ViolationCount,
    WaveDayLine,
)
from control_plane.state import Environment, EvaluationStatus
from reducer.rollout.days import notes_touching
from reducer.rollout.state import Wave

DAYS_SHOWN = 60


def overview(context: Context) -> OverviewPage:
    """Return every rollout of every environment."""
    found: list[GuardCard] = []
    for name in context.environments.names():
        environment = context.environments.load(name)
        if environment is None:
            continue
        found.extend(
            cards.card(context, environment, rollout)
            for rollout in context.environments.rollouts(environment)
        )
    return OverviewPage(cards.frame(context), tuple(found))


def guard_page(context: Context, environment: str, guard: str) -> GuardPage:
    """Return one rollout in full.

    Raises:
        NotFound: no such environment or rollout.
    """
    held = load_environment(context, environment)
    rollout = load_rollout(context, environment, guard)
    wave = cards.open_wave(context, rollout)
    roster = cards.membership_wave(context, rollout)
    days = (
        ()
        if wave is None
        else wave_days(context, environment, wave, rollout.evidence_source, newest=DAYS_SHOWN)
    )
    done = (
        each
        for each in context.gates.evaluations(environment, guard)
        if each.status is EvaluationStatus.DONE
    )
    return GuardPage(
        frame=cards.frame(context),
        card=cards.card(context, held, rollout),
        etag=rollout_etag(rollout),
        roster=None
        if roster is None
        else RosterView(roster.roster_size, roster.roster_digest, roster.algorithm),
        days=tuple(
            WaveDayLine(
                each.day,
                each.is_complete,
                each.reason,
                notes_touching(rollout.evidence_source, each.notes),
            )
            for each in days
        ),
        violations=_violations(context, held, wave),
        evaluations=tuple(cards.gate_summary(each) for each in done),
        looks=look_lines(context, environment, guard),
    )


def asked_evaluation(
    context: Context, environment: str, guard: str, number: int
) -> EvaluationStatus | None:
    """Return where an evaluation that was asked for stands, None when there is none."""
    found = context.gates.evaluation(environment, guard, number)
    return None if found is None else found.status


def _violations(
    context: Context, environment: Environment, wave: Wave | None
) -> tuple[ViolationCount, ...]:
    """Count the environment's violations by invariant: those of the wave, and those still open.

    What latched an environment closed the wave that it happened in.
    """
    held = environment.latch
    counted = Counter(
        each.invariant
        for each in context.incidents.violations(environment.name)
        if wave is None
        or each.at > wave.opened_at
        or (held is not None and each.id >= held.first_violation)
    )
    return tuple(ViolationCount(invariant, count) for invariant, count in sorted(counted.items()))
