"""Page models as the queries return them: an enforce wave at its look, and variants of it."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

from guardwave.control_plane.queries.decision_models import (
    CohortMove,
    GatePage,
    LatchPart,
    PromotionOffer,
    RollbackConsequence,
    RollbackLine,
    RollbackPage,
    ViolationLine,
)
from guardwave.control_plane.queries.evaluation_model import (
    EvaluationView,
    JsonValue,
    evaluation_view,
)
from guardwave.control_plane.queries.page_models import (
    CohortLine,
    Frame,
    GateSummary,
    GuardCard,
    GuardPage,
    LatchView,
    NextStep,
    OverviewPage,
    RosterView,
    TelemetryHealth,
    TelemetryState,
    ViolationCount,
    WaveDayLine,
    WaveProgress,
)
from guardwave.reducer.rollout.days import DayNote, NoteMark
from guardwave.reducer.vocabulary import Cohort, Gate, Invariant, Mode, Verdict

NOW = datetime(2026, 11, 29, 12, 4, 31, tzinfo=UTC)
GUARD = "repeated_tool_failure"
FRAME = Frame(NOW, ("internal", "public-cloud"), "0.1.0", "2026-11-01")
UNPROVEN = (
    "Not proven: completion 93.1 % enforced v 93.9 % control, difference -0.8 pp, could be as low "
    "as -2.1 pp; margin -1 pp."
)
LATCH = LatchView(
    2, "contract_violation in a record of repeated_tool_failure, mode enforce.", NOW, 17
)


def metric(name: str, **changes: JsonValue) -> dict[str, JsonValue]:
    """Return a metric's wire form; completion, unproven, unless changed."""
    fields: dict[str, JsonValue] = {
        "metric": name,
        "kind": "difference",
        "higher_is_better": name == "completion",
        "informational": False,
        "treated": 0.931,
        "reference": 0.939,
        "treated_owners": 62,
        "reference_owners": 1178,
        "treated_trials": 4210,
        "reference_trials": 80_112,
        "estimate": -0.008,
        "margin": -0.01,
        "interval": {"low": -0.0204, "high": 0.0044, "level": 0.9, "method": "CR2 t"},
        "standard_error": 0.0073,
        "df": 48.2,
        "bound": -0.021,
        "p_harm_at_margin": 0.391,
        "permutations": 1999,
        "effective_owners_treated": 31.4,
        "largest_owner_share_treated": 0.09,
        "verdict": "unproven",
        "reason": None,
        "sentence": "Completion could be as low as -2.1 pp below control; the margin is -1 pp.",
    }
    return fields | changes


def interval(low: float, high: float) -> dict[str, JsonValue]:
    """Return a CR2 interval's wire form."""
    return {"low": low, "high": high, "level": 0.9, "method": "CR2 t"}


METRICS: tuple[dict[str, JsonValue], ...] = (
    metric("completion"),
    metric(
        "disruption",
        treated=0.0112,
        reference=0.0121,
        estimate=-0.0009,
        margin=0.005,
        interval=interval(-0.0041, 0.0023),
        bound=0.0026,
        p_harm_at_margin=0.0021,
        verdict="within",
        sentence="Disruption is at most 0.26 pp above control; the margin is 0.5 pp.",
    ),
    metric(
        "latency_p95",
        kind="ratio",
        treated=None,
        reference=None,
        estimate=None,
        margin=1.10,
        interval=None,
        standard_error=None,
        df=None,
        bound=None,
        p_harm_at_margin=None,
        permutations=None,
        verdict="no_data",
        reason="not_computed",
        sentence="Latency p95 is not computed by this version, so it holds the gate.",
    ),
    metric(
        "tokens",
        kind="ratio",
        treated=14_310.5,
        reference=11_872.0,
        estimate=1.205,
        margin=1.10,
        interval=interval(1.122, 1.294),
        bound=1.31,
        p_harm_at_margin=0.99,
        verdict="beyond",
        sentence="Tokens are 1.205 times control, at least 1.122 times; the margin is 1.1 times.",
    ),
    metric(
        "turns",
        kind="ratio",
        treated=6.02,
        reference=6.21,
        estimate=0.969,
        margin=1.10,
        interval=interval(0.941, 0.998),
        bound=1.004,
        p_harm_at_margin=0.0005,
        verdict="within",
        sentence="Turns are at most 1.004 times control; the margin is 1.1 times.",
    ),
    metric(
        "cancellation",
        treated=0.041,
        reference=0.039,
        estimate=0.002,
        margin=None,
        interval=interval(-0.004, 0.008),
        bound=None,
        p_harm_at_margin=None,
        informational=True,
        verdict=None,
        sentence="Cancellation is 4.1 % enforced and 3.9 % control; it is shown, not judged.",
    ),
)


