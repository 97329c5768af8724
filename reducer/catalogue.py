"""The guards that ship with the product, and what each declares about itself."""

from collections.abc import Mapping
from dataclasses import dataclass

from reducer.vocabulary import Invariant


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """One guard: what it protects from, the invariants it declares beyond those of every guard.

    With `warns_before_stop` a warning of the same candidate precedes every stop.
    """

    guard: str
    description: str
    declares: frozenset[Invariant] = frozenset()
    warns_before_stop: bool = False


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
        warns_before_stop=True,
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
