"""The phases of the ladder: their cohorts, the highest mode of each, and the gate above each."""

from collections.abc import Mapping

from reducer.vocabulary import Cohort, Gate, Mode

COHORT_MODES: Mapping[Mode, Mapping[Cohort, Mode]] = {
    Mode.OFF: {Cohort.EVERYONE: Mode.OFF},
    Mode.SHADOW: {Cohort.EVERYONE: Mode.SHADOW},
    Mode.WARN: {Cohort.WARNED: Mode.WARN, Cohort.HOLDBACK: Mode.SHADOW},
    Mode.ENFORCE: {Cohort.ENFORCED: Mode.ENFORCE, Cohort.CONTROL: Mode.WARN},
}
TREATED: Mapping[Mode, Cohort] = {
    Mode.OFF: Cohort.EVERYONE,
    Mode.SHADOW: Cohort.EVERYONE,
    Mode.WARN: Cohort.WARNED,
    Mode.ENFORCE: Cohort.ENFORCED,
}
REFERENCE: Mapping[Mode, Cohort] = {
    Mode.OFF: Cohort.EVERYONE,
    Mode.SHADOW: Cohort.EVERYONE,
    Mode.WARN: Cohort.HOLDBACK,
    Mode.ENFORCE: Cohort.CONTROL,
}
SETTABLE = frozenset(cohort for modes in COHORT_MODES.values() for cohort in modes)


def gate_for(phase: Mode) -> Gate | None:
    """Return the gate that must be passed to leave a phase upwards; None when the step is free."""
    return {Mode.SHADOW: Gate.SHADOW, Mode.WARN: Gate.WARN, Mode.ENFORCE: Gate.ENFORCE}.get(phase)
