"""First uses: the store of effects already made for a person, in any conversation."""

import threading

from guardwave.guards import side_effect


class FirstUses:
    """First uses by XID, shared by all sessions of the host; a real host keeps them on disk."""

    def __init__(self) -> None:
        self._held: dict[str, side_effect.FirstUse] = {}
        self._lock = threading.Lock()

    def read(self, key: str) -> side_effect.FirstUse | None:
        """Return the first use under a key."""
        return self._held.get(key)

    def keep(self, kept: side_effect.FirstUseToKeep) -> None:
        """Keep a use, unless its key already has one."""
        with self._lock:
            self._held.setdefault(kept.xid, kept.use)
