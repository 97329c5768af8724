"""Runs of records that say what earlier ones said, booked a prompt at a time."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from control_plane.clock import NANOSECONDS
from control_plane.ingest.booked import Backing
from control_plane.ingest.event_time import DAY_NS, iso_day
from control_plane.ingest.fields import LONGEST_KEPT
from control_plane.ingest.identity import prompt_digest
from control_plane.ingest.news_of_records import ended_numbers
from control_plane.ingest.rejections import Refusal
from control_plane.ingest.wording_effects import AT_START, WordingEffects
from control_plane.ingest.wordings import NO_NUMBERS, Repeated, Said, Worded
from control_plane.stores.evidence_events import Sighting
from control_plane.stores.prompt_events import BookedTuple, Numbers, PromptEvents, PromptKey

Vouch = Callable[[tuple[str, ...], str, str | None], Sequence[Backing]]


class _Days(dict[int, str]):
    """Days in ISO 8601 by their number from 1970."""

    def __missing__(self, number: int) -> str:
        if len(self) >= _MOST_DAYS:
            self.clear()
        self[number] = iso_day(number * DAY_NS)
        return self[number]


# A prompt's end may tell of a day before those that are accepted, and no more.
_MOST_DAYS = 16
_DAYS = _Days()
DAY_SECONDS = 86_400
# So many sets of cells, with a table of effects each; a sender's versions make as many as it likes.
_MOST_CELLS = 1024
_HOURS: Sequence[Numbers] = [(hour,) for hour in range(24)]


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

    `vouch` verifies assignment ids, `sighting` makes one of pseudonym, version, number of the day
    and whether it is of a bound of a prompt, and `bucket_of` finds an owner's bucket.
    """

    def __init__(
        self,
        environment: str,
        *,
        vouch: Vouch,
        sighting: Callable[..., Sighting],
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
        booked = Rebooked([], [])
        for run in repeated.runs:
            owner = self._owners[run.assignment_ids or ids, version]
            alone = run.said
            if owner is not None:
                events, sightings, alone = self._book(run.prompt_id, run.said, owner, version)
                if events.events:
                    booked.prompts.append((events, sightings))
            if alone:
                booked.left.extend(repeated.spelt_out(run, said) for said in alone)
        return booked

    def _book(
        self, prompt_id: str, said: Sequence[Said], owner: _Owner, version: str
    ) -> tuple[PromptEvents, Sequence[Sighting], list[Said]]:
        """Return what records of a prompt add, and those that have to be booked alone."""
        pseudonym, bucket, effects = owner
        suffix, half = prompt_digest(pseudonym, prompt_id)
        events: list[BookedTuple] = []
        alone: list[Said] = []
        days: dict[int, bool] = {}
        last, its_day = -1, ""
        for each in said:
            wording, time_ns, numbers, _ = each
            place, guards = effects[wording]
            if not guards:
                alone.append(each)
                continue
            second = time_ns // NANOSECONDS
            number, own = second // DAY_SECONDS, None
            if number != last:
                last, its_day = number, _DAYS[number]
                days.setdefault(number, False)
            day = its_day
            if place is not None:
                days[number] = True
                if place == AT_START:
                    own = _HOURS[second % DAY_SECONDS // 3600]
                else:
                    began, own = ended_numbers(place, time_ns, numbers or NO_NUMBERS)
                    day = _DAYS[began // DAY_NS]
            for like, other_half in guards:
                # as `event_identity` has it
                events.append((like, half ^ other_half, second, day, own))
        sightings = [
            # a start or an end tells of its day all that another record would
            self._sighting(pseudonym, version, number, is_of_prompt=is_of_prompt)
            for number, is_of_prompt in days.items()
        ]
        return PromptEvents(PromptKey(pseudonym, suffix, bucket), events), sightings, alone

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
