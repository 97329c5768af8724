"""Stating facts of owners as the API and imports name them: by owner id, each once."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from control_plane.commands.environments import state_owner_facts
from control_plane.context import Context
from control_plane.errors import RuleViolated
from control_plane.state import Actor
from control_plane.stores.owners import StatedFacts
from reducer.rollout.eligibility import Ownership


@dataclass(frozen=True, slots=True)
class OwnerStatement:
    """What somebody says of one owner. The id is kept out of `repr`: it must reach no log."""

    owner: str = field(repr=False)
    ownership: Ownership
    is_trusted: bool


def state_owners(
    context: Context,
    environment: str,
    statements: Sequence[OwnerStatement],
    *,
    actor: Actor,
    reason: str = "",
) -> int:
    """State facts of up to 1,000 owners; answer how many changed.

    Raises:
        RuleViolated: an owner is named twice; names its place only.
        InvalidField: an id cannot be an owner's.
        NotFound: no such environment.
    """
    facts: dict[str, StatedFacts] = {}
    for at, each in enumerate(statements):
        if each.owner in facts:
            raise RuleViolated(
                f"owners/{at} names an owner that an earlier entry names too; name each once"
            )
        facts[each.owner] = StatedFacts(each.ownership, each.is_trusted)
    return state_owner_facts(context, environment, facts, actor=actor, reason=reason)
