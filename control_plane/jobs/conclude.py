"""Conclusions: from gathered evidence to a verdict without a store, for evaluations and replays."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from typing import NamedTuple

import numpy as np
import orjson
import pandas as pd

from guardwave.analysis.frames import (
    COMPARABLE,
    COUNTS,
    Baseline,
    DrawInputs,
    MatchedEvidence,
    OwnerHistograms,
    Share,
    WaveEvidence,
    explain_missing,
    explain_missing_before,
    first_complete_days,
    guard_totals,
    matched_days,
    missing_shares,
    missing_values_of,
    owner_totals,
)
from guardwave.analysis.gate import evaluate, exposure_of, pinned_prompts
from guardwave.analysis.report import Check, GateEvaluation, to_wire
from guardwave.control_plane.jobs.bundles import BaselineDays, GatheredEvidence
from guardwave.control_plane.jobs.cohort_assignment import keep_assigned_cohorts
from guardwave.control_plane.jobs.owner_day_table import OwnerDayTable
from guardwave.reducer.rollout.state import COHORT_MODES, REFERENCE, TREATED, EvidenceSource, Wave
from guardwave.reducer.vocabulary import Cohort, Invariant, Mode

_LATCH_FULL = (
    "No violation is known, but the environment's latch is full and records no further one: look "
    "at those it holds and release it."
)


class Conclusion(NamedTuple):
    """An evaluation, its JSON text and the SHA-256 of that, hexadecimal."""

    evaluation: GateEvaluation
    result: str
    digest: str


def conclude(gathered: GatheredEvidence) -> Conclusion:
    """Judge the gathered evidence. The same evidence gives the same bytes.

    Raises:
        ValueError: the owner-days contradict each other.
    """
    evaluation = evaluate(evidence_of(gathered), gathered.policy)
    wire = {
        **to_wire(evaluation),
        "policy_hash": gathered.policy_hash,
        "code_version": gathered.code_version,
        "evidence_digest": gathered.digest,
    }
    result = orjson.dumps(wire, option=orjson.OPT_SORT_KEYS).decode()
    return Conclusion(evaluation, result, sha256(result.encode()).hexdigest())


def evidence_of(gathered: GatheredEvidence) -> WaveEvidence:
    """Return the gathered evidence in the form that the analysis takes.

    Raises:
        ValueError: the owner-days contradict each other.
    """
    wave = gathered.wave
    rows = gathered.owner_days.frame()
    # A row without a start may only record a switch.
    started, switched = keep_assigned_cohorts(
        rows[rows["started"] > 0], wave, gathered.roster[: wave.treated]
    )
    cohorts = (TREATED[wave.phase], REFERENCE[wave.phase])
    durations = durations_of(gathered.owner_days, started)
    ended = int(rows["ended"].sum())
    by_events = gathered.source is EvidenceSource.EVENTS
    return WaveEvidence(
        environment=gathered.environment,
        guard=gathered.guard,
        gate=gathered.gate,
        wave=wave.number,
        treated=cohorts[0],
        reference=cohorts[1],
        owners=owner_totals(started),
        rostered=_rostered(wave),
        days=gathered.days,
        declared_days=gathered.declared_days,
        # Counters do not show which prompts are covered.
        coverage=Share(int(rows["covered"].sum()), ended) if ended and by_events else None,
        contract=gathered.contract,
        off_pin=_off_pin(wave, rows),
        violations=_violations(gathered, int(rows["switched"].sum()) + switched),
        lost=int(rows["lost"].sum()),
        draw=_draw(gathered),
        guard_totals=_guard_totals(wave, started),
        guard_totals_before=_guard_totals_before(gathered),
        durations=durations,
        baseline=_baseline(gathered),
        matched=_matched(gathered),
        source=gathered.source,
        exposure=exposure_of(started, gathered.gate),
        pinned=pinned_prompts(started, wave.version_pin),
        missing=missing_values_of(started, durations, cohorts),
        unknown={Check.INVARIANTS: _LATCH_FULL} if gathered.is_latch_full else {},
    )


def _rostered(wave: Wave) -> Mapping[Cohort, int]:
    if wave.phase.rank <= Mode.SHADOW.rank:
        return {}
    return {
        TREATED[wave.phase]: wave.treated,
        REFERENCE[wave.phase]: wave.roster_size - wave.treated,
    }


def _off_pin(wave: Wave, rows: pd.DataFrame) -> Mapping[Cohort, Share]:
    shares: dict[Cohort, Share] = {}
    for cohort in (TREATED[wave.phase], REFERENCE[wave.phase]):
        of_cohort = rows[rows["cohort"] == cohort.value]
        off = of_cohort.loc[~of_cohort["version"].isin(wave.version_pin), "started"]
        shares[cohort] = Share(int(off.sum()), int(of_cohort["started"].sum()))
    return shares


def _violations(gathered: GatheredEvidence, switched: int) -> Mapping[Invariant, int]:
    counted = Counter(gathered.violations)
    if switched:
        counted[Invariant.TREATMENT_SWITCHED] += switched
    return dict(counted)


def _draw(gathered: GatheredEvidence) -> DrawInputs | None:
    wave = gathered.wave
    if not gathered.roster:
        return None
    return DrawInputs(wave.algorithm, wave.salt, wave.treated_bps, gathered.roster)


def _guard_totals(wave: Wave, rows: pd.DataFrame) -> pd.DataFrame:
    off_pin = np.where(rows["version"].isin(wave.version_pin), 0, rows["started"])
    return guard_totals(rows.assign(off_pin=off_pin))


def _guard_totals_before(gathered: GatheredEvidence) -> pd.DataFrame | None:
    baseline = gathered.baseline
    if baseline is None:
        return None
    rows = baseline.owner_days.frame()
    return _guard_totals(gathered.wave, rows[rows["started"] > 0])


def _matched(gathered: GatheredEvidence) -> MatchedEvidence | None:
    """Return both periods on the same weekdays; None if these are all days, or too few.

    Only a wave that holds nobody back is compared with the days before it.
    """
    wave, before = gathered.wave, gathered.baseline
    if before is None or wave.roster_size > wave.treated:
        return None
    used = first_complete_days(gathered.days, gathered.declared_days)
    days = matched_days(used, before.days)
    if days is None or days == (used, before.days):
        return None
    after = gathered.owner_days.on_days(days.after)
    earlier = replace(before, days=days.before, owner_days=before.owner_days.on_days(days.before))
    baseline = _baseline(replace(gathered, baseline=earlier))
    if baseline is None:
        return None
    rows = after.frame()
    treated = gathered.roster[: wave.treated]
    started, _ = keep_assigned_cohorts(rows[rows["started"] > 0], wave, treated)
    durations = durations_of(after, started)
    missing = missing_values_of(started, durations, (TREATED[wave.phase], REFERENCE[wave.phase]))
    return MatchedEvidence(
        days, owner_totals(started), durations, baseline, missing_reasons=explain_missing(missing)
    )


def durations_of(table: OwnerDayTable, rows: pd.DataFrame) -> OwnerHistograms | None:
    """Return the durations of the owners in `rows`, None when these reported none."""
    durations = table.durations()
    durations = durations[durations["owner"].isin(rows["owner"])]
    return OwnerHistograms.of(durations, table.scale) if len(durations) else None


def _baseline(gathered: GatheredEvidence) -> Baseline | None:
    """Return the owners' totals before the wave, and which owners are comparable.

    An owner is comparable if it had, on all these days, the mode that most of the treated had:
    behaviour in another mode does not predict behaviour in the mode that the comparison starts
    from.
    """
    before = gathered.baseline
    if before is None:
        return None
    rows = before.owner_days.frame()
    rows = rows[rows["started"] > 0]
    totals = rows.groupby("owner", as_index=False, sort=True)[list(COUNTS)].sum()
    modes = _modes_before(before, rows)
    usual = _usual_mode(modes, gathered.roster[: gathered.wave.treated])
    totals[COMPARABLE] = [
        modes[owner] is not None and modes[owner] is usual for owner in totals["owner"]
    ]
    durations = durations_of(before.owner_days, rows)
    missing_reasons = explain_missing_before(missing_shares(rows, durations))
    return Baseline(totals, before.days, durations, missing_reasons)


def _modes_before(before: BaselineDays, rows: pd.DataFrame) -> Mapping[str, Mode | None]:
    """Return the mode of each owner on the days before, None where it had several."""
    of_cohort = COHORT_MODES[before.phase]
    modes: dict[str, Mode | None] = {}
    for owner, cohort in zip(rows["owner"], rows["cohort"], strict=True):
        mode = of_cohort.get(Cohort(cohort))
        modes[owner] = mode if modes.get(owner, mode) is mode else None
    return modes


def _usual_mode(modes: Mapping[str, Mode | None], treated: tuple[str, ...]) -> Mode | None:
    """Return the mode that most of the treated owners had, the lower one in a tie."""
    counts = Counter(mode for owner in treated if (mode := modes.get(owner)) is not None)
    return max(counts, key=lambda mode: (counts[mode], -mode.rank), default=None)
