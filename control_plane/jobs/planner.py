"""The thread that makes plans: they take minutes, and seals, gates and promotions must not wait."""

import logging
import queue
import threading
import time

from control_plane.context import Context
from control_plane.errors import GuardwaveError, StoreUnavailable
from control_plane.jobs.planning import fail_plan, make_plan
from control_plane.stores.jobs import Job

RETRY_S = 1.0

_log = logging.getLogger("guardwave.planner")


class Planner:
    """One worker's plans, made one after the other.

    A plan that a crash leaves pending is queued again by whoever holds the lease next.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._asked: queue.SimpleQueue[tuple[str, Job]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def put(self, environment: str, job: Job) -> None:
        """Make a plan as soon as those asked for before are made."""
        self._asked.put((environment, job))
        if self._thread is None:
            # A daemon: a process that is told to stop waits for no plan.
            self._thread = threading.Thread(target=self._run, name="planner", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            environment, job = self._asked.get()
            try:
                self._make(environment, job)
            except StoreUnavailable as error:
                _log.warning("the store is unavailable, trying again: %s", error)
                time.sleep(RETRY_S)
                self._asked.put((environment, job))

    def _make(self, environment: str, job: Job) -> None:
        try:
            make_plan(self._context, environment, job.guard, job.number)
        except StoreUnavailable:
            raise
        except GuardwaveError as error:
            self._fail(environment, job, why=str(error))
        except Exception as error:  # noqa: BLE001  # one bad plan must not end the thread
            _log.exception("plan %s of %s failed", job.number, environment)
            self._fail(environment, job, why=f"{type(error).__name__}; see the log")

    def _fail(self, environment: str, job: Job, *, why: str) -> None:
        fail_plan(self._context, environment, job.guard, job.number, why=why)
