"""Conformance kit: vectors that any guard machine can run, and adapters for our guards."""

from collections.abc import Callable, Mapping

from guardwave.reducer.conformance import (
    duplicate_call_id,
    identical_call,
    repeated_failure,
    side_effect,
)
from guardwave.reducer.conformance.inference import GUARDS
from guardwave.reducer.conformance.vectors import Machine, VectorFile, parse, run

__all__ = [
    "GUARDS",
    "MACHINES",
    "Machine",
    "VectorFile",
    "parse",
    "run",
]


MACHINES: Mapping[str, Callable[[Mapping[str, object]], Machine]] = {
    "repeated-failure": repeated_failure.Machine,
    "duplicate-call-id": duplicate_call_id.Machine,
    "identical-call": identical_call.Machine,
    "side-effect": side_effect.Machine,
}
