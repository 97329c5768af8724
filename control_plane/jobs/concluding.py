"""From what was gathered to a verdict, without a store: evaluations and replays take this way."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from typing import NamedTuple

import numpy as np
import orjson
import pandas as pd

from analysis.baseline import COMPARABLE, Baseline
from analysis.evidence import DrawInputs, Share, WaveEvidence, first_complete
from analysis.exposure import exposure_of
from analysis.frames import COUNTS, owner_totals
from analysis.gates import evaluate
from analysis.guard_totals import guard_totals
from analysis.histograms import OwnerHistograms
from analysis.pinned import pinned_prompts
from analysis.report import Check, GateEvaluation, to_wire
from analysis.untold import shares_of, untold_of, why_untold, why_untold_before
from analysis.weekdays import MatchedEvidence, matched_days
from control_plane.jobs.bundles import BaselineDays, Gathered
from control_plane.jobs.drawn_cohorts import in_drawn_cohorts
from control_plane.jobs.owner_day_table import OwnerDayTable
from reducer.rollout.phases import COHORT_MODES, REFERENCE, TREATED
from reducer.rollout.state import EvidenceSource, Wave
from reducer.vocabulary import Cohort, Invariant, Mode

_LATCH_FULL = (
    "No violation is known, but the environment's latch is full and records no further one: look "
    "at those it holds and release it."
)


class Conclusion(NamedTuple):
    """An evaluation, its JSON text and the SHA-256 of that, hexadecimal."""

    evaluation: GateEvaluation
    result: str
    digest: str


def conclude(gathered: Gathered) -> Conclusion:
    """Judge what was gathered. The same gathered evidence gives the same bytes.

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


def evidence_of(gathered: Gathered) -> WaveEvidence:
    """Return what was gathered in the form that the analysis takes.

    Raises:
        ValueError: the owner-days contradict each other.
    """
    wave = gathered.wave
    rows = gathered.owner_days.frame()
    # A row without a start may stand for a switch alone.
    started, switched = in_drawn_cohorts(
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
        # Counters do not tell which prompts are covered.
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
        untold=untold_of(started, durations, cohorts),
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
        own = rows[rows["cohort"] == cohort.value]
        off = own.loc[~own["version"].isin(wave.version_pin), "started"]
        shares[cohort] = Share(int(off.sum()), int(own["started"].sum()))
    return shares


def _violations(gathered: Gathered, switched: int) -> Mapping[Invariant, int]:
    counted = Counter(gathered.violations)
    if switched:
        counted[Invariant.TREATMENT_SWITCHED] += switched
    return dict(counted)


def _draw(gathered: Gathered) -> DrawInputs | None:
    wave = gathered.wave
    if not gathered.roster:
        return None
    return DrawInputs(wave.algorithm, wave.salt, wave.treated_bps, gathered.roster)


def _guard_totals(wave: Wave, rows: pd.DataFrame) -> pd.DataFrame:
    off_pin = np.where(rows["version"].isin(wave.version_pin), 0, rows["started"])
    return guard_totals(rows.assign(off_pin=off_pin))


def _guard_totals_before(gathered: Gathered) -> pd.DataFrame | None:
    baseline = gathered.baseline
    if baseline is None:
        return None
    rows = baseline.owner_days.frame()
    return _guard_totals(gathered.wave, rows[rows["started"] > 0])


def _matched(gathered: Gathered) -> MatchedEvidence | None:
    """Return both sides on days of the same weekdays; None where those are all days, or too few.

    Only a wave that holds nobody back is compared with the days before it.
    """
    wave, found = gathered.wave, gathered.baseline
    if found is None or wave.roster_size > wave.treated:
        return None
    used = first_complete(gathered.days, gathered.declared_days)
    days = matched_days(used, found.days)
    if days is None or days == (used, found.days):
        return None
    after = gathered.owner_days.on_days(days.after)
    earlier = replace(found, days=days.before, owner_days=found.owner_days.on_days(days.before))
    baseline = _baseline(replace(gathered, baseline=earlier))
    if baseline is None:
        return None
    rows = after.frame()
    treated = gathered.roster[: wave.treated]
    started, _ = in_drawn_cohorts(rows[rows["started"] > 0], wave, treated)
    durations = durations_of(after, started)
    untold = untold_of(started, durations, (TREATED[wave.phase], REFERENCE[wave.phase]))
    return MatchedEvidence(
        days, owner_totals(started), durations, baseline, untold=why_untold(untold)
    )


def durations_of(table: OwnerDayTable, rows: pd.DataFrame) -> OwnerHistograms | None:
    """Return the durations of the owners that started a prompt, None when nobody reported any."""
    told = table.durations()
    told = told[told["owner"].isin(rows["owner"])]
    return OwnerHistograms.of(told, table.scale) if len(told) else None


def _baseline(gathered: Gathered) -> Baseline | None:
    """Return the owners' totals before the wave, and who was then treated as the treated were.

    An owner whose mode differed from that of most of the treated, or changed, is not comparable:
    what it did then says nothing about what it would do in the mode the comparison starts from.
    """
    found = gathered.baseline
    if found is None:
        return None
    rows = found.owner_days.frame()
    rows = rows[rows["started"] > 0]
    totals = rows.groupby("owner", as_index=False, sort=True)[list(COUNTS)].sum()
    modes = _modes_before(found, rows)
    usual = _usual_mode(modes, gathered.roster[: gathered.wave.treated])
    totals[COMPARABLE] = [
        modes[owner] is not None and modes[owner] is usual for owner in totals["owner"]
    ]
    durations = durations_of(found.owner_days, rows)
    untold = why_untold_before(shares_of(rows, durations))
    return Baseline(totals, found.days, durations, untold)


def _modes_before(found: BaselineDays, rows: pd.DataFrame) -> Mapping[str, Mode | None]:
    """Return the mode of each owner on the days before, None where it had several."""
    of_cohort = COHORT_MODES[found.phase]
    modes: dict[str, Mode | None] = {}
    for owner, word in zip(rows["owner"], rows["cohort"], strict=True):
        mode = of_cohort.get(Cohort(word))
        modes[owner] = mode if modes.get(owner, mode) is mode else None
    return modes


def _usual_mode(modes: Mapping[str, Mode | None], treated: tuple[str, ...]) -> Mode | None:
    """Return the mode that most of the treated owners had, the lower one of two that tie."""
    counted = Counter(mode for owner in treated if (mode := modes.get(owner)) is not None)
    return max(counted, key=lambda mode: (counted[mode], -mode.rank), default=None)
