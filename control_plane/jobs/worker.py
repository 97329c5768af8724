"""Worker: for each environment whose lease it holds, does the jobs that are due.

It keeps the lease while a job runs, and queues pending jobs again that a dead holder left behind.
"""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import date

from guardwave.control_plane.commands.promotions import refuse_promotion
from guardwave.control_plane.core.errors import GuardwaveError, StoreUnavailable
from guardwave.control_plane.core.state import EvaluationStatus, PlanStatus, PromotionStatus
from guardwave.control_plane.jobs.decide import decide_overdue
from guardwave.control_plane.jobs.evaluate import (
    evaluate_gate,
    fail_evaluation,
    request_due_evaluations,
)
from guardwave.control_plane.jobs.interim import look_for_harm, request_due_looks
from guardwave.control_plane.jobs.plan import Planner, fail_plan
from guardwave.control_plane.jobs.promote import promote
from guardwave.control_plane.jobs.retain import Retention
from guardwave.control_plane.jobs.seal import latest_due_day, seal_due_days
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.stores.jobs import LEASE_MS, Job, JobKind, JobStore

RENEW_S = LEASE_MS / 3000
TICK_S = 0.2
RECENT = 10

_log = logging.getLogger("guardwave.worker")


@contextmanager
def keep_lease(jobs: JobStore, environment: str, holder: str) -> Iterator[None]:
    """Renew the lease that `holder` has on an environment for as long as the block runs."""
    ended = threading.Event()

    def renew() -> None:
        while not ended.wait(RENEW_S):
            with suppress(StoreUnavailable):
                jobs.lease(environment, holder)

    thread = threading.Thread(target=renew, name="lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def requeue_pending(context: Context, environment: str) -> int:
    """Queue the newest evaluations, promotions and plans that are pending; return how many.

    For a new holder of the lease that finds nothing queued. A job that is queued twice meanwhile is
    harmless: the second one finds its request decided.
    """
    stored = context.environments.load(environment)
    if stored is None:
        return 0
    jobs = [job for guard in stored.guards for job in _pending_jobs(context, environment, guard)]
    for job in jobs:
        context.jobs.put(environment, job)
    return len(jobs)


def _pending_jobs(context: Context, environment: str, guard: str) -> list[Job]:
    evaluations = context.gates.evaluations(environment, guard, at_most=RECENT)
    promotions = context.gates.promotions(environment, guard, at_most=RECENT)
    plans = context.plans.newest(environment, guard, at_most=RECENT)
    # Oldest first, in the order of the requests.
    return [
        *(
            Job(JobKind.EVALUATE, guard, evaluation.id)
            for evaluation in reversed(evaluations)
            if evaluation.status is EvaluationStatus.PENDING
        ),
        *(
            Job(JobKind.PROMOTE, guard, promotion.id)
            for promotion in reversed(promotions)
            if promotion.status is PromotionStatus.PENDING
        ),
        *(
            Job(JobKind.PLAN, guard, plan.id)
            for plan in reversed(plans)
            if plan.status is PlanStatus.PENDING
        ),
    ]


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
        """Work until `stop` is set; wait for a store that is away."""
        while not stop.is_set():
            try:
                is_busy = self.run_once()
            except StoreUnavailable as error:
                _log.warning("the store is unavailable, trying again: %s", error)
                is_busy = False
            if not is_busy:
                stop.wait(TICK_S)

    def run_once(self) -> bool:
        """Do what is due now in every environment; return whether a job was done."""
        results = [self._try(name) for name in self._context.environments.names()]
        return any(results)

    def _try(self, environment: str) -> bool:
        """Work on one environment; a fault in it is logged once and stops no other."""
        try:
            is_done = self._work_on(environment)
        except StoreUnavailable:
            raise
        except Exception as error:  # noqa: BLE001  # the loop must outlive what it meets
            if self._faults.get(environment) != repr(error):
                self._faults[environment] = repr(error)
                _log.exception("%s: what was due could not be done", environment)
            return False
        self._faults.pop(environment, None)
        return is_done

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
            # First, whatever happens to the rest: a violation must latch.
            decide_overdue(context, environment)
        finally:
            sealed = self._keep_days(environment)
        self._retention.forget_next(environment)
        if sealed or is_new:
            request_due_evaluations(context, environment)
            request_due_looks(context, environment)
        job = context.jobs.take(environment) or self._take_requeued(environment)
        if job is None:
            return False
        with keep_lease(context.jobs, environment, self._holder):
            self._do(environment, job, fence)
        if context.jobs.lease(environment, self._holder) == fence:
            # Otherwise the next holder takes the job over.
            context.jobs.complete(environment, job)
        return True

    def _keep_days(self, environment: str) -> tuple[date, ...]:
        sealed = self._seal(environment)
        self._context.evidence.close_lost_prompts(environment, self._context.clock.now())
        return sealed

    def _seal(self, environment: str) -> tuple[date, ...]:
        """Seal once for each day that became due, not five times a second with the loop."""
        latest = latest_due_day(self._context)
        if self._sealed_upto.get(environment) == latest:
            return ()
        sealed = seal_due_days(self._context, environment)
        self._sealed_upto[environment] = latest
        return sealed

    def _take_requeued(self, environment: str) -> Job | None:
        """Take a job that was pending and not queued; tried once after each new lease."""
        if environment not in self._unchecked:
            return None
        self._unchecked.remove(environment)
        requeue_pending(self._context, environment)
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
        """End the request with a reason, so that nobody waits for it."""
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
                # Nobody waits for a look: the next one uses all days of this one.
                _log.error("%s: no look for harm at %s: %s", environment, job.guard, why)
