"""Planning a wave on the environment's own evidence: what its gate could prove, and how often."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import NamedTuple, TypeAlias

import orjson

from analysis.frames import owner_totals
from analysis.power import MetricPlan, plan_metrics
from analysis.sentences import label, percent
from control_plane.context import Context
from control_plane.jobs.gathering import is_older_than_evidence
from control_plane.jobs.owner_day_table import OwnerDayTable
from control_plane.queries.days import complete_days, wave_days
from control_plane.state import Plan, PlanStatus
from reducer.rollout.draw import treated_count
from reducer.rollout.phases import TREATED
from reducer.rollout.policy import GatePolicy
from reducer.rollout.state import Rollout, Wave
from reducer.vocabulary import Gate, Mode

JsonValue: TypeAlias = (
    "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
)
# Below it a wave is more likely to end unproven than not, whatever the guard does.
LOW_POWER = 0.5


class Ground(NamedTuple):
    """What a plan rests on: a wave one phase below the planned one, and its complete days."""

    wave: Wave
    days: tuple[date, ...]
    table: OwnerDayTable


class Planned(NamedTuple):
    """What a wave of one share and length could prove with the owners seen before it."""

    share_bps: int
    days: int
    owners: int
    treated: int
    plans: tuple[MetricPlan, ...]


def make_plan(context: Context, environment: str, guard: str, number: int) -> Plan | None:
    """Make a pending plan and keep it; None when there is none or it was made."""
    asked = context.plans.plan(environment, guard, number)
    rollout = context.environments.rollout(environment, guard)
    if asked is None or rollout is None or asked.status is not PlanStatus.PENDING:
        return None
    ground = _ground(context, rollout, asked.gate)
    if ground is None or len(ground.days) < max(asked.days):
        complete = 0 if ground is None else len(ground.days)
        why = (
            f"a plan for {max(asked.days)} days rests on as many complete days before the wave; "
            f"there are {complete}"
        )
        return _kept(context, environment, replace(asked, status=PlanStatus.FAILED, sentence=why))
    policy = context.policies.of(environment)
    found = [
        _planned(ground, asked, policy, share_bps=share_bps, days=days)
        for days in asked.days
        for share_bps in asked.shares_bps
    ]
    result = {
        "gate": asked.gate.value,
        "baseline": {
            "wave": ground.wave.number,
            "phase": ground.wave.phase.value,
            "days": [day.isoformat() for day in ground.days],
        },
        "policy_hash": context.policies.hash,
        "alpha": policy.alpha,
        "planned_power": policy.planned_power,
        "waves": [_wire(wave) for wave in found],
    }
    done = replace(
        asked,
        status=PlanStatus.DONE,
        sentence=_sentence(found),
        result=orjson.dumps(result, option=orjson.OPT_SORT_KEYS).decode(),
    )
    return _kept(context, environment, done)


def fail_plan(context: Context, environment: str, guard: str, number: int, *, why: str) -> None:
    """End a pending plan that could not be made."""
    asked = context.plans.plan(environment, guard, number)
    if asked is not None and asked.status is PlanStatus.PENDING:
        failed = replace(asked, status=PlanStatus.FAILED, sentence=f"it could not be made: {why}")
        _kept(context, environment, failed)


def _kept(context: Context, environment: str, plan: Plan) -> Plan:
    made = replace(plan, planned_at=context.clock.now())
    context.plans.save(environment, made)
    return made


def _ground(context: Context, rollout: Rollout, gate: Gate) -> Ground | None:
    """Return the newest wave one phase below the gate's, with its complete days and owner-days."""
    phase = Mode.SHADOW if gate is Gate.WARN else Mode.WARN
    for number in range(rollout.last_wave, 0, -1):
        wave = context.environments.wave(rollout.environment, rollout.guard, number)
        if wave is None or wave.phase is not phase:
            continue
        if wave.version_pin != rollout.version_pin or is_older_than_evidence(context, wave):
            return None
        days = complete_days(wave_days(context, rollout.environment, wave))
        rows = context.evidence.owner_days(rollout.environment, rollout.guard, number, days)
        return Ground(wave, days, OwnerDayTable.of(rows))
    return None


def _planned(
    ground: Ground, asked: Plan, policy: GatePolicy, *, share_bps: int, days: int
) -> Planned:
    """Plan one share and length on the last days, over the owners in the mode to start from."""
    rows = ground.table.frame()
    is_chosen = rows["day"].isin(ground.days[-days:]) & (rows["started"] > 0)
    totals = owner_totals(rows[is_chosen & (rows["cohort"] == TREATED[ground.wave.phase].value)])
    return Planned(
        share_bps,
        days,
        len(totals),
        treated_count(share_bps, len(totals)),
        plan_metrics(totals, policy.margins[asked.gate], policy=policy, share_bps=share_bps),
    )


def _wire(wave: Planned) -> Mapping[str, JsonValue]:
    return {
        "share_bps": wave.share_bps,
        "days": wave.days,
        "owners": wave.owners,
        "treated": wave.treated,
        "metrics": [_metric(plan) for plan in wave.plans],
    }


def _sentence(waves: Sequence[Planned]) -> str:
    """Say of each planned wave which metric is least likely to pass, and what it would need."""
    return " ".join(_about(wave) for wave in waves)


def _about(wave: Planned) -> str:
    share = f"{wave.share_bps / 100:g} %"
    head = f"{wave.days} days at {share}, {wave.treated:,} of {wave.owners:,} owners"
    known = [(plan.power, plan) for plan in wave.plans if plan.power is not None]
    if not known:
        return f"{head}: too few owners to reckon with."
    least, plan = min(known, key=lambda pair: pair[0])
    needed = "no roster would do"
    if plan.owners_needed is not None:
        needed = f"{plan.owners_needed:,} owners are needed"
    warning = "" if least >= LOW_POWER else " More likely unproven than not."
    passes = f"{label(plan.metric)} passes {percent(least)} of harmless waves"
    return f"{head}: {passes}; {needed}.{warning}"


def _metric(plan: MetricPlan) -> Mapping[str, JsonValue]:
    return {
        "metric": plan.metric.value,
        "owner_variance": plan.variance,
        "power": plan.power,
        "treated_needed": plan.treated_needed,
        "owners_needed": plan.owners_needed,
    }
