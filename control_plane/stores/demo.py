"""The mark of a demo's store: its clock. Only a store that bears it takes imported history."""

from dataclasses import dataclass

from redis import Redis

from control_plane.stores.codec import decode, encode
from control_plane.stores.connection import unavailable
from control_plane.stores.keys import DEMO


@dataclass(frozen=True, slots=True)
class DemoMark:
    """The demo's affine clock; see `control_plane.clock.Clock`."""

    wall_origin_ns: int
    moment_origin_ns: int
    speed: float


class DemoStore:
    """Reads and sets the mark."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    @unavailable()
    def mark(self) -> DemoMark | None:
        """Return the store's mark, None when it is no demo's."""
        stored = self._redis.get(DEMO)
        return None if stored is None else decode(DemoMark, stored)

    @unavailable()
    def set_mark(self, mark: DemoMark) -> None:
        """Mark the store as a demo's."""
        self._redis.set(DEMO, encode(mark))

    @unavailable()
    def is_empty(self) -> bool:
        """Whether the store holds nothing at all."""
        return int(self._redis.dbsize()) == 0

    @unavailable()
    def wipe(self) -> None:
        """Remove everything, if the store is a demo's.

        Raises:
            ValueError: it is not, and is left as it is.
        """
        if self.mark() is None:
            raise ValueError("only a demo's store is wiped; this one bears no demo mark")
        self._redis.flushdb()
