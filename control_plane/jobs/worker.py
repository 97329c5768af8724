"""The worker's loop: for each environment whose lease it holds, do what is due."""

import logging
import threading

from control_plane.commands.promotions import carry_out
from control_plane.context import Context
from control_plane.errors import GuardwaveError, StoreUnavailable
from control_plane.jobs.evaluating import evaluate_gate, request_due_evaluations
from control_plane.jobs.sealing import seal_due_days
from control_plane.stores.jobs import Job, JobKind

TICK_S = 0.2

_log = logging.getLogger("guardwave.worker")


class Worker:
    """One worker process. `holder` names it in the leases."""

    def __init__(self, context: Context, *, holder: str) -> None:
        self._context = context
        self._holder = holder
        self._fences: dict[str, int] = {}

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
        did = [self._work_on(name) for name in self._context.environments.names()]
        return any(did)

    def _work_on(self, environment: str) -> bool:
        context = self._context
        fence = context.jobs.lease(environment, self._holder)
        if fence == 0:
            self._fences.pop(environment, None)
            return False
        is_new = self._fences.get(environment) != fence
        if is_new:
            self._fences[environment] = fence
            context.jobs.take_over(environment)
        sealed = seal_due_days(context, environment)
        context.evidence.lose_overdue(environment, context.clock.now())
        if sealed or is_new:
            request_due_evaluations(context, environment)
        job = context.jobs.take(environment)
        if job is None:
            return False
        self._do(environment, job, fence)
        context.jobs.done(environment, job)
        return True

    def _do(self, environment: str, job: Job, fence: int) -> None:
        try:
            match job.kind:
                case JobKind.EVALUATE:
                    evaluate_gate(self._context, environment, job.guard, job.number, fence=fence)
                case JobKind.PROMOTE:
                    carry_out(self._context, environment, job.guard, job.number)
        except StoreUnavailable:
            raise
        except GuardwaveError as error:
            _log.error("job %s %s of %s failed: %s", job.kind, job.number, environment, error)
