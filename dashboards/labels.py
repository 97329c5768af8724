"""Labels: words and shapes for the closed sets of the domain; no meaning depends on colour."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import NamedTuple

from guardwave.control_plane.queries.evaluation_model import (
    CheckView,
    CupedView,
    EvaluationView,
    NoteView,
)
from guardwave.control_plane.queries.page_models import TelemetryState, WaveDayLine
from guardwave.dashboards import formatting as fmt
from guardwave.reducer.rollout.days import DayNote
from guardwave.reducer.vocabulary import Cohort, Gate, Invariant, Metric, Mode, Verdict

MODE_GLYPHS = {Mode.OFF: "○", Mode.SHADOW: "◔", Mode.WARN: "◑", Mode.ENFORCE: "●"}

MODE_MEANINGS = {
    Mode.OFF: "the guard does nothing and reports nothing",
    Mode.SHADOW: "the guard only reports what it would do",
    Mode.WARN: "the guard reminds the model, and stops nothing",
    Mode.ENFORCE: "the guard reminds the model, then stops the candidate",
}

TELEMETRY = {
    TelemetryState.FLOWING: "flowing",
    TelemetryState.SILENT: "silent",
    TelemetryState.NO_RECORDS: "no records yet",
}

VERDICT_WORDS = {
    Verdict.WITHIN: "within",
    Verdict.UNPROVEN: "unproven",
    Verdict.NO_DATA: "no data",
    Verdict.BEYOND: "beyond",
    Verdict.INVALID: "invalid",
}

VERDICT_MEANINGS = {
    Verdict.WITHIN: "shown to be no worse than the margin allows",
    Verdict.UNPROVEN: "not shown to be harmless",
    Verdict.NO_DATA: "numbers that the gate needs are missing",
    Verdict.BEYOND: "worse than the margin allows",
    Verdict.INVALID: "the comparison itself is broken and proves nothing",
}

METRIC_NAMES = {
    Metric.COMPLETION: "Completion",
    Metric.DISRUPTION: "Disruption",
    Metric.CANCELLATION: "Cancellation",
    Metric.TOKENS: "Tokens",
    Metric.TURNS: "Model turns",
    Metric.LATENCY_P95: "Latency p95",
}

METRIC_MEANINGS = {
    Metric.COMPLETION: "share of prompts that were completed, not counting cancelled ones",
    Metric.DISRUPTION: "share of prompts with a disconnect or retry within 10 minutes of their end",
    Metric.CANCELLATION: "share of prompts that were cancelled",
    Metric.TOKENS: "input and output tokens per prompt started",
    Metric.TURNS: "model turns per prompt started",
    Metric.LATENCY_P95: "95th percentile of a prompt's duration",
}

COHORT_MEANINGS = {
    Cohort.EVERYONE: "every eligible owner",
    Cohort.WARNED: "drawn to be warned",
    Cohort.HOLDBACK: "held back in shadow for comparison",
    Cohort.ENFORCED: "drawn to be stopped when the guard decides so",
    Cohort.CONTROL: "warned only, for comparison",
    Cohort.OUTSIDE: "eligible, but not on the frozen roster",
    Cohort.INELIGIBLE: "not eligible for more than shadow",
}

INVARIANT_MEANINGS = {
    Invariant.CONTRACT_VIOLATION: "a record that the telemetry contract rules out",
    Invariant.CANCELLED_COUNTED: "a cancelled call was counted towards a decision",
    Invariant.INELIGIBLE_COUNTED: "a call that did not end in an error was counted",
    Invariant.INCOMPLETE_BATCH_DECISION: "a decision was taken on an incomplete batch",
    Invariant.MODE_MISMATCH: "a record reports a higher mode than its assignment allows",
    Invariant.SENSITIVE_FIELD: "a record carried data that must never be sent",
    Invariant.STOP_WITHOUT_WARN: "a candidate was stopped without an earlier warning",
    Invariant.TREATMENT_SWITCHED: "one prompt had two modes or two cohorts",
    Invariant.ENFORCED_ON_UNRELIABLE_INPUT: "a candidate was stopped on unreliable input",
    Invariant.EXISTING_GUARD_CHANGED: "a host reported that another of its protections changed",
}

CHECK_NAMES = {
    "dwell": "Complete days",
    "coverage": "Telemetry coverage",
    "contract": "Telemetry contract",
    "invariants": "Invariants",
    "version_purity": "Version purity",
    "minimum_data": "Minimum data",
    "balance": "Cohort balance",
    "exposure": "Exposure",
    "stop_consistency": "Stop consistency",
    "review": "Human review",
    "power": "Power",
}

# The numbers of a check that its sentence leaves out, by their keys in the evaluation.
CHECK_NUMBERS: Mapping[str, Mapping[str, str]] = {
    "dwell": {},
    "coverage": {"needed_share": "needed share"},
    "contract": {"needed_share": "needed share"},
    "invariants": {},
    "version_purity": {},
    "balance": {},
    "exposure": {"needed_share": "needed share"},
    "stop_consistency": {},
}

NOTE_NAMES = {
    "baseline_balance": "Before the wave",
    "control_moved": "The reference cohort",
    "exposure": "Exposure",
    "other_protections": "Other protections",
    "power": "Power",
    "saved_calls": "Saved calls",
    "supported_hosts": "Supported hosts",
    "unseen_owners": "Harm in few owners",
}

# Notes that stand beside a check. The note about other protections belongs to the invariant that
# they do not change.
CHECK_OF_NOTE = {"other_protections": "invariants"}


def gate_name(gate: Gate) -> str:
    """Return a gate's name as a title."""
    return f"{gate.value.capitalize()} gate"


