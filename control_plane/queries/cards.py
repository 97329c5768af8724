"""A rollout at a glance: what the overview and every other page begin with."""

from collections.abc import Mapping

from control_plane import __version__
from control_plane.commands.changes import bound_by_policy
from control_plane.commands.promotions import PromotionRequest, check_evaluation
from control_plane.context import Context
from control_plane.errors import GuardwaveError
from control_plane.queries.days import complete_days, wave_days
from control_plane.queries.intake_counts import IntakeCounts
from control_plane.queries.pages import (
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
from control_plane.queries.treated import nobody_treated
from control_plane.state import Environment, Evaluation, EvaluationStatus
from control_plane.stores.evidence_events import UNTRUSTED_VIOLATION, UNVOUCHED_VIOLATION
from reducer.rollout.phases import COHORT_MODES, TREATED, gate_for
from reducer.rollout.state import Rollout, Wave
from reducer.vocabulary import Mode, Verdict

SILENT_AFTER_S = 900.0


def frame(context: Context) -> Frame:
    """Return what surrounds every page."""
    return Frame(
        as_of=context.clock.now(),
        environments=context.environments.names(),
        version=__version__,
        policy_version=f"{context.policies.base.version}, {context.policies.hash[:12]}",
        is_demo_clock=context.clock.speed != 1.0,
    )


def card(context: Context, environment: Environment, rollout: Rollout) -> GuardCard:
    """Return a rollout at a glance."""
    rollout = bound_by_policy(context, rollout)
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
    """Return the wave whose roster tells the rollout's cohorts apart."""
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
        # Closed by lowering: all that were on the roster get the phase's own mode.
        return membership.roster_size if is_treated else 0
    return membership.treated if is_treated else membership.roster_size - membership.treated


def progress_of(context: Context, rollout: Rollout, wave: Wave) -> WaveProgress:
    """Return how many of its declared complete days a wave of the rollout has behind it."""
    days = wave_days(context, rollout.environment, wave, rollout.evidence_source)
    return WaveProgress(
        number=wave.number,
        complete_days=len(complete_days(days)),
        declared_days=wave.looks[0],
        final_days=wave.looks[-1],
        started_at=wave.opened_at,
    )


def telemetry(context: Context, environment: str) -> TelemetryHealth:
    """Return whether records arrive. The age is on the environment's clock."""
    counted = context.evidence.health(environment)
    last = counted.get("last_record_s", 0)
    refused = counted.get("refused", 0) + counted.get("quarantined", 0)
    remedies = IntakeCounts.of(counted).remedies
    if last == 0:
        return TelemetryHealth(TelemetryState.NO_RECORDS, None, 0, refused, remedies=remedies)
    age = max(0.0, context.clock.now().timestamp() - last)
    # A demo's clock runs through a quarter of an hour between two exports.
    is_silent = age > SILENT_AFTER_S * max(1.0, context.clock.speed / 100)
    state = TelemetryState.SILENT if is_silent else TelemetryState.FLOWING
    return TelemetryHealth(
        state,
        age,
        accepted=counted.get("accepted", 0),
        refused=refused,
        unvouched_violations=_counted(counted, UNVOUCHED_VIOLATION),
        untrusted_violations=_counted(counted, UNTRUSTED_VIOLATION),
        remedies=remedies,
    )


def _counted(health: Mapping[str, int], counter: str) -> int:
    """Return what a counter of intake comes to over all invariants."""
    return sum(count for name, count in health.items() if name.startswith(f"{counter}:"))


def latch_view(environment: Environment) -> LatchView | None:
    """Return the environment's latch, None when it has none."""
    held = environment.latch
    if held is None:
        return None
    return LatchView(held.rollback, held.reason, held.at, held.newest_violation)


def open_violations(environment: Environment) -> int:
    """Count the violations that the latch waits for somebody to look at."""
    held = environment.latch
    return 0 if held is None else held.open_violations


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
    """Return the next step up, and why it cannot be taken now when it cannot."""
    to, share = _above(rollout)
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
    """Return what a promotion on the newest evaluation would be refused with now.

    Revised days are left to the gate page: cards are polled, and their owner-days may be many.
    """
    request = PromotionRequest(newest.id, newest.digest or "", to)
    try:
        check_evaluation(context, environment, rollout, newest, request=request)
    except GuardwaveError as refusal:
        sentence = f"{str(refusal).removesuffix('.')}."
        # A name stays as it is typed, also where it begins a sentence.
        is_name = sentence.split(maxsplit=1)[0] in {environment.name, rollout.guard}
        return sentence if is_name else sentence[0].upper() + sentence[1:]
    return None


def _above(rollout: Rollout) -> tuple[Mode | None, int | None]:
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
