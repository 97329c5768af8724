"""Rollout answers: rollouts, cohorts and waves."""

from datetime import date, datetime

from guardwave.control_plane.core.state import Environment
from guardwave.control_plane.http.middleware import requests
from guardwave.control_plane.http.schema import answers
from guardwave.control_plane.http.schema.answers import (
    Answer,
    Condition,
    DayNoteAnswer,
    environment_address,
    rollout_address,
)
from guardwave.control_plane.queries import cards, conditions
from guardwave.control_plane.rollouts.days import wave_days
from guardwave.reducer.rollout.state import EvidenceSource, Rollout, Wave
from guardwave.reducer.vocabulary import Cohort, Mode


class CohortAnswer(Answer):
    """One cohort of the phase. `owners` is null where nobody counts them."""

    cohort: Cohort
    mode: Mode
    owners: int | None
    share_bps: int | None
    links: dict[str, str]


class NextStepAnswer(Answer):
    """The next step up the ladder; `why_not` says what stands against it now."""

    to: Mode | None
    share_bps: int | None
    is_allowed: bool
    why_not: str | None


class RolloutAnswer(Answer):
    """One guard in one environment. Its ETag moves with the generation.

    `share_bps` is the share of the roster that is treated, null in off and shadow.
    """

    environment: str
    guard: str
    phase: Mode
    generation: int
    version_pin: list[str]
    evidence_source: EvidenceSource
    ceiling_bps: int
    share_bps: int | None
    wave: int | None
    cohorts: list[CohortAnswer]
    next_step: NextStepAnswer
    conditions: list[Condition]
    links: dict[str, str]


class WaveDayAnswer(Answer):
    """One UTC day; `reason` says why it does not count (yet).

    `notes` say what is not exact of it, complete or not.
    """

    day: date
    is_complete: bool
    reason: str | None
    notes: list[DayNoteAnswer]


class WaveAnswer(Answer):
    """One period of fixed assignment. A shadow wave has no roster: size 0, no share, no digest.

    `treated` is how many of the roster's owners are.
    """

    id: int
    phase: Mode
    version_pin: list[str]
    looks: list[int]
    opened_at: datetime
    closed_at: datetime | None
    algorithm: str
    share_bps: int | None
    roster_size: int
    treated: int
    roster_digest: str | None
    days: list[WaveDayAnswer]
    conditions: list[Condition]
    links: dict[str, str]


def cohort_answers(rollout: Rollout) -> list[CohortAnswer]:
    """Return the cohorts of the rollout's phase."""
    address = rollout_address(rollout.environment, rollout.guard)
    lines = cards.cohort_lines(rollout, cards.membership_wave(requests.context(), rollout))
    return [
        CohortAnswer(
            cohort=line.cohort,
            mode=line.mode,
            owners=line.owners,
            share_bps=line.share_bps,
            links={"self": f"{address}/cohorts/{line.cohort}", "rollout": address},
        )
        for line in lines
    ]


def _share(phase: Mode, treated_bps: int) -> int | None:
    """Return the treated share of the roster; None in phases without a roster."""
    return treated_bps if phase.rank > Mode.SHADOW.rank else None


def rollout_answer(environment: Environment, rollout: Rollout) -> RolloutAnswer:
    """Return the answer for a rollout, without the salt: it would reveal who is drawn next."""
    context = requests.context()
    address = rollout_address(rollout.environment, rollout.guard)
    card = cards.card(context, environment, rollout)
    step = card.next_step
    return RolloutAnswer(
        environment=rollout.environment,
        guard=rollout.guard,
        phase=rollout.phase,
        generation=rollout.generation,
        version_pin=list(rollout.version_pin),
        evidence_source=rollout.evidence_source,
        ceiling_bps=rollout.ceiling_bps,
        share_bps=_share(rollout.phase, rollout.treated_bps),
        wave=rollout.wave or None,
        cohorts=cohort_answers(rollout),
        next_step=NextStepAnswer(
            to=step.to, share_bps=step.share_bps, is_allowed=step.is_allowed, why_not=step.why_not
        ),
        conditions=answers.conditions(conditions.of_rollout(environment, card)),
        links={
            "self": address,
            "environment": environment_address(rollout.environment),
            "cohorts": f"{address}/cohorts",
            "waves": f"{address}/waves",
            "gate_evaluations": f"{address}/gate-evaluations",
            "promotions": f"{address}/promotions",
            "violations": f"{address}/violations",
            "rollbacks": f"{environment_address(rollout.environment)}/rollbacks",
        },
    )


def wave_answer(rollout: Rollout, wave: Wave) -> WaveAnswer:
    """Return the answer for a wave, with each of its days."""
    address = rollout_address(rollout.environment, rollout.guard)
    days = wave_days(requests.context(), rollout.environment, wave, rollout.evidence_source)
    return WaveAnswer(
        id=wave.number,
        phase=wave.phase,
        version_pin=list(wave.version_pin),
        looks=list(wave.looks),
        opened_at=wave.opened_at,
        closed_at=wave.closed_at,
        algorithm=wave.algorithm,
        share_bps=_share(wave.phase, wave.treated_bps),
        roster_size=wave.roster_size,
        treated=wave.treated,
        roster_digest=wave.roster_digest or None,
        days=[
            WaveDayAnswer(
                day=day.day,
                is_complete=day.is_complete,
                reason=day.reason,
                notes=[DayNoteAnswer.model_validate(note) for note in day.notes],
            )
            for day in days
        ],
        conditions=answers.conditions(conditions.of_wave(wave, days)),
        links={"self": f"{address}/waves/{wave.number}", "rollout": address},
    )
