"""Refresher: the one thread of a web worker that reads the store's changes, every 200 ms."""

import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from guardwave.control_plane.core.clock import NANOSECONDS
from guardwave.control_plane.core.errors import StoreUnavailable
from guardwave.control_plane.data_plane.credential_cache import CredentialCache
from guardwave.control_plane.data_plane.snapshot import (
    EnvironmentSnapshot,
    Snapshot,
    StoreRegressionError,
    load_snapshot,
    update_owners,
)
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.stores.credentials import Token
from guardwave.control_plane.stores.environments import ChangeMark, ChangeMarks
from guardwave.control_plane.stores.jobs import HEARTBEAT_S, IntakeDoor

PERIOD_S = 0.2

_REMEDY = "restore the store, look at the audit log, then restart the web server"

_log = logging.getLogger(__name__)


class Refresher:
    """Keeps this process's snapshot and credentials in step with the store.

    State never goes back. An environment that is gone or has an older revision or generation than
    before is a fault, and so is an empty or a replaced store; a fault means shadow. A store that
    went back stays a fault until a person has looked at it and restarts this process, since nothing
    shows which changes are missing. The refresher also records that intake is up at the door that
    its process opens.
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
        self._regressions: dict[str, str] = {}
        self._last_beat_period: int | None = None
        self._is_away = False
        self._starting = threading.Lock()
        self._stopped = threading.Event()
        self._process: int | None = None
        self._thread: threading.Thread | None = None

    @property
    def snapshot(self) -> Snapshot:
        """The newest snapshot; check its `trouble` before answering more than shadow from it."""
        return self._snapshot

    def now(self) -> float:
        """Return the time on the clock of `Snapshot.read_at`, in seconds."""
        return self._monotonic()

    def ensure_running(self) -> None:
        """Read the store once and start the thread, unless this process has done so.

        Every request calls it: a process that was forked after the start has no thread yet.
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
        """Do one round: read what changed, replace the snapshot, record that intake is up.

        Raises:
            StoreUnavailable: the store is away; the snapshot stays as it was, and grows old.
        """
        read_at = self._monotonic()
        previous = self._snapshot
        marks = self._context.environments.change_marks(tuple(previous.environments))
        fault = _store_fault(previous, marks)
        if fault is not None:
            self._publish(replace(previous, fault=fault))
            return
        have_tokens_changed = self._refresh_tokens(marks)
        environments = dict(previous.environments)
        faults: dict[str, str] = {}
        for name, mark in marks.environments.items():
            before = previous.environments.get(name)
            try:
                environment = self._refresh_environment(
                    name, mark, before, have_tokens_changed=have_tokens_changed
                )
            except StoreRegressionError as error:
                self._regressions[name] = f"environment {name} went back: {error}; {_REMEDY}"
            except (ValueError, TypeError) as error:
                faults[name] = f"environment {name} cannot be read: {error}"
            else:
                if environment is not None:
                    environments[name] = environment
        self._publish(
            Snapshot(
                environments=environments,
                read_at=read_at,
                store_id=marks.store_id,
                tokens_revision=marks.tokens_revision,
                faults={**faults, **self._regressions},
            )
        )
        self._beat(environments)

    def _refresh_tokens(self, marks: ChangeMarks) -> bool:
        previous = self._snapshot
        have_changed = previous.read_at is None or marks.tokens_revision != previous.tokens_revision
        if have_changed:
            self._tokens = self._context.credentials.tokens()
            self._credentials.replace(self._tokens)
        return have_changed

    def _refresh_environment(
        self,
        name: str,
        mark: ChangeMark,
        before: EnvironmentSnapshot | None,
        *,
        have_tokens_changed: bool,
    ) -> EnvironmentSnapshot | None:
        if name in self._regressions:
            return before
        if before is not None:
            _check_not_older(mark, before)
        if before is None or mark.revision != before.revision or have_tokens_changed:
            return load_snapshot(self._context, name, mark=mark, tokens=self._tokens, before=before)
        if mark.owner_changes != before.owners.last_change:
            update_owners(self._context, before)
        return before

    def _publish(self, snapshot: Snapshot) -> None:
        logged = {self._snapshot.fault, *self._snapshot.faults.values()}
        for fault in (snapshot.fault, *snapshot.faults.values()):
            if fault is not None and fault not in logged:
                _log.critical("answering shadow at most: %s", fault)
        self._snapshot = snapshot

    def _beat(self, environments: dict[str, EnvironmentSnapshot]) -> None:
        second = self._context.clock.wall_ns() // NANOSECONDS
        # All workers beat in the first second of each period, so their beats are one member.
        period = second // HEARTBEAT_S
        if period == self._last_beat_period:
            return
        for name in environments:
            self._context.jobs.beat(name, second, door=self._door)
        self._last_beat_period = period

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


def _store_fault(previous: Snapshot, marks: ChangeMarks) -> str | None:
    if marks.store_id is None:
        what = "holds nothing yet" if previous.store_id is None else "was emptied"
        return f"the store {what}; start it with `guardwave serve`, or restore it from a backup"
    if previous.store_id not in (None, marks.store_id):
        return (
            "the store is another one than this worker has read before; restore the old one, or "
            "restart the web server to serve from the new one"
        )
    if marks.tokens_revision < previous.tokens_revision:
        return (
            f"the store went back: its tokens were at revision {previous.tokens_revision} and are "
            f"at {marks.tokens_revision}; {_REMEDY}"
        )
    return None


def _check_not_older(mark: ChangeMark, before: EnvironmentSnapshot) -> None:
    if mark.revision is None or mark.revision < before.revision:
        now = "gone" if mark.revision is None else f"at {mark.revision}"
        raise StoreRegressionError(f"it was seen at revision {before.revision} and is now {now}")
    if mark.owner_changes < before.owners.last_change:
        raise StoreRegressionError(
            f"{before.owners.last_change} changes of owners were seen and it now has "
            f"{mark.owner_changes}"
        )
