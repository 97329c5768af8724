"""Analysis of a wave's evidence: intervals, the test at the margin, the verdict of a gate.

For notebooks: `analysis.evaluate(owner_days, analysis.SHIPPED_POLICY)`. The names below are loaded
when asked for, so that importing a part of the package stays as light as that part.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from guardwave.analysis.frames import Baseline as Baseline
    from guardwave.analysis.frames import DrawInputs as DrawInputs
    from guardwave.analysis.frames import OwnerHistograms as OwnerHistograms
    from guardwave.analysis.frames import Share as Share
    from guardwave.analysis.frames import WaveEvidence as WaveEvidence
    from guardwave.analysis.gate import harm_alarms as harm_alarms
    from guardwave.analysis.inference import plan_metrics as plan_metrics
    from guardwave.analysis.offline import SHIPPED_POLICY as SHIPPED_POLICY
    from guardwave.analysis.offline import evaluate as evaluate
    from guardwave.analysis.offline import evidence_of as evidence_of
    from guardwave.analysis.planning import plan_by_placebo as plan_by_placebo
    from guardwave.analysis.report import GateEvaluation as GateEvaluation
    from guardwave.analysis.report import to_wire as to_wire
    from guardwave.reducer.rollout.policy import GatePolicy as GatePolicy

__all__ = [
    "SHIPPED_POLICY",
    "Baseline",
    "DrawInputs",
    "GateEvaluation",
    "GatePolicy",
    "OwnerHistograms",
    "Share",
    "WaveEvidence",
    "evaluate",
    "evidence_of",
    "frames",
    "gate",
    "harm_alarms",
    "inference",
    "offline",
    "plan_by_placebo",
    "plan_metrics",
    "planning",
    "report",
    "sentences",
    "to_wire",
]

_PLACES = {
    "Baseline": "guardwave.analysis.frames.baseline",
    "DrawInputs": "guardwave.analysis.frames.evidence",
    "GateEvaluation": "guardwave.analysis.report",
    "GatePolicy": "guardwave.reducer.rollout.policy",
    "OwnerHistograms": "guardwave.analysis.frames.histograms",
    "SHIPPED_POLICY": "guardwave.analysis.offline.notebook",
    "Share": "guardwave.analysis.frames.evidence",
    "WaveEvidence": "guardwave.analysis.frames.evidence",
    "evaluate": "guardwave.analysis.offline.notebook",
    "evidence_of": "guardwave.analysis.offline.notebook",
    "harm_alarms": "guardwave.analysis.gate.alarms",
    "plan_by_placebo": "guardwave.analysis.planning.placebo",
    "plan_metrics": "guardwave.analysis.inference.power",
    "to_wire": "guardwave.analysis.report",
}


def __getattr__(name: str) -> object:
    """Load a documented name from where it lives."""
    if name not in _PLACES:
        raise AttributeError(f"module 'guardwave.analysis' has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    """Return the documented names, for completion."""
    return sorted(_PLACES)
