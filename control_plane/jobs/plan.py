"""Plans of a wave: what its gate could prove, and how often, on the environment's own evidence.

From top to bottom: the baseline days of a plan, the plan itself, its JSON and sentences, and the
thread that makes plans beside the worker's loop.
"""

import logging
import queue
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import NamedTuple, TypeAlias

import orjson
import pandas as pd

from guardwave.analysis.frames import (
    COMPARABLE,
    COUNTS,
    LEAST_DAYS,
    Baseline,
    explain_missing_before,
    missing_shares,
    owner_totals,
)
from guardwave.analysis.inference import MetricPlan, MissedCarriers, missed_carriers, plan_metrics
from guardwave.analysis.planning import (
    DataPlan,
    PlaceboPlan,
    Placebos,
    QuietDays,
    plan_by_placebo,
    plan_data,
)
from guardwave.analysis.sentences import label, percent
from guardwave.control_plane.core.errors import GuardwaveError, StoreUnavailable
from guardwave.control_plane.core.state import Plan, PlanStatus
from guardwave.control_plane.jobs.conclude import durations_of
from guardwave.control_plane.jobs.gather import is_older_than_evidence, per_look
from guardwave.control_plane.jobs.owner_day_table import OwnerDayTable
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.rollouts.days import complete_days, wave_days
from guardwave.control_plane.stores.evidence.owner_days import OwnerDay
from guardwave.control_plane.stores.jobs import Job
from guardwave.reducer.rollout.draw import BPS, treated_count
from guardwave.reducer.rollout.policy import GatePolicy
from guardwave.reducer.rollout.state import TREATED, Rollout, Wave
from guardwave.reducer.vocabulary import Gate, Metric, Mode


class PlanBaseline(NamedTuple):
    """A wave one phase below, its newest complete days, and their owner-days in its mode."""

    wave: Wave
    days: tuple[date, ...]
    rows: Sequence[OwnerDay]

    def quiet_days(self, count: int) -> QuietDays:
        """Return the last `count` days, and the week before them for CUPED where there is one."""
        chosen, before = self.days[-count:], self.days[:-count][-LEAST_DAYS:]
        table, rows = self._on(chosen)
        baseline = None
        if len(before) == LEAST_DAYS:
            earlier, earlier_rows = self._on(before)
            totals = earlier_rows.groupby("owner", as_index=False)[list(COUNTS)].sum()
            durations = durations_of(earlier, earlier_rows)
            baseline = Baseline(
                totals.assign(**{COMPARABLE: True}),
                before,
                durations,
                explain_missing_before(missing_shares(earlier_rows, durations)),
            )
        return QuietDays(owner_totals(rows), count, durations_of(table, rows), baseline)

    def _on(self, days: Sequence[date]) -> tuple[OwnerDayTable, pd.DataFrame]:
        table = OwnerDayTable.of([row for row in self.rows if row.started and row.day in days])
        return table, table.frame()


def find_plan_baseline(context: Context, rollout: Rollout, plan: Plan) -> PlanBaseline | None:
    """Return a plan's baseline; None without a wave of the phase below with the present pin."""
    phase = Mode.SHADOW if plan.gate is Gate.WARN else Mode.WARN
    for number in range(rollout.last_wave, 0, -1):
        wave = context.environments.wave(rollout.environment, rollout.guard, number)
        if wave is None or wave.phase is not phase:
            continue
        if wave.version_pin != rollout.version_pin or is_older_than_evidence(context, wave):
            return None
        complete = complete_days(
            wave_days(context, rollout.environment, wave, rollout.evidence_source)
        )
        days = complete[-(max(plan.days) + LEAST_DAYS) :]
        rows = context.evidence.owner_days(
            rollout.environment, rollout.guard, number, days, source=rollout.evidence_source
        )
        return PlanBaseline(wave, days, [row for row in rows if row.cohort is TREATED[phase]])
    return None


JsonValue: TypeAlias = (
    "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
)
# Below this power a wave is more likely to end unproven than not, whatever the guard does.
LOW_POWER = 0.5


class WavePlan(NamedTuple):
    """The plan of one share and length, for the owners of the baseline.

    `missed` is the risk that the draw misses the few owners with a harm; None if the wave treats
    nobody. `data` says how often draws lack minimum data, which the power of `plans` leaves out.
    """

    share_bps: int
    days: int
    owners: int
    treated: int
    missed: MissedCarriers | None
    plans: tuple[MetricPlan, ...]
    data: Mapping[Metric, DataPlan]
    placebo: PlaceboPlan | None


