"""Gate: the checks, the metrics and the verdict of a wave, and the alarms between its looks."""

from guardwave.analysis.gate.alarms import (
    AnyTimeLooks,
    Looks,
    ScheduledLooks,
    harm_alarms,
    information,
)
from guardwave.analysis.gate.comparison import Judge
from guardwave.analysis.gate.exposure import exposure_of
from guardwave.analysis.gate.loop_events import LOOPS, loops_note
from guardwave.analysis.gate.verdict import evaluate
from guardwave.analysis.gate.version_purity import OFF_PIN, pinned_prompts

__all__ = [
    "LOOPS",
    "OFF_PIN",
    "AnyTimeLooks",
    "Judge",
    "Looks",
    "ScheduledLooks",
    "evaluate",
    "exposure_of",
    "harm_alarms",
    "information",
    "loops_note",
    "pinned_prompts",
]
