"""What was done for this person before, in any conversation: the store behind XID questions."""

import threading

from reducer.guards.side_effect import FirstUse, FirstUseToKeep


class FirstUses:
    """First uses by XID, shared by all sessions of the host; a real host keeps them on disk."""

    def __init__(self) -> None:
        self._held: dict[str, FirstUse] = {}
        self._lock = threading.Lock()

    def read(self, key: str) -> FirstUse | None:
        """Return the first use under a key."""
        return self._held.get(key)

    def keep(self, found: FirstUseToKeep) -> None:
        """Keep a use, unless one is there."""
        with self._lock:
            self._held.setdefault(found.xid, found.use)
