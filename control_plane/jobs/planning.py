"""Planning a wave on the environment's own evidence: what its gate could prove, and how often."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import orjson

from analysis.placebo import PlaceboPlan, Placebos, plan_by_placebo
from analysis.planned_data import DataPlan, plan_data
from analysis.power import MetricPlan, plan_metrics
from analysis.sentences import label, percent
from analysis.unseen import Unseen, unseen_of
from control_plane.context import Context
from control_plane.jobs.gathering import per_look
from control_plane.jobs.plan_ground import Ground, find_ground
from control_plane.state import Plan, PlanStatus
from reducer.rollout.draw import BPS, treated_count
from reducer.rollout.policy import GatePolicy
from reducer.vocabulary import Metric

JsonValue: TypeAlias = (
    "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
)
# Below it a wave is more likely to end unproven than not, whatever the guard does.
LOW_POWER = 0.5


class Planned(NamedTuple):
    """What a wave of one share and length could prove with the owners seen before it.

    `unseen` is what its draw can miss; None where it treats nobody. `data` says how often draws
    lack minimum data, which the power of `plans` leaves out.
    """

    share_bps: int
    days: int
    owners: int
    treated: int
    unseen: Unseen | None
    plans: tuple[MetricPlan, ...]
    data: Mapping[Metric, DataPlan]
    placebo: PlaceboPlan | None


def make_plan(context: Context, environment: str, guard: str, number: int) -> Plan | None:
    """Make a pending plan and keep it; None when there is none or it was made."""
    asked = context.plans.plan(environment, guard, number)
    rollout = context.environments.rollout(environment, guard)
    if asked is None or rollout is None or asked.status is not PlanStatus.PENDING:
        return None
    ground = find_ground(context, rollout, asked)
    if ground is None or len(ground.days) < max(asked.days):
        complete = 0 if ground is None else len(ground.days)
        why = (
            f"a plan for {max(asked.days)} days rests on as many complete days before the wave; "
            f"there are {complete}"
        )
        return _kept(context, environment, replace(asked, status=PlanStatus.FAILED, sentence=why))
    policy = per_look(context.policies.of(environment), asked.looks)
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


def _planned(
    ground: Ground, asked: Plan, policy: GatePolicy, *, share_bps: int, days: int
) -> Planned:
    """Plan one share and length on the last days, over the owners in the mode to start from."""
    quiet = ground.quiet_days(days)
    owners = len(quiet.totals)
    placebo = None
    # Random sets stand for the treated; larger than half they would stand for all the others.
    if share_bps <= BPS // 2:
        placebos = Placebos(asked.gate, policy, waves=asked.placebo_waves)
        (placebo,) = plan_by_placebo([quiet], [share_bps], placebos)
    margins = policy.margins[asked.gate]
    plans = plan_metrics(quiet.totals, margins, policy=policy, share_bps=share_bps)
    treated = treated_count(share_bps, owners)
    unseen = unseen_of(owners, treated)
    data = plan_data(quiet.totals, asked.gate, policy=policy, share_bps=share_bps)
    by_metric = {each.metric: each for each in data}
    return Planned(share_bps, days, owners, treated, unseen, plans, by_metric, placebo)


def _wire(wave: Planned) -> Mapping[str, JsonValue]:
    return {
        "share_bps": wave.share_bps,
        "days": wave.days,
        "owners": wave.owners,
        "treated": wave.treated,
        "unseen": None if wave.unseen is None else _unseen(wave.unseen),
        "metrics": [_metric(plan, wave.data.get(plan.metric)) for plan in wave.plans],
        "placebo": None if wave.placebo is None else _placebo(wave.placebo),
    }


def _sentence(waves: Sequence[Planned]) -> str:
    """Say of each planned wave how likely it is to pass, and what its draw can miss.

    The first is by simulation where there is one.
    """
    told = []
    for wave in waves:
        told.append(_about(wave) if wave.placebo is None else wave.placebo.sentence)
        told.extend(_about_data(wave))
        if wave.unseen is not None:
            told.append(wave.unseen.sentence)
    return " ".join(told)


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


def _about_data(wave: Planned) -> Iterator[str]:
    """Say of the metric that lacks minimum data most often what its power leaves out."""
    lacking = [wave.data[plan.metric] for plan in wave.plans if plan.metric in wave.data]
    worst = max(lacking, key=lambda each: each.short, default=None)
    if worst is not None and worst.lack is not None:
        yield f"Of {label(worst.metric)}, {_remark(worst)}."


def _remark(data: DataPlan) -> str | None:
    """Say what the power in closed form leaves out of a metric; None where nothing is lacking."""
    if data.lack is None:
        return None
    return (
        "power and owners needed in closed form leave out minimum data, which "
        f"{100 * data.short:g} % of draws lack, such as {data.lack}; the gate would call them "
        "unproven"
    )


def _unseen(unseen: Unseen) -> Mapping[str, JsonValue]:
    return {
        "carriers": unseen.carriers,
        "chance": unseen.chance,
        "treated_needed": unseen.treated_needed,
        "is_small": unseen.is_small,
        "sentence": unseen.sentence,
    }


def _placebo(plan: PlaceboPlan) -> Mapping[str, JsonValue]:
    return {
        "waves": plan.waves,
        "power": plan.power,
        "is_weak": plan.is_weak,
        "sentence": plan.sentence,
        "metrics": [
            {
                "metric": rates.metric.value,
                "power": rates.power,
                "false_promotion": rates.false_promotion,
            }
            for rates in plan.metrics
        ],
    }


def _metric(plan: MetricPlan, data: DataPlan | None) -> Mapping[str, JsonValue]:
    return {
        "metric": plan.metric.value,
        "owner_variance": plan.variance,
        "power": plan.power,
        "treated_needed": plan.treated_needed,
        "owners_needed": plan.owners_needed,
        "lacks_data": None if data is None else data.short,
        "remark": None if data is None else _remark(data),
    }
