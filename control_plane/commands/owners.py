"""Stating facts of owners, by owner id; the ids become pseudonyms here and are forgotten."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from control_plane.commands.changes import Change, Decision, Note, Unchanged, change
from control_plane.context import Context
from control_plane.errors import InvalidField, RuleViolated
from control_plane.state import Action, Actor, Environment
from control_plane.stores.owners import StatedFacts
from reducer.rollout.eligibility import Ownership
from reducer.rollout.pseudonym import pseudonym_of

MAX_OWNERS_AT_ONCE = 1000


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


def state_owner_facts(
    context: Context,
    environment: str,
    facts: Mapping[str, StatedFacts],
    *,
    actor: Actor,
    reason: str = "",
) -> int:
    """State facts of up to 1,000 owners, by owner id; answer how many changed.

    Owner ids are turned into pseudonyms here and forgotten. The audit names how many owners and,
    for a single one, its pseudonym.

    Raises:
        InvalidField: an owner id is empty, too long or not printable; names its place only.
        RuleViolated: more than 1,000 owners at once.
    """
    if len(facts) > MAX_OWNERS_AT_ONCE:
        raise RuleViolated(f"{len(facts)} owners in one request; send at most {MAX_OWNERS_AT_ONCE}")

    def decide(before: Environment) -> Decision[dict[str, StatedFacts]]:
        changed = _changed(context, environment, _pseudonymous(before, facts))
        if not changed:
            return Unchanged(changed)
        names = sorted(changed)
        digest = sha256("".join(names).encode()).hexdigest()[:16]
        target = names[0] if len(names) == 1 else f"{len(names)} owners, digest {digest}"
        note = Note(actor, Action.OWNER_FACTS_STATED, target, reason)
        return Change(before, (), note, changed)

    # The entry comes first: facts without an entry would be a change that nobody made, and a
    # request that breaks off between the two is sent again and finds the facts still to state.
    changed = change(context, environment, decide)
    context.owners.state(environment, changed)
    return len(changed)


def _changed(
    context: Context, environment: str, stated: dict[str, StatedFacts]
) -> dict[str, StatedFacts]:
    """Return those whose stated facts differ from what is held."""
    held = context.owners.facts(environment, list(stated))
    return {
        pseudonym: facts
        for pseudonym, facts in stated.items()
        if (known := held.get(pseudonym)) is None
        or known.ownership is not facts.ownership
        or known.is_trusted is not facts.is_trusted
    }


def _pseudonymous(
    environment: Environment, facts: Mapping[str, StatedFacts]
) -> dict[str, StatedFacts]:
    key = bytes.fromhex(environment.pseudonym_key)
    found: dict[str, StatedFacts] = {}
    for at, (owner, stated) in enumerate(facts.items()):
        try:
            found[pseudonym_of(key, owner)] = stated
        except ValueError as error:
            raise InvalidField(str(error), pointer=f"/owners/{at}/owner") from None
    return found
