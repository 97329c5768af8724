"""The numbers that a gate asks for unless a policy says otherwise."""

from dataclasses import FrozenInstanceError

import pytest

from reducer.rollout.policy import GatePolicy
from reducer.rollout.state import CEILING_BPS


def test_a_policy_that_says_nothing_asks_for_seven_days_and_five_percent():
    policy = GatePolicy(version="test", margins={})
    assert (policy.dwell_days, policy.evaluation_max_age_hours) == (7, 24)
    assert (policy.ceiling_bps, policy.holdback_bps) == (CEILING_BPS, 2000)
    assert (policy.coverage_floor, policy.contract_floor) == (0.99, 0.99)
    assert policy.revision_tolerance == 0.005


def test_a_policy_cannot_be_changed_under_a_gate():
    with pytest.raises(FrozenInstanceError):
        GatePolicy(version="test", margins={}).alpha = 0.5  # type: ignore[misc]  # the point