def wire(**changes: JsonValue) -> dict[str, JsonValue]:
    """Return the wire form of an evaluation of the enforce gate."""
    used = [(date(2026, 11, 20) + timedelta(days=n)).isoformat() for n in range(7)]
    fields: dict[str, JsonValue] = {
        "schema": 1,
        "environment": "internal",
        "guard": GUARD,
        "gate": "enforce",
        "wave": 3,
        "treated_cohort": "enforced",
        "reference_cohort": "control",
        "verdict": "beyond",
        "sentence": "Beyond the margin: tokens 14,311 enforced v 11,872 control, ratio 1.205; "
        "at least 1.122, margin 1.1.",
        "alpha": 0.05,
        "policy_version": "2026-11-01",
        "days": {
            "declared": 7,
            "complete": 7,
            "used": used,
            "not_counted": [{"day": "2026-11-27", "reason": "intake outage of 12 min"}],
        },
        "owners": {"enforced": 62, "control": 1178},
        "rostered": {"enforced": 62, "control": 1181},
        "lost": 14,
        "metrics": list(METRICS),
        "checks": [
            {
                "check": "dwell",
                "verdict": "within",
                "sentence": "7 of 7 complete days.",
                "numbers": {"complete": 7, "declared": 7},
            },
            {
                "check": "coverage",
                "verdict": "within",
                "sentence": "84,198 of 84,322 ended prompts are whole, 99.85 %; 99 % is asked.",
                "numbers": {"covered": 84_198, "ended": 84_322, "needed_share": 0.99},
            },
            {
                "check": "contract",
                "verdict": "within",
                "sentence": "All records of the last complete day carry what the contract asks.",
                "numbers": {"conforming": 12_000, "records": 12_000},
            },
            {
                "check": "invariants",
                "verdict": "within",
                "sentence": "No invariant was violated, in 84,198 covered prompts.",
                "numbers": {"violations": 0},
            },
        ],
    }
    return fields | changes


def evaluation(**changes: JsonValue) -> EvaluationView:
    """Return a parsed evaluation."""
    return evaluation_view(wire(**changes))


