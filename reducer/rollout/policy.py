"""Gate policy: margins, minimum data, dwell and ceilings, as data from versioned TOML."""

from collections.abc import Mapping
from dataclasses import dataclass

from guardwave.reducer.vocabulary import Gate, Metric


@dataclass(frozen=True, slots=True)
class MinimumData:
    """The least data that can decide, whatever the p value."""

    owners: int
    effective_owners: float
    largest_owner_share: float
    expected_harm_events: float


@dataclass(frozen=True, slots=True)
class Alarms:
    """Harm alarms, which may look on any day of a wave.

    `alpha` is spent once over the declared days of one wave and metric, and once over the weeks
    after. With `lowers_enforce` an alarm lowers enforce to warn, else it is only reported.
    """

    alpha: float
    lowers_enforce: bool


@dataclass(frozen=True, slots=True)
class GatePolicy:
    """The policy of one environment.

    `margins` holds, by gate, how much worse each metric may be: a difference as a fraction (0.01
    is one percentage point) or a ratio (1.10). A metric without a margin is not part of that gate.
    Shares are basis points. `stop_band` is the largest difference, as a fraction of prompts,
    between the stops of a treated cohort and the stops that its reference cohort would have had.
    `planned_power` is the power for which a plan computes the owners needed. No number has a
    default here: the shipped ones stand in the policy file.
    """

    version: str
    margins: Mapping[Gate, Mapping[Metric, float]]
    alpha: float
    permutations: int
    refined_permutations: int
    minimum_data: MinimumData
    alarms: Alarms
    stop_band: float
    planned_power: float
    dwell_days: int
    coverage_floor: float
    contract_floor: float
    evaluation_max_age_hours: int
    revision_tolerance: float
    ceiling_bps: int
    holdback_bps: int
    requires: tuple[str, ...] = ()
