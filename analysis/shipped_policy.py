"""The shipped gate policy as data, for whoever judges evidence away from a control plane.

A server reads its policy from a file, and each evaluation's bundle has the one that it was judged
by. A test holds these numbers equal to those of the shipped file.
"""

from reducer.rollout.policy import Alarms, GatePolicy, MinimumData
from reducer.vocabulary import Gate, Metric

_IN_BOTH = {
    Metric.DISRUPTION: 0.005,
    Metric.TOKENS: 1.10,
    Metric.TURNS: 1.10,
    Metric.LATENCY_P95: 1.10,
}

# `dataclasses.replace` makes a stricter one of it; give that another version.
SHIPPED_POLICY = GatePolicy(
    version="2026-11",
    margins={
        Gate.SHADOW: {},
        Gate.WARN: {Metric.CANCELLATION: 0.005, **_IN_BOTH},
        Gate.ENFORCE: {Metric.COMPLETION: 0.01, **_IN_BOTH},
    },
    alpha=0.05,
    permutations=1_999,
    refined_permutations=99_999,
    minimum_data=MinimumData(
        owners=30,
        effective_owners=10.0,
        largest_owner_share=0.25,
        expected_harm_events=10.0,
    ),
    alarms=Alarms(alpha=0.05, lowers_enforce=True),
    stop_band=0.005,
    planned_power=0.8,
    dwell_days=7,
    coverage_floor=0.99,
    contract_floor=0.99,
    evaluation_max_age_hours=24,
    revision_tolerance=0.005,
    ceiling_bps=500,
    holdback_bps=2_000,
)