def make_plan(context: Context, environment: str, guard: str, number: int) -> Plan | None:
    """Make a pending plan and store it; None when there is none or it is decided."""
    pending = context.plans.plan(environment, guard, number)
    rollout = context.environments.rollout(environment, guard)
    if pending is None or rollout is None or pending.status is not PlanStatus.PENDING:
        return None
    baseline = find_plan_baseline(context, rollout, pending)
    if baseline is None or len(baseline.days) < max(pending.days):
        complete = 0 if baseline is None else len(baseline.days)
        why = (
            f"a plan for {max(pending.days)} days rests on as many complete days before the wave; "
            f"there are {complete}"
        )
        return _save(context, environment, replace(pending, status=PlanStatus.FAILED, sentence=why))
    policy = per_look(context.policies.of(environment), pending.looks)
    waves = [
        _plan_wave(baseline, pending, policy, share_bps=share_bps, days=days)
        for days in pending.days
        for share_bps in pending.shares_bps
    ]
    result = {
        "gate": pending.gate.value,
        "baseline": {
            "wave": baseline.wave.number,
            "phase": baseline.wave.phase.value,
            "days": [day.isoformat() for day in baseline.days],
        },
        "policy_hash": context.policies.hash,
        "alpha": policy.alpha,
        "planned_power": policy.planned_power,
        "waves": [_wire(wave) for wave in waves],
    }
    done = replace(
        pending,
        status=PlanStatus.DONE,
        sentence=_sentence(waves),
        result=orjson.dumps(result, option=orjson.OPT_SORT_KEYS).decode(),
    )
    return _save(context, environment, done)


def fail_plan(context: Context, environment: str, guard: str, number: int, *, why: str) -> None:
    """End a pending plan that could not be made."""
    pending = context.plans.plan(environment, guard, number)
    if pending is not None and pending.status is PlanStatus.PENDING:
        failed = replace(pending, status=PlanStatus.FAILED, sentence=f"it could not be made: {why}")
        _save(context, environment, failed)


def _save(context: Context, environment: str, plan: Plan) -> Plan:
    plan = replace(plan, planned_at=context.clock.now())
    context.plans.save(environment, plan)
    return plan


def _plan_wave(
    baseline: PlanBaseline, pending: Plan, policy: GatePolicy, *, share_bps: int, days: int
) -> WavePlan:
    """Plan one share and length on the last days, for the owners in the mode of the baseline."""
    quiet = baseline.quiet_days(days)
    owners = len(quiet.totals)
    placebo = None
    # Random owner sets play the treated; above a half they would play the rest instead.
    if share_bps <= BPS // 2:
        placebos = Placebos(pending.gate, policy, waves=pending.placebo_waves)
        (placebo,) = plan_by_placebo([quiet], [share_bps], placebos)
    margins = policy.margins[pending.gate]
    plans = plan_metrics(quiet.totals, margins, policy=policy, share_bps=share_bps)
    treated = treated_count(share_bps, owners)
    missed = missed_carriers(owners, treated)
    data = plan_data(quiet.totals, pending.gate, policy=policy, share_bps=share_bps)
    by_metric = {item.metric: item for item in data}
    return WavePlan(share_bps, days, owners, treated, missed, plans, by_metric, placebo)


def _wire(wave: WavePlan) -> Mapping[str, JsonValue]:
    return {
        "share_bps": wave.share_bps,
        "days": wave.days,
        "owners": wave.owners,
        "treated": wave.treated,
        "unseen": None if wave.missed is None else _missed(wave.missed),
        "metrics": [_metric(plan, wave.data.get(plan.metric)) for plan in wave.plans],
        "placebo": None if wave.placebo is None else _placebo(wave.placebo),
    }


def _sentence(waves: Sequence[WavePlan]) -> str:
    """Say of each wave how likely it is to pass, by simulation if there is one, and its risks."""
    sentences = []
    for wave in waves:
        sentences.append(_closed_form(wave) if wave.placebo is None else wave.placebo.sentence)
        sentences.extend(_lacking_data(wave))
        if wave.missed is not None:
            sentences.append(wave.missed.sentence)
    return " ".join(sentences)


def _closed_form(wave: WavePlan) -> str:
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


def _lacking_data(wave: WavePlan) -> Iterator[str]:
    """Yield the remark on the metric that lacks minimum data most often, if one does."""
    lacking = [wave.data[plan.metric] for plan in wave.plans if plan.metric in wave.data]
    worst = max(lacking, key=lambda data: data.short, default=None)
    if worst is not None and worst.lack is not None:
        yield f"Of {label(worst.metric)}, {_remark(worst)}."


def _remark(data: DataPlan) -> str | None:
    """Say what the power in closed form leaves out of a metric; None if no data is lacking."""
    if data.lack is None:
        return None
    return (
        "power and owners needed in closed form leave out minimum data, which "
        f"{100 * data.short:g} % of draws lack, such as {data.lack}; the gate would call them "
        "unproven"
    )


def _missed(missed: MissedCarriers) -> Mapping[str, JsonValue]:
    return {
        "carriers": missed.carriers,
        "chance": missed.chance,
        "treated_needed": missed.treated_needed,
        "is_small": missed.is_small,
        "sentence": missed.sentence,
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


RETRY_S = 1.0

_log = logging.getLogger("guardwave.planner")


class Planner:
    """The thread that makes one worker's plans, one after the other.

    The next holder of the lease queues a plan again that a crash left pending.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._requests: queue.SimpleQueue[tuple[str, Job]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def put(self, environment: str, job: Job) -> None:
        """Queue a plan behind those requested before."""
        self._requests.put((environment, job))
        if self._thread is None:
            # A daemon, so that a process that stops waits for no plan.
            self._thread = threading.Thread(target=self._run, name="planner", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            environment, job = self._requests.get()
            try:
                self._make(environment, job)
            except StoreUnavailable as error:
                _log.warning("the store is unavailable, trying again: %s", error)
                time.sleep(RETRY_S)
                self._requests.put((environment, job))

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
