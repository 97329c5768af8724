"""The one thread of a web worker that follows the store, every 200 ms."""

import logging
import os
import threading
import time
from collections.abc import Callable

from control_plane.clock import NANOSECONDS
from control_plane.context import Context
from control_plane.data_plane.credential_cache import CredentialCache
from control_plane.data_plane.snapshot import (
    EnvironmentSnapshot,
    Snapshot,
    WentBackError,
    follow_owners,
    load,
)
from control_plane.errors import StoreUnavailable
from control_plane.stores.credentials import Token
from control_plane.stores.environments import Mark, Pulse
from control_plane.stores.jobs import HEARTBEAT_S, IntakeDoor

PERIOD_S = 0.2

_REMEDY = "restore the store, look at the audit log, then restart the web server"

_log = logging.getLogger(__name__)


class Refresher:
    """Keeps this process's snapshot and credentials in step with the store.

    It never goes back: an environment that is gone or has an older revision or generation than was
    seen, or a store that is empty or another one, is a fault, and a fault means shadow. A store
    that went back stays a fault until this process is restarted by a person who looked at it, since
    nothing shows which of the changes that were seen is missing. It shows that intake is up at the
    door that its process opens.
    """

    def __init__(
        self,
        context: Context,
        credentials: CredentialCache,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        period_s: float = PERIOD_S,
        door: IntakeDoor = IntakeDoor.HTTP,
    ) -> None:
        self._context = context
        self._credentials = credentials
        self._monotonic = monotonic
        self._period_s = period_s
        self._door = door
        self._snapshot = Snapshot()
        self._tokens: tuple[Token, ...] = ()
        self._gone_back: dict[str, str] = {}
        self._beaten: int | None = None
        self._is_away = False
        self._starting = threading.Lock()
        self._stopped = threading.Event()
        self._process: int | None = None
        self._thread: threading.Thread | None = None

    @property
    def snapshot(self) -> Snapshot:
        """The newest snapshot; ask its `trouble` before answering more than shadow from it."""
        return self._snapshot

    def now(self) -> float:
        """Return the seconds that snapshots are dated in."""
        return self._monotonic()

    def ensure_running(self) -> None:
        """Read the store once and start the thread, unless this process has done so.

        Called on every request: a process that was forked after the start has no thread yet.
        """
        if self._process == os.getpid():
            return
        with self._starting:
            if self._process == os.getpid():
                return
            self._attempt()
            self._thread = threading.Thread(target=self._follow, name="refresher", daemon=True)
            self._thread.start()
            self._process = os.getpid()

    def stop(self) -> None:
        """End the thread and wait for it."""
        self._stopped.set()
        if self._thread is not None and self._process == os.getpid():
            self._thread.join()

    def refresh(self) -> None:
        """Do one round: ask what moved, read that, replace the snapshot, show that intake is up.

        Raises:
            StoreUnavailable: the store is away; the snapshot stays as it was, and grows old.
        """
        asked_at = self._monotonic()
        held = self._snapshot
        pulse = self._context.environments.pulse(tuple(held.environments))
        fault = _fault_of_store(held, pulse)
        if fault is not None:
            self._publish(_with_fault(held, fault))
            return
        self._follow_tokens(pulse)
        tokens_moved = pulse.tokens_revision != held.tokens_revision or held.heard_at is None
        environments = dict(held.environments)
        faults: dict[str, str] = {}
        for name, mark in pulse.marks.items():
            before = held.environments.get(name)
            try:
                found = self._followed(name, mark, before, tokens_moved=tokens_moved)
            except WentBackError as error:
                self._gone_back[name] = f"environment {name} went back: {error}; {_REMEDY}"
            except (ValueError, TypeError) as error:
                faults[name] = f"environment {name} cannot be read: {error}"
            else:
                if found is not None:
                    environments[name] = found
        self._publish(
            Snapshot(
                environments=environments,
                heard_at=asked_at,
                store_id=pulse.store_id,
                tokens_revision=pulse.tokens_revision,
                faults={**faults, **self._gone_back},
            )
        )
        self._beat(environments)

    def _follow_tokens(self, pulse: Pulse) -> None:
        held = self._snapshot
        if held.heard_at is None or pulse.tokens_revision != held.tokens_revision:
            self._tokens = self._context.credentials.tokens()
            self._credentials.replace(self._tokens)

    def _followed(
        self, name: str, mark: Mark, before: EnvironmentSnapshot | None, *, tokens_moved: bool
    ) -> EnvironmentSnapshot | None:
        if name in self._gone_back:
            return before
        if before is not None:
            _refuse_older(mark, before)
        if before is None or mark.revision != before.revision or tokens_moved:
            return load(self._context, name, mark=mark, tokens=self._tokens, before=before)
        if mark.owner_changes != before.owners.upto:
            follow_owners(self._context, before)
        return before

    def _publish(self, snapshot: Snapshot) -> None:
        told = {self._snapshot.fault, *self._snapshot.faults.values()}
        for fault in (snapshot.fault, *snapshot.faults.values()):
            if fault is not None and fault not in told:
                _log.critical("answering shadow at most: %s", fault)
        self._snapshot = snapshot

    def _beat(self, environments: dict[str, EnvironmentSnapshot]) -> None:
        second = self._context.clock.wall_ns() // NANOSECONDS
        # Workers beat together, in the first second of each period: their beats are one.
        period = second // HEARTBEAT_S
        if period == self._beaten:
            return
        for name in environments:
            self._context.jobs.beat(name, second, door=self._door)
        self._beaten = period

    def _follow(self) -> None:
        while not self._stopped.wait(self._period_s):
            self._attempt()

    def _attempt(self) -> None:
        try:
            self.refresh()
        except StoreUnavailable as away:
            if not self._is_away:
                _log.warning("the store was not read: %s", away)
            self._is_away = True
        except Exception:  # noqa: BLE001  # if the thread ended, its last answers would stand
            _log.exception("the store was not read; the snapshot grows old")
        else:
            self._is_away = False


def _with_fault(held: Snapshot, fault: str) -> Snapshot:
    return Snapshot(
        environments=held.environments,
        heard_at=held.heard_at,
        store_id=held.store_id,
        tokens_revision=held.tokens_revision,
        fault=fault,
        faults=held.faults,
    )


def _fault_of_store(held: Snapshot, pulse: Pulse) -> str | None:
    if pulse.store_id is None:
        what = "holds nothing yet" if held.store_id is None else "was emptied"
        return f"the store {what}; start it with `guardwave serve`, or restore it from a backup"
    if held.store_id not in (None, pulse.store_id):
        return (
            "the store is another one than this worker has read before; restore the old one, or "
            "restart the web server to serve from the new one"
        )
    if pulse.tokens_revision < held.tokens_revision:
        return (
            f"the store went back: its tokens were at revision {held.tokens_revision} and are at "
            f"{pulse.tokens_revision}; {_REMEDY}"
        )
    return None


def _refuse_older(mark: Mark, before: EnvironmentSnapshot) -> None:
    if mark.revision is None or mark.revision < before.revision:
        now = "gone" if mark.revision is None else f"at {mark.revision}"
        raise WentBackError(f"it was seen at revision {before.revision} and is now {now}")
    if mark.owner_changes < before.owners.upto:
        raise WentBackError(
            f"{before.owners.upto} changes of owners were seen and it now has {mark.owner_changes}"
        )
