"""Queues what was asked for and has no job: a crash may come between the two writes."""

from control_plane.context import Context
from control_plane.state import EvaluationStatus, PlanStatus, PromotionStatus
from control_plane.stores.jobs import Job, JobKind

LOOKED_AT = 10


def queue_pending(context: Context, environment: str) -> int:
    """Queue the pending evaluations, promotions and plans among the newest; answer how many.

    For a holder of the lease that finds nothing queued. A job that is queued meanwhile is then
    there twice, which is harmless: the second finds what it is about decided.
    """
    held = context.environments.load(environment)
    if held is None:
        return 0
    jobs = [job for guard in held.guards for job in _pending(context, environment, guard)]
    for job in jobs:
        context.jobs.put(environment, job)
    return len(jobs)


def _pending(context: Context, environment: str, guard: str) -> list[Job]:
    evaluations = context.gates.evaluations(environment, guard, at_most=LOOKED_AT)
    promotions = context.gates.promotions(environment, guard, at_most=LOOKED_AT)
    plans = context.plans.newest(environment, guard, at_most=LOOKED_AT)
    # Oldest first, as they were asked for.
    return [
        *(
            Job(JobKind.EVALUATE, guard, each.id)
            for each in reversed(evaluations)
            if each.status is EvaluationStatus.PENDING
        ),
        *(
            Job(JobKind.PROMOTE, guard, each.id)
            for each in reversed(promotions)
            if each.status is PromotionStatus.PENDING
        ),
        *(
            Job(JobKind.PLAN, guard, each.id)
            for each in reversed(plans)
            if each.status is PlanStatus.PENDING
        ),
    ]
