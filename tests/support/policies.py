"""Policies: the shipped one, which the policies of tests start from."""

from guardwave.control_plane.core import policy
from guardwave.reducer.rollout.policy import GatePolicy


def shipped_policy() -> GatePolicy:
    """Return the policy that is in force when no file is named."""
    return policy.load(None).base
