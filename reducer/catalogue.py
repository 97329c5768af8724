"""Catalogue: the guards that ship with the product, and the invariants they declare."""

from collections.abc import Mapping
from dataclasses import dataclass

from guardwave.reducer.vocabulary import Invariant, LoopType


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """One guard, with the invariants it declares on top of those that hold for every guard."""

    guard: str
    description: str
    declares: frozenset[Invariant] = frozenset()


_ENTRIES = (
    CatalogueEntry(
        "repeated_tool_failure",
        "The same tool fails with the same typed error again and again.",
        frozenset(
            {
                Invariant.CANCELLED_COUNTED,
                Invariant.INELIGIBLE_COUNTED,
                Invariant.INCOMPLETE_BATCH_DECISION,
                Invariant.STOP_WITHOUT_WARN,
                Invariant.ENFORCED_ON_UNRELIABLE_INPUT,
            }
        ),
    ),
    CatalogueEntry(
        "duplicate_call_id", "The provider sends a tool call again under an id that was answered."
    ),
    CatalogueEntry("identical_call", "The model asks for the same call with equal arguments."),
    CatalogueEntry(
        "side_effect_duplicate", "A call with a side effect would be carried out a second time."
    ),
)

CATALOGUE: Mapping[str, CatalogueEntry] = {entry.guard: entry for entry in _ENTRIES}

# The guard that a stop belongs to. The two other loop types are protections without a rollout.
GUARD_OF_LOOP: Mapping[LoopType, str] = {
    LoopType.REPEATED_TOOL_EXECUTION_FAILURE: "repeated_tool_failure",
    LoopType.GLOBAL_TOOL_CALL_DUPLICATE: "duplicate_call_id",
    LoopType.IDENTICAL_TOOL_CALL: "identical_call",
    LoopType.SIDE_EFFECT_DUPLICATE: "side_effect_duplicate",
}
