"""The worker's loop: for each environment whose lease it holds, do what is due."""

import logging
import threading
from datetime import date

from control_plane.commands.promotions import refuse_promotion
from control_plane.context import Context
from control_plane.errors import GuardwaveError, StoreUnavailable
from control_plane.jobs.deciding import decide_overdue
from control_plane.jobs.evaluating import (
    evaluate_gate,
    fail_evaluation,
    request_due_evaluations,
)
from control_plane.jobs.leases import lease_kept
from control_plane.jobs.looking import look_for_harm, request_due_looks
from control_plane.jobs.pending import queue_pending
from control_plane.jobs.planner import Planner
from control_plane.jobs.planning import fail_plan
from control_plane.jobs.promoting import promote
from control_plane.jobs.retention import Retention
from control_plane.jobs.sealing import latest_due_day, seal_due_days
from control_plane.stores.jobs import Job, JobKind

TICK_S = 0.2

_log = logging.getLogger("guardwave.worker")


class Worker:
    """One worker process. `holder` names it in the leases."""

    def __init__(self, context: Context, *, holder: str) -> None:
        self._context = context
        self._retention = Retention(context)
        self._holder = holder
        self._fences: dict[str, int] = {}
        self._faults: dict[str, str] = {}
        self._unchecked: set[str] = set()
        self._sealed_upto: dict[str, date] = {}
        self._planner = Planner(context)

    def run(self, stop: threading.Event) -> None:
        """Work until `stop` is set. A store that is away is waited for."""
        while not stop.is_set():
            try:
                is_busy = self.run_once()
            except StoreUnavailable as error:
                _log.warning("the store is unavailable, trying again: %s", error)
                is_busy = False
            if not is_busy:
                stop.wait(TICK_S)

    def run_once(self) -> bool:
        """Do what is due now in every environment; answer whether a job was done."""
        did = [self._tried(name) for name in self._context.environments.names()]
        return any(did)

    def _tried(self, environment: str) -> bool:
        """Work on one environment; a fault in it is told once and keeps no other waiting."""
        try:
            did = self._work_on(environment)
        except StoreUnavailable:
            raise
        except Exception as error:  # noqa: BLE001  # the loop must outlive what it meets
            if self._faults.get(environment) != repr(error):
                self._faults[environment] = repr(error)
                _log.exception("%s: what was due could not be done", environment)
            return False
        self._faults.pop(environment, None)
        return did

    def _work_on(self, environment: str) -> bool:
        context = self._context
        fence = context.jobs.lease(environment, self._holder)
        if fence == 0:
            self._fences.pop(environment, None)
            return False
        is_new = self._fences.get(environment) != fence
        if is_new:
            self._fences[environment] = fence
            self._unchecked.add(environment)
            self._sealed_upto.pop(environment, None)
        try:
            # First, and whatever becomes of the rest: a violation must latch.
            decide_overdue(context, environment)
        finally:
            sealed = self._keep_days(environment)
        self._retention.go_on(environment)
        if sealed or is_new:
            request_due_evaluations(context, environment)
            request_due_looks(context, environment)
        job = context.jobs.take(environment) or self._forgotten(environment)
        if job is None:
            return False
        with lease_kept(context.jobs, environment, self._holder):
            self._do(environment, job, fence)
        if context.jobs.lease(environment, self._holder) == fence:
            # Otherwise the job is the next holder's, who takes it over.
            context.jobs.done(environment, job)
        return True

    def _keep_days(self, environment: str) -> tuple[date, ...]:
        sealed = self._seal(environment)
        self._context.evidence.lose_overdue(environment, self._context.clock.now())
        return sealed

    def _seal(self, environment: str) -> tuple[date, ...]:
        """Seal once for each day that became due: the loop looks five times a second."""
        latest = latest_due_day(self._context)
        if self._sealed_upto.get(environment) == latest:
            return ()
        sealed = seal_due_days(self._context, environment)
        self._sealed_upto[environment] = latest
        return sealed

    def _forgotten(self, environment: str) -> Job | None:
        """Look once after each new lease, when nothing is queued, for what should be."""
        if environment not in self._unchecked:
            return None
        self._unchecked.remove(environment)
        queue_pending(self._context, environment)
        return self._context.jobs.take(environment)

    def _do(self, environment: str, job: Job, fence: int) -> None:
        try:
            match job.kind:
                case JobKind.EVALUATE:
                    evaluate_gate(self._context, environment, job.guard, job.number, fence=fence)
                case JobKind.PROMOTE:
                    promote(self._context, environment, job.guard, job.number)
                case JobKind.PLAN:
                    self._planner.put(environment, job)
                case JobKind.LOOK:
                    look_for_harm(self._context, environment, job.guard, job.number)
        except StoreUnavailable:
            raise
        except GuardwaveError as error:
            _log.error("job %s %s of %s failed: %s", job.kind, job.number, environment, error)
            self._give_up(environment, job, fence, why=str(error))
        except Exception as error:  # noqa: BLE001  # one bad job must not keep all others waiting
            _log.exception("job %s %s of %s failed", job.kind, job.number, environment)
            self._give_up(environment, job, fence, why=f"{type(error).__name__}; see the log")

    def _give_up(self, environment: str, job: Job, fence: int, *, why: str) -> None:
        """End what was asked for with words, so that nobody waits for it."""
        match job.kind:
            case JobKind.EVALUATE:
                fail_evaluation(
                    self._context, environment, job.guard, job.number, fence=fence, why=why
                )
            case JobKind.PROMOTE:
                refuse_promotion(self._context, environment, job.guard, job.number, why=why)
            case JobKind.PLAN:
                fail_plan(self._context, environment, job.guard, job.number, why=why)
            case JobKind.LOOK:
                # Nobody waits for a look: the next one has all days of this one.
                _log.error("%s: no look for harm at %s: %s", environment, job.guard, why)
