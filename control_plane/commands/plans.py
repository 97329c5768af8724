"""Plan requests: forecasts of what a wave could prove, which the worker computes."""

from dataclasses import dataclass, replace

from guardwave.control_plane.core.errors import StateConflict
from guardwave.control_plane.core.state import Actor, Plan, PlanStatus
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.rollouts.loading import (
    load_environment,
    load_rollout,
    with_policy_ceiling,
)
from guardwave.control_plane.rollouts.refusals import rule_violated
from guardwave.control_plane.stores.jobs import Job, JobKind
from guardwave.reducer.rollout.draw import BPS
from guardwave.reducer.rollout.state import Rollout
from guardwave.reducer.vocabulary import Gate, Mode

PLACEBO_WAVES = 500
MOST_PLACEBO_WAVES = 1000


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """The shares and lengths to plan for; the policy's for the next wave where none are given.

    `looks` is how many looks the wave will declare; they share alpha equally.
    """

    shares_bps: tuple[int, ...] = ()
    days: tuple[int, ...] = ()
    placebo_waves: int = PLACEBO_WAVES
    looks: int = 1


def request_plan(
    context: Context, environment: str, guard: str, *, request: PlanRequest, actor: Actor
) -> Plan:
    """Store a pending plan of the next wave's gate and queue it for the worker.

    Raises:
        NotFound: no such environment or rollout.
        StateConflict: the rollout is off, or another plan of it is still pending.
        RuleViolated: a share or a length is named twice, or treats everybody.
    """
    load_environment(context, environment)
    rollout = load_rollout(context, environment, guard)
    if rollout.phase is Mode.OFF:
        raise StateConflict(f"{guard} is off in {environment}; a plan rests on days of shadow")
    for newest in context.plans.newest(environment, guard, at_most=1):
        if newest.status is PlanStatus.PENDING:
            raise StateConflict(f"plan {newest.id} is still being made; wait until it is done")
    policy = context.policies.of(environment)
    plan = Plan(
        id=0,
        guard=guard,
        gate=planned_gate(rollout),
        shares_bps=_without_repeats(request.shares_bps, "shares_bps")
        or (_share(context, rollout),),
        days=_without_repeats(request.days, "days") or (policy.dwell_days,),
        placebo_waves=request.placebo_waves,
        looks=request.looks,
        requested_at=context.clock.now(),
        actor=actor,
    )
    if BPS in plan.shares_bps:
        raise rule_violated(
            f"a share of {BPS} basis points treats everybody and leaves nobody to compare with; "
            "plan for a smaller one",
            pointer="/shares_bps",
        )
    return _queue(context, environment, plan)


def planned_gate(rollout: Rollout) -> Gate:
    """Return the gate that the next wave of two cohorts will have to pass."""
    return Gate.WARN if rollout.phase is Mode.SHADOW else Gate.ENFORCE


def _share(context: Context, rollout: Rollout) -> int:
    policy = context.policies.of(rollout.environment)
    if planned_gate(rollout) is Gate.WARN:
        return BPS - policy.holdback_bps
    return with_policy_ceiling(context, rollout).ceiling_bps


def _without_repeats(values: tuple[int, ...], name: str) -> tuple[int, ...]:
    if len(set(values)) != len(values):
        raise rule_violated(f"{name} names a value twice; name each once", pointer=f"/{name}")
    return tuple(sorted(values))


def _queue(context: Context, environment: str, plan: Plan) -> Plan:
    plan = replace(plan, id=context.plans.next_plan(environment, plan.guard))
    context.plans.save(environment, plan)
    context.jobs.put(environment, Job(JobKind.PLAN, plan.guard, plan.id))
    return plan
