"""The shipped policy, which the policies of tests start from."""

from control_plane import policy
from reducer.rollout.policy import GatePolicy


def shipped_policy() -> GatePolicy:
    """Return the policy that is in force when no file is named."""
    return policy.load(None).base
