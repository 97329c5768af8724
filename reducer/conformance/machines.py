"""The four built-in guards behind the neutral schema, by the name of their vectors."""

from collections.abc import Callable, Mapping

from reducer.conformance import duplicate_call_id, identical_call, repeated_failure, side_effect
from reducer.conformance.vectors import Machine

MACHINES: Mapping[str, Callable[[Mapping[str, object]], Machine]] = {
    "repeated-failure": repeated_failure.Machine,
    "duplicate-call-id": duplicate_call_id.Machine,
    "identical-call": identical_call.Machine,
    "side-effect": side_effect.Machine,
}
