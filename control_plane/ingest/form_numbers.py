"""The numbers of prompts' ends, as they are cut out of records."""

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from control_plane.ingest.proto_holes import Role
from control_plane.ingest.wordings import EndNumbers
from reducer.contract import DURATION_LIMIT_SECONDS

# What a layout cuts out of a record, in its order.
Cut: TypeAlias = tuple[object, ...]

# In the order in which an end has them, behind its duration.
_COUNTS = (
    Role.TURNS,
    Role.TOOL_CALLS,
    Role.TRANSITIONS,
    Role.INPUT_TOKENS,
    Role.OUTPUT_TOKENS,
    Role.CALLS_AFTER_WOULD_STOP,
)
_MOST_VARINTS = 16_384


class Varints(dict[bytes, int]):
    """Numbers by how they are written, in up to four bytes; ValueError for what is no one."""

    def __missing__(self, written: bytes) -> int:
        *more, last = written
        if last >= 0x80 or any(byte < 0x80 for byte in more):
            raise ValueError("not one number")
        number = sum((byte & 0x7F) << 7 * at for at, byte in enumerate(written))
        if len(self) >= _MOST_VARINTS:
            self.clear()
        self[written] = number
        return number


_read_varint = Varints().__getitem__


class Ending(NamedTuple):
    """Where the numbers of an end are among what its layout cuts out.

    `arranged` puts into order first a None, then the duration, then the counts.
    """

    duration_at: int | None
    counts_of: Callable[[Cut], tuple[bytes, ...]]
    arranged: Callable[[tuple[float | None, ...]], EndNumbers]

    def read(self, cut: Cut) -> EndNumbers:
        """Return the numbers, in order; raises ValueError when one of them is odd."""
        duration_at, counts_of, arranged = self
        duration: float | None = None
        if duration_at is not None:
            duration = cut[duration_at]  # type: ignore[assignment]  # as the layout says
        # not a number is in no range
        if duration is not None and not 0 <= duration <= DURATION_LIMIT_SECONDS:
            raise ValueError("the duration is odd")
        return arranged((None, duration, *map(_read_varint, counts_of(cut))))


def ending_of(at: Mapping[Role, int]) -> Ending | None:
    """Return what reads the numbers of an end by where each is cut out; None without any."""
    counts = [role for role in _COUNTS if role in at]
    if not counts and Role.DURATION not in at:
        return None
    places = [2 + counts.index(role) if role in at else 0 for role in _COUNTS]
    arranged: Callable[..., EndNumbers] = itemgetter(1, *places)
    return Ending(at.get(Role.DURATION), _getter([at[role] for role in counts]), arranged)


def _getter(places: Sequence[int]) -> Callable[[Cut], tuple[bytes, ...]]:
    """Return what gives the items at these places as a tuple, even of one or none."""
    if len(places) > 1:
        return itemgetter(*places)
    first = places[0] if places else 0
    return itemgetter(slice(first, first + len(places)))
