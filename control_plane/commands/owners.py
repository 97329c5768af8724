"""Owner facts: stated by owner id; each id becomes a pseudonym here and is then forgotten."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from guardwave.control_plane.core.errors import InvalidField, RuleViolated
from guardwave.control_plane.core.state import Action, Actor, Environment
from guardwave.control_plane.rollouts.changes import Change, Decision, Note, Unchanged, change
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.stores.owners import StatedFacts
from guardwave.reducer.rollout.eligibility import Ownership
from guardwave.reducer.rollout.pseudonym import pseudonym_of

MAX_OWNERS_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class OwnerStatement:
    """The facts stated about one owner. `repr` leaves out the id, which must reach no log."""

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
    """State facts of up to 1,000 owners; return how many changed.

    Raises:
        RuleViolated: an owner is named twice; the message has its place only.
        InvalidField: an id cannot be an owner's.
        NotFound: no such environment.
    """
    facts: dict[str, StatedFacts] = {}
    for at, statement in enumerate(statements):
        if statement.owner in facts:
            raise RuleViolated(
                f"owners/{at} names an owner that an earlier entry names too; name each once"
            )
        facts[statement.owner] = StatedFacts(statement.ownership, statement.is_trusted)
    return state_owner_facts(context, environment, facts, actor=actor, reason=reason)


def state_owner_facts(
    context: Context,
    environment: str,
    facts: Mapping[str, StatedFacts],
    *,
    actor: Actor,
    reason: str = "",
) -> int:
    """State facts of up to 1,000 owners, by owner id; return how many changed.

    The audit entry has the number of owners and, for a single one, its pseudonym.

    Raises:
        InvalidField: an id is empty, too long or not printable; the message has its place only.
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

    # The audit entry comes first: no fact may change without one. A caller whose request breaks
    # off between the two sends it again and then changes the facts.
    changed = change(context, environment, decide)
    context.owners.state_facts(environment, changed)
    return len(changed)


def _changed(
    context: Context, environment: str, stated: dict[str, StatedFacts]
) -> dict[str, StatedFacts]:
    """Return the stated facts that differ from the stored ones."""
    stored = context.owners.facts(environment, list(stated))
    return {
        pseudonym: facts
        for pseudonym, facts in stated.items()
        if (known := stored.get(pseudonym)) is None
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
