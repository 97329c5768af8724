"""Demo mark: the clock of a demo's store, which alone accepts imported history."""

from dataclasses import dataclass

from redis import Redis

from guardwave.control_plane.stores.codec import decode, encode
from guardwave.control_plane.stores.keys import DEMO
from guardwave.control_plane.stores.server import translate_store_errors


@dataclass(frozen=True, slots=True)
class DemoMark:
    """The parameters of the demo's clock (`core.clock.Clock`)."""

    wall_origin_ns: int
    moment_origin_ns: int
    speed: float


class DemoStore:
    """Reads and sets the mark."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    @translate_store_errors()
    def mark(self) -> DemoMark | None:
        """Return the store's mark; None when the store is not a demo's."""
        stored = self._redis.get(DEMO)
        return None if stored is None else decode(DemoMark, stored)

    @translate_store_errors()
    def set_mark(self, mark: DemoMark) -> None:
        """Mark the store as a demo's."""
        self._redis.set(DEMO, encode(mark))

    @translate_store_errors()
    def is_empty(self) -> bool:
        """Whether the store holds nothing at all."""
        return int(self._redis.dbsize()) == 0

    @translate_store_errors()
    def wipe(self) -> None:
        """Remove everything from a demo's store.

        Raises:
            ValueError: the store has no demo mark; nothing is removed.
        """
        if self.mark() is None:
            raise ValueError("only a demo's store is wiped; this one bears no demo mark")
        self._redis.flushdb()
