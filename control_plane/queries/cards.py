"""Cards: the summary of a rollout that the overview and every other page begin with."""

from collections.abc import Mapping

from guardwave import __version__
from guardwave.control_plane.core.errors import GuardwaveError
from guardwave.control_plane.core.state import Environment, Evaluation, EvaluationStatus
from guardwave.control_plane.queries.conditions import nobody_treated
from guardwave.control_plane.queries.intake_health import IntakeCounts
from guardwave.control_plane.queries.page_models import (
    CohortLine,
    Frame,
    GateSummary,
    GuardCard,
    LatchView,
    NextStep,
    TelemetryHealth,
    TelemetryState,
    WaveProgress,
)
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.rollouts.days import complete_days, wave_days
from guardwave.control_plane.rollouts.loading import with_policy_ceiling
from guardwave.control_plane.rollouts.promotion_rules import PromotionRequest, check_evaluation
from guardwave.control_plane.stores.evidence.delta.request import (
    UNTRUSTED_VIOLATION,
    UNVERIFIED_VIOLATION,
)
from guardwave.reducer.rollout.state import COHORT_MODES, TREATED, Rollout, Wave, gate_for
from guardwave.reducer.vocabulary import Mode, Verdict

SILENT_AFTER_S = 900.0


def frame(context: Context) -> Frame:
    """Return the frame of every page."""
    return Frame(
        as_of=context.clock.now(),
        environments=context.environments.names(),
        version=__version__,
        policy_version=f"{context.policies.base.version}, {context.policies.hash[:12]}",
        is_demo_clock=context.clock.speed != 1.0,
    )


def card(context: Context, environment: Environment, rollout: Rollout) -> GuardCard:
    """Return the summary of a rollout."""
    rollout = with_policy_ceiling(context, rollout)
    wave = open_wave(context, rollout)
    membership = membership_wave(context, rollout)
    progress = None if wave is None else progress_of(context, rollout, wave)
    newest = context.gates.newest_done(environment.name, rollout.guard)
    summary = None if newest is None else gate_summary(newest)
    is_enforced = rollout.phase is Mode.ENFORCE
    return GuardCard(
        environment=environment.name,
        guard=rollout.guard,
        generation=rollout.generation,
        phase=rollout.phase,
        cohorts=cohort_lines(rollout, membership),
        enforced_share_bps=rollout.treated_bps if is_enforced else None,
        ceiling_bps=rollout.ceiling_bps,
        version_pin=rollout.version_pin,
        wave=progress,
        telemetry=telemetry(context, environment.name),
        open_violations=open_violations(environment),
        latch=latch_view(environment),
        gate=summary,
        next_step=next_step(context, environment, rollout, newest=newest, progress=progress),
        nobody_treated=None if wave is None else nobody_treated(wave),
    )


def open_wave(context: Context, rollout: Rollout) -> Wave | None:
    """Return the rollout's open wave."""
    if rollout.wave == 0:
        return None
    return context.environments.wave(rollout.environment, rollout.guard, rollout.wave)


def membership_wave(context: Context, rollout: Rollout) -> Wave | None:
    """Return the wave whose roster divides the rollout's owners into cohorts."""
    if rollout.membership_wave == 0:
        return None
    return context.environments.wave(rollout.environment, rollout.guard, rollout.membership_wave)


def cohort_lines(rollout: Rollout, membership: Wave | None) -> tuple[CohortLine, ...]:
    """Return the phase's cohorts with their modes and sizes."""
    lines: list[CohortLine] = []
    treated = TREATED[rollout.phase]
    for cohort, mode in COHORT_MODES[rollout.phase].items():
        owners = _owners(rollout, membership, is_treated=cohort is treated)
        has_share = membership is not None and rollout.wave != 0 and cohort is treated
        share = rollout.treated_bps if has_share else None
        if owners is not None or rollout.phase.rank <= Mode.SHADOW.rank:
            lines.append(CohortLine(cohort, mode, owners, share))
    return tuple(lines)


def _owners(rollout: Rollout, membership: Wave | None, *, is_treated: bool) -> int | None:
    if membership is None:
        return None
    if rollout.wave == 0:
        # A demotion closed the wave: every owner on its roster has the phase's mode.
        return membership.roster_size if is_treated else 0
    return membership.treated if is_treated else membership.roster_size - membership.treated


def progress_of(context: Context, rollout: Rollout, wave: Wave) -> WaveProgress:
    """Return how many of a wave's declared complete days have passed."""
    days = wave_days(context, rollout.environment, wave, rollout.evidence_source)
    return WaveProgress(
        number=wave.number,
        complete_days=len(complete_days(days)),
        declared_days=wave.looks[0],
        final_days=wave.looks[-1],
        started_at=wave.opened_at,
    )


