"""Offline: the same judgement for files and notebooks, without a control plane."""

from guardwave.analysis.offline.columns import Arms
from guardwave.analysis.offline.notebook import SHIPPED_POLICY, evaluate, evidence_of
from guardwave.analysis.offline.owner_file import OfflineResult, analyse, to_wire

__all__ = [
    "SHIPPED_POLICY",
    "Arms",
    "OfflineResult",
    "analyse",
    "evaluate",
    "evidence_of",
    "to_wire",
]
