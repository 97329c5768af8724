"""What a gate asks for, as data from versioned TOML: margins, minimum data, dwell, ceilings."""

from collections.abc import Mapping
from dataclasses import dataclass

from reducer.vocabulary import Gate, Metric


@dataclass(frozen=True, slots=True)
class MinimumData:
    """Below any of these the data cannot decide, whatever the p value."""

    owners: int = 30
    effective_owners: float = 10.0
    largest_owner_share: float = 0.25
    expected_harm_events: float = 10.0


@dataclass(frozen=True, slots=True)
class GatePolicy:
    """The policy of one environment.

    `margins` holds, per gate, how much worse each metric may be: a difference as a fraction
    (0.01 is one percentage point) or a ratio (1.10). A metric that is not named there is not
    part of that gate. Shares are basis points.
    """

    version: str
    margins: Mapping[Gate, Mapping[Metric, float]]
    alpha: float = 0.05
    permutations: int = 1999
    refined_permutations: int = 99_999
    minimum_data: MinimumData = MinimumData()
    dwell_days: int = 7
    coverage_floor: float = 0.99
    contract_floor: float = 0.99
    evaluation_max_age_hours: int = 24
    revision_tolerance: float = 0.005
    ceiling_bps: int = 500
    holdback_bps: int = 2000
    requires: tuple[str, ...] = ()