def telemetry(context: Context, environment: str) -> TelemetryHealth:
    """Return whether records arrive. The age is by the environment's clock."""
    counts = context.evidence.health(environment)
    last = counts.get("last_record_s", 0)
    refused = counts.get("refused", 0) + counts.get("quarantined", 0)
    remedies = IntakeCounts.of(counts).remedies
    if last == 0:
        return TelemetryHealth(TelemetryState.NO_RECORDS, None, 0, refused, remedies=remedies)
    age = max(0.0, context.clock.now().timestamp() - last)
    # Between two exports a demo's clock moves by a quarter of an hour.
    is_silent = age > SILENT_AFTER_S * max(1.0, context.clock.speed / 100)
    state = TelemetryState.SILENT if is_silent else TelemetryState.FLOWING
    return TelemetryHealth(
        state,
        age,
        accepted=counts.get("accepted", 0),
        refused=refused,
        unvouched_violations=_total(counts, UNVERIFIED_VIOLATION),
        untrusted_violations=_total(counts, UNTRUSTED_VIOLATION),
        remedies=remedies,
    )


def _total(health: Mapping[str, int], counter: str) -> int:
    """Return the sum of a counter of intake over all invariants."""
    return sum(count for name, count in health.items() if name.startswith(f"{counter}:"))


def latch_view(environment: Environment) -> LatchView | None:
    """Return the environment's latch, None when it has none."""
    latch = environment.latch
    if latch is None:
        return None
    return LatchView(latch.rollback, latch.reason, latch.at, latch.newest_violation)


def open_violations(environment: Environment) -> int:
    """Return the number of violations that a person has to acknowledge."""
    latch = environment.latch
    return 0 if latch is None else latch.open_violations


def gate_summary(evaluation: Evaluation) -> GateSummary:
    """Return a finished evaluation in one line."""
    assert evaluation.status is EvaluationStatus.DONE  # only finished ones have a verdict
    assert evaluation.evaluated_at is not None
    return GateSummary(
        evaluation_id=evaluation.id,
        gate=evaluation.gate,
        wave=evaluation.wave or 0,
        days_used=len(evaluation.days_used),
        verdict=Verdict(evaluation.verdict or Verdict.NO_DATA),
        sentence=evaluation.sentence or "",
        evaluated_at=evaluation.evaluated_at,
    )


def next_step(
    context: Context,
    environment: Environment,
    rollout: Rollout,
    *,
    newest: Evaluation | None,
    progress: WaveProgress | None,
) -> NextStep:
    """Return the next step up, with the reason if it is not allowed now."""
    to, share = _step_up(rollout)
    if to is None:
        return NextStep(
            None,
            None,
            is_allowed=False,
            why_not=f"The ceiling of {rollout.ceiling_bps / 100:g} % is reached; a permanent "
            "control stays.",
        )
    if rollout.phase is Mode.OFF:
        return NextStep(to, share, is_allowed=True, why_not=None)
    why_not = _why_not(environment, rollout, newest=newest, progress=progress)
    if why_not is None and newest is not None:
        why_not = _why_refused(context, environment, rollout, newest, to=to)
    return NextStep(to, share, is_allowed=why_not is None, why_not=why_not)


def _why_refused(
    context: Context, environment: Environment, rollout: Rollout, newest: Evaluation, *, to: Mode
) -> str | None:
    """Return the refusal that a promotion on the newest evaluation would get now.

    Revised days are left to the gate page: cards are polled, and owner-days may be many.
    """
    request = PromotionRequest(newest.id, newest.digest or "", to)
    try:
        check_evaluation(context, environment, rollout, newest, request=request)
    except GuardwaveError as refusal:
        sentence = f"{str(refusal).removesuffix('.')}."
        # A name keeps its spelling at the beginning of a sentence.
        is_name = sentence.split(maxsplit=1)[0] in {environment.name, rollout.guard}
        return sentence if is_name else sentence[0].upper() + sentence[1:]
    return None


def _step_up(rollout: Rollout) -> tuple[Mode | None, int | None]:
    if rollout.phase is not Mode.ENFORCE:
        to = list(Mode)[rollout.phase.rank + 1]
        return to, (rollout.ceiling_bps if to is Mode.ENFORCE else None)
    if rollout.treated_bps < rollout.ceiling_bps:
        return Mode.ENFORCE, rollout.ceiling_bps
    return None, None


def _why_not(
    environment: Environment,
    rollout: Rollout,
    *,
    newest: Evaluation | None,
    progress: WaveProgress | None,
) -> str | None:
    if environment.latch is not None:
        return "The environment is latched; a person must acknowledge the rollback first."
    if progress is None:
        return "No wave is open since a mode was lowered; start one first."
    is_current = (
        newest is not None
        and newest.wave == rollout.wave
        and newest.generation == rollout.generation
        and newest.gate is gate_for(rollout.phase)
    )
    if newest is None or not is_current:
        if progress.complete_days < progress.declared_days:
            return (
                f"The {gate_for(rollout.phase)} gate needs {progress.declared_days} complete "
                f"days; {progress.complete_days} have passed."
            )
        return f"The {gate_for(rollout.phase)} gate has not been evaluated in this wave."
    if newest.verdict != Verdict.WITHIN:
        return newest.sentence
    return None
