"""Asking what a wave could prove before it starts; the worker reckons and simulates."""

from dataclasses import dataclass, replace

from control_plane.commands.changes import bound_by_policy, load_environment, load_rollout
from control_plane.commands.refusals import rule_violated
from control_plane.context import Context
from control_plane.errors import StateConflict
from control_plane.state import Actor, Plan, PlanStatus
from control_plane.stores.jobs import Job, JobKind
from reducer.rollout.draw import BPS
from reducer.rollout.state import Rollout
from reducer.vocabulary import Gate, Mode

PLACEBO_WAVES = 500
MOST_PLACEBO_WAVES = 1000


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """Which shares and lengths to plan for; none given: what the policy says for the next wave.

    `looks` are how many the wave will declare; each has its part of alpha.
    """

    shares_bps: tuple[int, ...] = ()
    days: tuple[int, ...] = ()
    placebo_waves: int = PLACEBO_WAVES
    looks: int = 1


def request_plan(
    context: Context, environment: str, guard: str, *, request: PlanRequest, actor: Actor
) -> Plan:
    """Keep a pending plan of the next wave's gate and queue it for the worker.

    Raises:
        NotFound: no such environment or rollout.
        StateConflict: the rollout is off, or another plan of it is still pending.
        RuleViolated: a share or a length is named twice, or treats everybody.
    """
    load_environment(context, environment)
    rollout = load_rollout(context, environment, guard)
    if rollout.phase is Mode.OFF:
        raise StateConflict(f"{guard} is off in {environment}; a plan rests on days of shadow")
    pending = [
        each
        for each in context.plans.newest(environment, guard, at_most=1)
        if each.status is PlanStatus.PENDING
    ]
    if pending:
        raise StateConflict(f"plan {pending[0].id} is still being made; wait until it is done")
    policy = context.policies.of(environment)
    plan = Plan(
        id=0,
        guard=guard,
        gate=planned_gate(rollout),
        shares_bps=_each_once(request.shares_bps, "shares_bps") or (_share(context, rollout),),
        days=_each_once(request.days, "days") or (policy.dwell_days,),
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
    return _queued(context, environment, plan)


def planned_gate(rollout: Rollout) -> Gate:
    """Return the gate that the next wave of two cohorts will have to pass."""
    return Gate.WARN if rollout.phase is Mode.SHADOW else Gate.ENFORCE


def _share(context: Context, rollout: Rollout) -> int:
    policy = context.policies.of(rollout.environment)
    if planned_gate(rollout) is Gate.WARN:
        return BPS - policy.holdback_bps
    return bound_by_policy(context, rollout).ceiling_bps


def _each_once(values: tuple[int, ...], name: str) -> tuple[int, ...]:
    if len(set(values)) != len(values):
        raise rule_violated(f"{name} names a value twice; name each once", pointer=f"/{name}")
    return tuple(sorted(values))


def _queued(context: Context, environment: str, plan: Plan) -> Plan:
    plan = replace(plan, id=context.plans.next_plan(environment, plan.guard))
    context.plans.save(environment, plan)
    context.jobs.put(environment, Job(JobKind.PLAN, plan.guard, plan.id))
    return plan
