"""Gathers the evidence of a wave from the store, in the form the analysis takes."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import date, timedelta
from hashlib import sha256

import orjson
import pandas as pd

from analysis.frames import owner_totals
from analysis.gates import Share, WaveDay, WaveEvidence
from control_plane.clock import NANOSECONDS
from control_plane.context import Context
from control_plane.queries.days import complete_days, wave_days
from control_plane.stores.evidence import KEPT_DAYS, OwnerDay
from reducer.rollout.phases import REFERENCE, TREATED
from reducer.rollout.policy import GatePolicy
from reducer.rollout.state import Rollout, Wave
from reducer.vocabulary import Cohort, Gate, Invariant, Mode

_COLUMNS = (
    "owner",
    "cohort",
    "day",
    "started",
    "cancelled",
    "completed",
    "disrupted",
    "tokens",
    "turns",
)


def look_of(wave: Wave, complete: int) -> int:
    """Return the declared look that is due: the largest one reached, before that the first."""
    return max((look for look in wave.looks if look <= complete), default=wave.looks[0])


def policy_at(policy: GatePolicy, wave: Wave) -> GatePolicy:
    """Return the policy with alpha split over the wave's looks (statistics: K looks at alpha/K)."""
    return replace(policy, alpha=policy.alpha / len(wave.looks))


def is_older_than_evidence(context: Context, wave: Wave) -> bool:
    """Whether evidence of the wave's first days may be gone, so that other days would be its first.

    Evidence is kept in real time, while a demo's days pass in seconds.
    """
    age_seconds = context.clock.wall_ns() / NANOSECONDS - context.clock.wall_at(wave.opened_at)
    return age_seconds > timedelta(days=KEPT_DAYS).total_seconds()


def gather(
    context: Context, rollout: Rollout, wave: Wave, *, gate: Gate
) -> tuple[WaveEvidence, Sequence[OwnerDay]]:
    """Return the wave's evidence and the owner-days it rests on.

    Raises:
        ValueError: the owner-days contradict each other, an owner in two cohorts for one.
    """
    days = wave_days(context, rollout.environment, wave)
    complete = complete_days(days)
    declared = look_of(wave, len(complete))
    used = complete[:declared]
    rows = context.evidence.owner_days(rollout.environment, rollout.guard, wave.number, used)
    ended = sum(row.ended for row in rows)
    evidence = WaveEvidence(
        environment=rollout.environment,
        guard=rollout.guard,
        gate=gate,
        wave=wave.number,
        treated=TREATED[wave.phase],
        reference=REFERENCE[wave.phase],
        owners=owner_totals(_frame(rows)),
        rostered=_rostered(wave),
        days=tuple(
            WaveDay(each.day, each.is_complete, each.reason) for each in days if not each.is_running
        ),
        declared_days=declared,
        coverage=Share(sum(row.covered for row in rows), ended) if ended else None,
        contract=_contract(context, rollout.environment, complete),
        off_pin=_off_pin(wave, rows),
        violations=_violations(context, rollout.environment, wave, rows),
        lost=sum(row.lost for row in rows),
    )
    return evidence, rows


def evidence_digest(
    evidence: WaveEvidence, rows: Sequence[OwnerDay], *, roster_digest: str, policy_hash: str
) -> str:
    """Return the SHA-256 over all that decides, as canonical JSON.

    That is the wave's evidence, the owner-days of which its owner totals are sums, the roster's
    digest and the policy's hash.
    """
    named = (field.name for field in fields(evidence) if field.name != "owners")
    content = {
        "evidence": {name: getattr(evidence, name) for name in named},
        "rows": rows,
        "roster": roster_digest,
        "policy": policy_hash,
    }
    options = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS
    return sha256(orjson.dumps(content, option=options)).hexdigest()


def _frame(rows: Sequence[OwnerDay]) -> pd.DataFrame:
    # A row without a start may stand for a switch alone.
    plain = [[getattr(row, column) for column in _COLUMNS] for row in rows if row.started]
    frame = pd.DataFrame(plain, columns=list(_COLUMNS))
    frame["cohort"] = frame["cohort"].astype(str)
    return frame


def _rostered(wave: Wave) -> Mapping[Cohort, int]:
    if wave.phase.rank <= Mode.SHADOW.rank:
        return {}
    return {
        TREATED[wave.phase]: wave.treated,
        REFERENCE[wave.phase]: wave.roster_size - wave.treated,
    }


def _contract(context: Context, environment: str, complete: Sequence[date]) -> Share | None:
    if not complete:
        return None
    last = context.evidence.sealed_days(environment, [complete[-1]])
    if not last or last[0].records == 0:
        return None
    return Share(last[0].conforming, last[0].records)


def _off_pin(wave: Wave, rows: Sequence[OwnerDay]) -> Mapping[Cohort, Share]:
    started: Counter[Cohort] = Counter()
    off: Counter[Cohort] = Counter()
    for row in rows:
        started[row.cohort] += row.started
        off[row.cohort] += 0 if row.version in wave.version_pin else row.started
    compared = (TREATED[wave.phase], REFERENCE[wave.phase])
    return {cohort: Share(off[cohort], started[cohort]) for cohort in compared}


def _violations(
    context: Context, environment: str, wave: Wave, rows: Sequence[OwnerDay]
) -> Mapping[Invariant, int]:
    """Count every violation of the environment since the wave opened, and the rows' switches."""
    found = context.incidents.violations(environment)
    counted = Counter(each.invariant for each in found if each.at > wave.opened_at)
    switched = sum(row.switched for row in rows)
    if switched:
        counted[Invariant.TREATMENT_SWITCHED] += switched
    return dict(counted)
