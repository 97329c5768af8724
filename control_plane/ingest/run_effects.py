"""What a wording, and a run of them, decide of the evidence: worked out once."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from control_plane.clock import NANOSECONDS
from control_plane.ingest.news_of_records import ended_numbers
from control_plane.ingest.wordings import NO_NUMBERS, EndNumbers
from control_plane.stores.prompt_events import OWN_FIELDS, Halves, Like, Numbers, Own

AT_START = 0
DAY_SECONDS = 86_400
_HOURS: Sequence[Numbers] = [(hour,) for hour in range(24)]

# From the nanoseconds of a run's records, and the numbers of its ends by their place: what each of
# its events has of its own; and its day, with whether it is of a bound of the prompt.
OwnOfRun: TypeAlias = Callable[
    [Sequence[int], Mapping[int, EndNumbers]], tuple[list[Own], tuple[int, bool]]
]


class WordingEffect(NamedTuple):
    """What one wording decides under the guards of one owner.

    `place` is that of the outcome of an end in an owner-day, AT_START for a start, and None for all
    others. `events` has, for each guard that the record is about, what its event is like and its
    half of the identity; none where each record has to be looked at by itself.
    """

    place: int | None
    events: tuple[tuple[Like, int], ...]


class RunEffect(NamedTuple):
    """What the wordings of a run decide in their order, under the guards of one owner.

    `own_of` gives what each of its events has of its own. `alone` are the places of records that
    have to be looked at by themselves.
    """

    likes: tuple[Like, ...]
    halves: Halves
    own_of: OwnOfRun
    alone: Sequence[int]


def run_effect(effects: Sequence[WordingEffect]) -> RunEffect:
    """Return what wordings decide together, in their order."""
    events: list[tuple[Like, int]] = []
    told_by: list[int] = []
    starts: list[int] = []
    ends: list[tuple[int, int, list[int]]] = []
    alone: list[int] = []
    for at, (place, told) in enumerate(effects):
        spots = [OWN_FIELDS * each for each in range(len(events), len(events) + len(told))]
        if not told:
            alone.append(at)
        elif place == AT_START:
            starts += spots
        elif place is not None:
            ends.append((at, place, spots))
        events += told
        told_by += [at] * len(told)
    is_one_each = told_by == list(range(len(effects)))
    return RunEffect(
        tuple([like for like, _ in events]),
        Halves([half for _, half in events]),
        _own_of(len(events), None if is_one_each else told_by, starts, ends),
        alone,
    )


def _own_of(
    count: int,
    told_by: Sequence[int] | None,
    starts: Sequence[int],
    ends: Sequence[tuple[int, int, Sequence[int]]],
) -> OwnOfRun:
    """Return what gives the events of a run of one minute what they have of their own.

    `told_by` has for each event which record tells it, None where each tells one. `starts` are
    where the own of a start begin, `ends` which record an end is, its place as in `WordingEffect`,
    and where the own of its events begin.
    """
    is_of_prompt = bool(starts or ends)
    hours_at = [spot + 2 for spot in starts]
    ends_at = [(at, place, [slice(each + 1, each + 3) for each in own]) for at, place, own in ends]

    def own_of(
        times_ns: Sequence[int], numbers: Mapping[int, EndNumbers]
    ) -> tuple[list[Own], tuple[int, bool]]:
        seconds = [time_ns // NANOSECONDS for time_ns in times_ns]
        day, of_day = divmod(seconds[0], DAY_SECONDS)
        own: list[Own] = [0, day, False] * count
        own[::OWN_FIELDS] = seconds if told_by is None else [seconds[at] for at in told_by]
        for hour_at in hours_at:
            own[hour_at] = _HOURS[of_day // 3600]
        for at, place, days_at in ends_at:
            told = ended_numbers(place, times_ns[at], numbers.get(at, NO_NUMBERS))
            for day_at in days_at:
                own[day_at] = told
        return own, (day, is_of_prompt)

    return own_of
