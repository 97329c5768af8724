"""Gate policy: every number of a gate comes from the policy, none from the code."""

from dataclasses import MISSING, FrozenInstanceError, fields

import pytest

from guardwave.reducer.rollout.policy import Alarms, GatePolicy, MinimumData
from guardwave.reducer.rollout.state import CEILING_BPS
from tests.support.policies import shipped_policy


@pytest.mark.parametrize("asked", [Alarms, GatePolicy, MinimumData])
def test_no_number_of_a_policy_has_a_default(asked):
    assert {field.name for field in fields(asked) if field.default is not MISSING} <= {"requires"}


def test_a_new_rollout_has_the_ceiling_of_the_shipped_policy():
    assert shipped_policy().ceiling_bps == CEILING_BPS


def test_a_policy_cannot_be_changed_under_a_gate():
    with pytest.raises(FrozenInstanceError):
        shipped_policy().alpha = 0.5  # type: ignore[misc]  # the point