HEALTH = TelemetryHealth(TelemetryState.FLOWING, 18.2, 84_322, 3)
ENFORCED = CohortLine(Cohort.ENFORCED, Mode.ENFORCE, 62, 500)
CONTROL = CohortLine(Cohort.CONTROL, Mode.WARN, 1181, 9500)
SUMMARY = GateSummary(
    12, Gate.ENFORCE, 3, 5, Verdict.UNPROVEN, UNPROVEN, NOW - timedelta(minutes=4)
)
CARD = GuardCard(
    environment="internal",
    guard=GUARD,
    generation=9,
    phase=Mode.ENFORCE,
    cohorts=(ENFORCED, CONTROL),
    enforced_share_bps=500,
    ceiling_bps=500,
    version_pin=("1.4.2",),
    wave=WaveProgress(3, 5, 7, 7, NOW - timedelta(days=6)),
    telemetry=HEALTH,
    open_violations=0,
    latch=None,
    gate=SUMMARY,
    next_step=NextStep(None, None, False, "5 % is the ceiling without a capacity attestation."),
)
PUBLIC = GuardCard(
    environment="public-cloud",
    guard=GUARD,
    generation=1,
    phase=Mode.SHADOW,
    cohorts=(CohortLine(Cohort.EVERYONE, Mode.SHADOW, None),),
    enforced_share_bps=None,
    ceiling_bps=500,
    version_pin=("1.4.2", "1.4.3"),
    wave=WaveProgress(1, 2, 7, 7, NOW - timedelta(days=2)),
    telemetry=TelemetryHealth(TelemetryState.NO_RECORDS, None, 0, 0),
    open_violations=0,
    latch=None,
    gate=None,
    next_step=NextStep(Mode.WARN, None, False, "Internal must have passed the warn step first."),
)
LATCHED = replace(
    CARD,
    phase=Mode.SHADOW,
    cohorts=(CohortLine(Cohort.EVERYONE, Mode.SHADOW, None),),
    enforced_share_bps=None,
    wave=WaveProgress(4, 0, 7, 7, NOW),
    open_violations=1,
    latch=LATCH,
    next_step=NextStep(Mode.WARN, None, False, "The latch holds until an operator acknowledges."),
)
OVERVIEW = OverviewPage(FRAME, (CARD, PUBLIC))
SMEARED = DayNote(NoteMark.SMEARED, "3 points cross midnight")
GUARD_PAGE = GuardPage(
    frame=FRAME,
    card=CARD,
    etag='"r9"',
    roster=RosterView(1243, "5f1e7c29a0b94c55", "guardwave-draw-1"),
    days=(
        WaveDayLine(date(2026, 11, 27), True, None, (SMEARED,)),
        WaveDayLine(date(2026, 11, 28), False, "intake was away for 12 min"),
        WaveDayLine(date(2026, 11, 29), False, None),
    ),
    violations=(ViolationCount(Invariant.CONTRACT_VIOLATION, 0),),
    evaluations=(
        SUMMARY,
        GateSummary(8, Gate.WARN, 2, 7, Verdict.WITHIN, "Within every margin.", NOW),
    ),
)
OFFER = PromotionOffer(
    to=Mode.ENFORCE,
    share_bps=500,
    moves=(
        CohortMove(Cohort.ENFORCED, 62, Mode.WARN, Mode.ENFORCE),
        CohortMove(Cohort.CONTROL, 1181, Mode.WARN, Mode.WARN),
    ),
    is_allowed=True,
    why_not=None,
)
GATE_PAGE = GatePage(
    frame=FRAME,
    card=CARD,
    evaluation_id=12,
    digest="9c1185a5c5e9fc54612808977ee8f548b2258d31",
    evaluated_at=NOW - timedelta(minutes=4),
    evaluation=evaluation(),
    newest_id=12,
    moved_on=None,
    offer=replace(OFFER, is_allowed=False, why_not="the verdict is beyond, not within."),
    promotions=(),
)
ROLLBACK_PAGE = RollbackPage(
    frame=FRAME,
    environment="internal",
    etag='"e31"',
    consequences=(
        RollbackConsequence(
            GUARD,
            Mode.ENFORCE,
            500,
            (
                CohortMove(Cohort.ENFORCED, 62, Mode.ENFORCE, Mode.SHADOW),
                CohortMove(Cohort.CONTROL, 1181, Mode.WARN, Mode.SHADOW),
            ),
            restarts=True,
            wave=CARD.wave,
            evaluation=SUMMARY,
        ),
        RollbackConsequence(
            "identical_call",
            Mode.SHADOW,
            None,
            (),
            restarts=True,
            wave=WaveProgress(1, 121, 7, 7, NOW - timedelta(days=122)),
        ),
    ),
    latched=None,
    last=RollbackLine(2, NOW - timedelta(days=9), "ops-token", False, "drill before the wave"),
)
LATCHED_PART = LatchPart(
    latch=LATCH,
    violations=tuple(
        ViolationLine(number, Invariant.CONTRACT_VIOLATION, GUARD, Mode.ENFORCE, 8, NOW)
        for number in (17, 16, 15)
    ),
    open_violations=3,
)
