"""Runs of records that say what earlier ones said, booked a prompt at a time."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from control_plane.clock import NANOSECONDS
from control_plane.ingest.booked import Backing
from control_plane.ingest.event_time import DAY_NS, HOUR_NS, iso_day
from control_plane.ingest.identity import identity_of, prompt_digest
from control_plane.ingest.prompt_news import ended_numbers
from control_plane.ingest.rejections import Refusal
from control_plane.ingest.tellings import AT_START, Tellings
from control_plane.ingest.wordings import NO_NUMBERS, Repeated, Worded
from control_plane.stores.evidence_events import PromptKey, Sighting
from control_plane.stores.prompt_events import Like, Numbers, PromptEvents

Vouch = Callable[[tuple[str, ...], str, str | None], Sequence[Backing]]
Told = tuple[Like, int, int, str, Numbers | None]


_HOURS: Sequence[Numbers] = [(hour,) for hour in range(24)]


class Rebooked(NamedTuple):
    """What a run adds, all of one prompt, by how many of its records.

    `left` are those that have to be booked alone.
    """

    events: tuple[PromptEvents, ...]
    sightings: tuple[Sighting, ...]
    accepted: int
    left: Sequence[Worded]


class _Owner(NamedTuple):
    pseudonym: str
    bucket: int
    tellings: Tellings


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
        self._owner = lru_cache(remembered)(self._find_owner)
        self._tellings: dict[tuple[tuple[str, int], ...], Tellings] = {}
        self._remembered = remembered

    def book(self, run: Repeated) -> Rebooked:
        """Return what a run adds, as its records would one by one."""
        version = run.origin.service_version
        owner = self._owner(run.assignment_ids, version)
        if owner is None:
            return Rebooked((), (), 0, [run.spelt_out(said) for said in run.said])
        pseudonym, bucket, tellings = owner
        suffix, prompt = prompt_digest(pseudonym, run.prompt_id)
        events: list[Told] = []
        left: list[Worded] = []
        days: set[tuple[int, bool]] = set()
        for said in run.said:
            wording, time_ns, numbers, _ = said
            place, guards = tellings[wording]
            if not guards:
                left.append(run.spelt_out(said))
                continue
            began, own = time_ns, None
            if place:
                began, own = ended_numbers(place, time_ns, numbers or NO_NUMBERS)
            elif place == AT_START:
                own = _HOURS[time_ns % DAY_NS // HOUR_NS]
            days.add((time_ns // DAY_NS, place is not None))
            second, day = time_ns // NANOSECONDS, iso_day(began)
            for like, addend in guards:
                events.append((like, identity_of(prompt, addend), second, day, own))
        key = PromptKey(pseudonym, suffix, bucket)
        sightings = [
            self._sighting(pseudonym, version, day, is_of_prompt=is_bound)
            for day, is_bound in days
            # a start or an end tells of the day all that another record would
            if is_bound or (day, True) not in days
        ]
        told = (PromptEvents(key, events),) if events else ()
        return Rebooked(told, tuple(sightings), len(run.said) - len(left), left)

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
        tellings = self._tellings.get(cells)
        if tellings is None:
            tellings = Tellings(self._environment, backings)
            if len(self._tellings) >= self._remembered:
                self._tellings.clear()
            self._tellings[cells] = tellings
        return _Owner(pseudonym, self._bucket_of(pseudonym), tellings)
