"""Runs of records that say what earlier ones said, booked a prompt at a time."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from control_plane.ingest.booked import Backing
from control_plane.ingest.fields import LONGEST_KEPT
from control_plane.ingest.forms import MINUTE_NS
from control_plane.ingest.identity import prompt_digest
from control_plane.ingest.rejections import Refusal
from control_plane.ingest.wording_effects import WordingEffects
from control_plane.ingest.wordings import Repeated, Worded
from control_plane.stores.evidence_events import Sighting
from control_plane.stores.prompt_events import PromptEvents, minute_bits
from control_plane.stores.seen import SEEN_BUCKET_S

Vouch = Callable[[tuple[str, ...], str, str | None], Sequence[Backing]]


# So many sets of cells, with a table of effects each; a sender's versions make as many as it likes.
_MOST_CELLS = 1024


class Rebooked(NamedTuple):
    """What runs add: of each prompt its events, and the sightings of its owner.

    `left` are records that have to be booked alone.
    """

    prompts: list[tuple[PromptEvents, Sequence[Sighting]]]
    left: list[Worded]


class _Owner(NamedTuple):
    pseudonym: str
    bucket: int
    effects: WordingEffects


class _Owners(dict[tuple[tuple[str, ...], str], _Owner | None]):
    """Whose ids under a version are; what nothing vouches for, or is long, is found each time.

    Such texts are the sender's own, and without number.
    """

    def __init__(
        self, find: Callable[[tuple[str, ...], str], _Owner | None], remembered: int
    ) -> None:
        super().__init__()
        self._find = find
        self._remembered = remembered

    def __missing__(self, named: tuple[tuple[str, ...], str]) -> _Owner | None:
        owner = self._find(*named)
        if owner is not None and sum(map(len, named[0])) <= LONGEST_KEPT:
            if len(self) >= self._remembered:
                self.clear()
            self[named] = owner
        return owner


class Repetitions:
    """Books runs, with what their wordings and their assignment ids decide worked out once.

    `vouch` verifies assignment ids, `sighting` makes one of pseudonym, version, and number of the
    day with whether it is of a bound of a prompt, and `bucket_of` finds an owner's bucket.
    """

    def __init__(
        self,
        environment: str,
        *,
        vouch: Vouch,
        sighting: Callable[[str, str, tuple[int, bool]], Sighting],
        bucket_of: Callable[[str], int],
        remembered: int,
    ) -> None:
        self._environment = environment
        self._vouch = vouch
        self._sighting = sighting
        self._bucket_of = bucket_of
        self._owners = _Owners(self._find_owner, remembered)
        self._effects: dict[tuple[tuple[str, int], ...], WordingEffects] = {}

    def book(self, repeated: Repeated) -> Rebooked:
        """Return what runs add, as their records would one by one."""
        version, ids = repeated.origin.service_version, repeated.origin.assignment_ids
        owners, sighting = self._owners, self._sighting
        prompts: list[tuple[PromptEvents, Sequence[Sighting]]] = []
        left: list[Worded] = []
        minute = of_minute = 0
        for run in repeated.runs:
            prompt_id, its_ids, wordings, times_ns, numbers = run
            owner = owners[its_ids or ids, version]
            if owner is None:
                left += [repeated.spelt_out(run, at) for at in range(len(wordings))]
                continue
            pseudonym, bucket, effects = owner
            likes, halves, own_of, alone = effects.of_run(tuple(wordings))
            if likes:
                suffix, half = prompt_digest(pseudonym, prompt_id)
                own, shown = own_of(times_ns, numbers)
                if times_ns[0] // MINUTE_NS != minute:
                    minute = times_ns[0] // MINUTE_NS
                    of_minute = minute_bits(minute * SEEN_BUCKET_S)
                # as `event_identity` has it
                tokens = halves.tokens(half ^ of_minute)
                # as `PromptEvents(...)` does it, without a call of Python's own
                told = tuple.__new__(PromptEvents, (pseudonym, suffix, bucket, likes, tokens, own))
                prompts.append((told, (sighting(pseudonym, version, shown),)))
            if alone:
                left += [repeated.spelt_out(run, at) for at in alone]
        return Rebooked(prompts, left)

    def _find_owner(self, ids: tuple[str, ...], version: str) -> _Owner | None:
        """Return whose the ids are; None when nothing vouches, or not for all of them."""
        try:
            backings = self._vouch(ids, version, None)
        except Refusal:
            return None
        if not backings:
            return None
        pseudonym = backings[0].assigned.pseudonym
        cells = tuple((each.cell.name, each.assigned.generation) for each in backings)
        effects = self._effects.get(cells)
        if effects is None:
            effects = WordingEffects(self._environment, backings)
            if len(self._effects) >= _MOST_CELLS:
                self._effects.clear()
            self._effects[cells] = effects
        return _Owner(pseudonym, self._bucket_of(pseudonym), effects)