def verdict_meaning(evaluation: EvaluationView) -> str:
    """Return the meaning of an evaluation's verdict; a gate without metrics has no margin."""
    if evaluation.verdict is Verdict.WITHIN and not evaluation.metrics:
        return "every check of this gate holds"
    return VERDICT_MEANINGS[evaluation.verdict]


def remaining_variance(cuped: CupedView) -> str:
    """Return the share of variance that remains after the adjustment by the days before."""
    left = cuped.variance_ratio
    return "no variance removed" if left >= 0.995 else f"{fmt.percent(left, 0)} of variance left"


def check_name(check: str) -> str:
    """Return the title of a check; an unknown check keeps its own name."""
    return CHECK_NAMES.get(check, code_label(check).capitalize())


def note_name(topic: str) -> str:
    """Return the title of a note; an unknown note keeps its own name."""
    return NOTE_NAMES.get(topic, code_label(topic).capitalize())


def days_by_note(days: Iterable[WaveDayLine]) -> Mapping[DayNote, Sequence[date]]:
    """Return every note of the days once, with its days in order."""
    by_note: defaultdict[DayNote, list[date]] = defaultdict(list)
    for line in days:
        for note in line.notes:
            by_note[note].append(line.day)
    return by_note


def notes_of_check(evaluation: EvaluationView, check: CheckView) -> tuple[NoteView, ...]:
    """Return the notes that stand beside a check of the evaluation."""
    return tuple(n for n in evaluation.notes if CHECK_OF_NOTE.get(n.topic) == check.check)


def has_unexplained_days(evaluation: EvaluationView) -> bool:
    """Return whether a day did not count and no check mentions it; checks mention only the last."""
    sentences = " ".join(check.sentence for check in evaluation.checks)
    return any(
        uncounted.day.isoformat() not in sentences for uncounted in evaluation.days.not_counted
    )


class LeastPower(NamedTuple):
    """The metric with the least power, and how often a harmless guard is shown within it."""

    metric: Metric
    power: float


def least_power(evaluation: EvaluationView) -> LeastPower | None:
    """Return the least power in the evaluation's note on power, None without such a note."""
    noted = [note.numbers for note in evaluation.notes if note.topic == "power"]
    powers = [
        LeastPower(metric, float(power))
        for numbers in noted
        for metric in Metric
        if (power := numbers.get(f"power_{metric}")) is not None
    ]
    return min(powers, key=lambda metric: metric.power, default=None)


def other_notes(evaluation: EvaluationView) -> tuple[NoteView, ...]:
    """Return the notes that stand beside no check of the evaluation."""
    checks = {check.check for check in evaluation.checks}
    return tuple(n for n in evaluation.notes if CHECK_OF_NOTE.get(n.topic) not in checks)


def check_numbers(check: CheckView) -> tuple[tuple[str, str], ...]:
    """Return the numbers that a check's sentence leaves out, each with its label.

    A check that this page does not know shows all its numbers.
    """
    shown = CHECK_NUMBERS.get(check.check)
    if shown is None:
        shown = {key: code_label(key) for key in check.numbers}
    return tuple(
        (name, _check_number(key, check.numbers[key]))
        for key, name in shown.items()
        if key in check.numbers
    )


def _check_number(key: str, number: float | str | None) -> str:
    if key.endswith("_share") and not isinstance(number, str):
        return fmt.percent(number, 0)
    return fmt.plain_number(number)


def code_label(code: Invariant | str) -> str:
    """Return a code of a closed set as words, such as `mode mismatch`."""
    return str(code).replace("_", " ")
