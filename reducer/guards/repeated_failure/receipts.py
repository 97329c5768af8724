"""One settled batch of tool calls, and the receipts that prove that all of it settled."""

from collections.abc import Collection, Iterable
from dataclasses import KW_ONLY, dataclass
from typing import NamedTuple

from reducer.guards.mistakes import mistaken
from reducer.guards.repeated_failure.outcome import Observation


@dataclass(frozen=True, slots=True)
class SettledBatch:
    """All calls of one model response (or of several handled as one), after the last one settled.

    `is_complete`: every admitted call settled, provably (`settle`). `is_input_reliable`: draining
    the input that came while the tools ran worked. `has_external_input` and `has_queued_prompt`:
    a person, or a prompt that waits, spoke meanwhile. The first two have no default: what is not
    known must not be taken for proven.

    Raises:
        ValueError: a field is of another type; naming it.
    """

    observations: tuple[Observation, ...]
    _: KW_ONLY
    is_complete: bool
    is_input_reliable: bool
    has_external_input: bool = False
    has_queued_prompt: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.observations, tuple):
            raise mistaken("observations", self.observations, "pass a tuple of Observation")
        for each in self.observations:
            if not isinstance(each, Observation):
                raise mistaken("one of observations", each, "pass an Observation")
        for name in _FLAGS:
            if not isinstance(getattr(self, name), bool):
                raise mistaken(name, getattr(self, name), "pass True or False")


_FLAGS = ("is_complete", "is_input_reliable", "has_external_input", "has_queued_prompt")


class Receipt(NamedTuple):
    """That one admitted call settled. `ordinal` is its place among the admitted calls, from 1."""

    ordinal: int
    observation: Observation


def settle(
    admitted: Collection[str],
    receipts: Iterable[Receipt],
    *,
    is_input_reliable: bool,
    has_external_input: bool = False,
    has_queued_prompt: bool = False,
) -> SettledBatch:
    """Return the batch of the admitted call ids, complete when the receipts prove it.

    They prove it when each distinct admitted id has one and their ordinals run from 1 without a
    gap (docs/guards). The first receipt of a call stands: a late second terminal frame is
    ignored. A receipt of a call that was not admitted here proves nothing and leaves the batch
    incomplete. A sibling that was skipped needs its receipt too and is no failure by its status.

    Raises:
        ValueError: an id, a receipt, an ordinal or an observation of another type, or one id
            passed alone.
    """
    expected = _distinct(admitted)
    if not isinstance(receipts, Iterable):
        raise mistaken("receipts", receipts, _RECEIPTS)
    first: dict[str | None, Receipt] = {}
    for receipt in receipts:
        first.setdefault(_checked(receipt).observation.call_id, receipt)
    ordinals = sorted(receipt.ordinal for receipt in first.values())
    return SettledBatch(
        tuple(receipt.observation for receipt in first.values()),
        is_complete=first.keys() == expected and ordinals == list(range(1, len(expected) + 1)),
        is_input_reliable=is_input_reliable,
        has_external_input=has_external_input,
        has_queued_prompt=has_queued_prompt,
    )


def _distinct(admitted: Collection[str]) -> frozenset[str]:
    if isinstance(admitted, str):
        raise ValueError("admitted is a text; pass the collection of admitted call ids")
    if not isinstance(admitted, Iterable):
        raise mistaken("admitted", admitted, "pass the collection of admitted call ids")
    for each in admitted:
        if not isinstance(each, str):
            raise mistaken("one of admitted", each, "pass the ids as texts (CallFate.key)")
    return frozenset(admitted)


def _checked(receipt: Receipt) -> Receipt:
    if not isinstance(receipt, Receipt):
        raise mistaken("one of receipts", receipt, _RECEIPTS)
    # By exact type: True would pass for ordinal 1.
    if type(receipt.ordinal) is not int:
        raise mistaken("ordinal", receipt.ordinal, "pass the call's place in the batch, from 1")
    if not isinstance(receipt.observation, Observation):
        raise mistaken(
            "observation",
            receipt.observation,
            "pass an Observation (reducer.guards.repeated_failure)",
        )
    return receipt


_RECEIPTS = "pass a Receipt(ordinal, observation) (reducer.guards.repeated_failure) for each call"
