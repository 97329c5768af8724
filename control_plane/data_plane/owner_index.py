"""The owners' facts as web workers hold them: one entry an owner, equal facts stored once."""

from dataclasses import replace
from datetime import date

from control_plane.stores.owners import OwnerChanges
from reducer.rollout.eligibility import OwnerFacts, Ownership

_Days = tuple[tuple[str, date], ...]
_Shape = tuple[Ownership | None, bool, _Days, _Days]

_MOST_SHAPES = 10_000


class OwnerIndex:
    """Facts by pseudonym. One thread learns; any thread may look up meanwhile.

    It is changed in place, because copying a million entries for each owner seen would cost more
    than everything else. An owner's facts are one value, so a reader sees the old or the new ones.
    """

    __slots__ = ("_facts", "_shapes", "upto")

    def __init__(self) -> None:
        self._facts: dict[str, OwnerFacts] = {}
        self._shapes: dict[_Shape, OwnerFacts] = {}
        self.upto = 0

    def __len__(self) -> int:
        return len(self._facts)

    def facts_of(self, pseudonym: str) -> OwnerFacts | None:
        """Return what is known of the owner, None when nothing is."""
        return self._facts.get(pseudonym)

    def learn(self, changes: OwnerChanges) -> None:
        """Take over changed facts. `upto` is then the number to ask from next."""
        for pseudonym, facts in changes.facts.items():
            self._facts[pseudonym] = self._shared(facts)
        self.upto = changes.upto

    def _shared(self, facts: OwnerFacts) -> OwnerFacts:
        """Return the one object that all owners with these facts share.

        The days with prompts are left out: they decide who gets on a roster, not who is eligible.
        """
        shape = (
            facts.ownership,
            facts.is_trusted,
            tuple(sorted(facts.versions.items())),
            tuple(sorted(facts.producers.items())),
        )
        found = self._shapes.get(shape)
        if found is None:
            if len(self._shapes) >= _MOST_SHAPES:
                # Shapes of past days are never asked for again; those in use live on in `_facts`.
                self._shapes.clear()
            found = self._shapes[shape] = replace(facts, prompt_days=frozenset())
        return found
