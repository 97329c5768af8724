"""The door for notebooks: owner-days in a frame, or whole evidence, and a policy.

What a frame cannot know (coverage, contract, roster, versions) stays unknown, so the gate's verdict
says what is missing, while its metrics are judged. `dataclasses.replace` adds what is known.
"""

import datetime as dt

import pandas as pd

from analysis import gates
from analysis.evidence import WaveDay, WaveEvidence
from analysis.frames import DAY, owner_totals, refuse_cells, require_columns
from analysis.guard_totals import guard_totals
from analysis.report import GateEvaluation
from reducer.rollout.phases import REFERENCE, TREATED
from reducer.rollout.policy import GatePolicy
from reducer.vocabulary import Gate, Mode

_PHASES = {Gate.SHADOW: Mode.SHADOW, Gate.WARN: Mode.WARN, Gate.ENFORCE: Mode.ENFORCE}


def evaluate(evidence: pd.DataFrame | WaveEvidence, policy: GatePolicy) -> GateEvaluation:
    """Evaluate the enforce gate of a frame of owner-days, or the gate of evidence.

    A frame has `owner`, `cohort`, `day` and the counts of owner totals (analysis.frames), and is
    read as `evidence_of` reads it.

    Raises:
        ValueError: naming column, row and value where the frame is wrong.
    """
    if isinstance(evidence, pd.DataFrame):
        evidence = evidence_of(evidence, declared_days=policy.dwell_days)
    return gates.evaluate(evidence, policy)


def evidence_of(
    owner_days: pd.DataFrame,
    *,
    gate: Gate = Gate.ENFORCE,
    environment: str = "notebook",
    guard: str = "notebook",
    wave: int = 1,
    declared_days: int = 7,
) -> WaveEvidence:
    """Return owner-days as the evidence of a wave: the days they name count as complete.

    The first `declared_days` of them are used, as at a declared look. Environment, guard and wave
    are what the random owner sets come from: the gate's own give the gate's own p values. Columns
    of analysis.guard_totals are taken over where they are there. Nothing is read as reported that
    the frame does not hold.

    Raises:
        ValueError: naming column, row and value where the frame is wrong.
    """
    require_columns(owner_days, (DAY,))
    dated = owner_days.assign(**{DAY: _dates(owner_days)})
    days = sorted(set(dated[DAY]))
    used = dated[dated[DAY].isin(days[:declared_days])]
    phase = _PHASES[gate]
    return WaveEvidence(
        environment=environment,
        guard=guard,
        gate=gate,
        wave=wave,
        treated=TREATED[phase],
        reference=REFERENCE[phase],
        owners=owner_totals(used),
        rostered={},
        days=tuple(WaveDay(day, is_complete=True, reason=None) for day in days),
        declared_days=declared_days,
        coverage=None,
        contract=None,
        off_pin=None,
        violations={},
        lost=0,
        guard_totals=guard_totals(used),
    )


def _dates(owner_days: pd.DataFrame) -> list[dt.date]:
    """Return each row's day; ISO text, dates and timestamps are all taken."""
    days = pd.to_datetime(owner_days[DAY], errors="coerce")
    why = "is no day; give an ISO date"
    refuse_cells(owner_days, days.isna().to_numpy(), DAY, why=why)
    return [day.date() for day in days]
