"""What the evidence of a wave shows: intervals, the test at the margin, the verdict of a gate.

For notebooks: `analysis.evaluate(owner_days, analysis.SHIPPED_POLICY)`. The names below are loaded
when asked for, so that importing a part of the package stays as light as that part.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analysis.alarms import harm_alarms as harm_alarms
    from analysis.baseline import Baseline as Baseline
    from analysis.evidence import DrawInputs as DrawInputs
    from analysis.evidence import Share as Share
    from analysis.evidence import WaveEvidence as WaveEvidence
    from analysis.histograms import OwnerHistograms as OwnerHistograms
    from analysis.notebook import evaluate as evaluate
    from analysis.notebook import evidence_of as evidence_of
    from analysis.placebo import plan_by_placebo as plan_by_placebo
    from analysis.power import plan_metrics as plan_metrics
    from analysis.report import GateEvaluation as GateEvaluation
    from analysis.report import to_wire as to_wire
    from analysis.shipped_policy import SHIPPED_POLICY as SHIPPED_POLICY
    from reducer.rollout.policy import GatePolicy as GatePolicy

_PLACES = {
    "Baseline": "analysis.baseline",
    "DrawInputs": "analysis.evidence",
    "GateEvaluation": "analysis.report",
    "GatePolicy": "reducer.rollout.policy",
    "OwnerHistograms": "analysis.histograms",
    "SHIPPED_POLICY": "analysis.shipped_policy",
    "Share": "analysis.evidence",
    "WaveEvidence": "analysis.evidence",
    "evaluate": "analysis.notebook",
    "evidence_of": "analysis.notebook",
    "harm_alarms": "analysis.alarms",
    "plan_by_placebo": "analysis.placebo",
    "plan_metrics": "analysis.power",
    "to_wire": "analysis.report",
}


def __getattr__(name: str) -> object:
    """Load a documented name from where it lives."""
    if name not in _PLACES:
        raise AttributeError(f"module 'analysis' has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    """Return the documented names, for completion."""
    return sorted(_PLACES)
