"""Example wave: makes docs/example-wave.json.gz, the evidence bundle of a simulated wave.

It has 640 owners, 32 of them under enforcement, seven days and the seven days of warn before them.
The guard does no harm; its stops are as many as its would-be stops. Run the script again after a
change of an evaluation's members or sentences, and render the documents that read the bundle.
"""

import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import numpy as np  # path first
import numpy.typing as npt

from benchmarks.proof.outcomes import Harm, Outcome, doses, observe
from benchmarks.proof.owners import Sizes, draw_owners
from guardwave import __version__
from guardwave.analysis.frames.evidence import Share, WaveDay
from guardwave.analysis.inference.rerandomisation import DrawKey
from guardwave.control_plane.core.policy import load
from guardwave.control_plane.jobs.bundles import SCHEMA, BaselineDays, Bundle, GatheredEvidence
from guardwave.control_plane.jobs.conclude import conclude
from guardwave.control_plane.jobs.owner_day_table import OwnerDayTable
from guardwave.control_plane.stores.evidence.owner_days import OwnerDay
from guardwave.reducer.rollout.draw import Roster, draw, salt_text
from guardwave.reducer.rollout.pseudonym import unpack
from guardwave.reducer.rollout.state import COHORT_MODES, Wave
from guardwave.reducer.vocabulary import Cohort, Gate, Mode

Counts = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Places = npt.NDArray[np.str_]

BUNDLE = ROOT / "docs" / "example-wave.json.gz"
SEED = 20_261_110
ENVIRONMENT, GUARD, VERSION = "internal", "repeated_tool_failure", "0.21.0"
OWNERS, SHARE_BPS = 640, 500
SALT = salt_text("000102030405060708090a0b0c0d0e0f", 0)
FIRST_BEFORE, FIRST = date(2026, 11, 2), date(2026, 11, 10)
STOP_RATE, CALLS_AFTER = 0.006, 3.0
# The rate of prompts that another protection ended, in any cohort.
LOOP_RATE = 0.004
MODES = {**COHORT_MODES[Mode.WARN], **COHORT_MODES[Mode.ENFORCE]}


def main() -> None:
    """Simulate both weeks, conclude, and write the bundle."""
    source = np.random.default_rng(SEED)
    names = [unpack(source.bytes(10)) for _ in range(OWNERS)]
    roster = draw(ENVIRONMENT, GUARD, SALT, names, share_bps=SHARE_BPS)
    owners = draw_owners(source, OWNERS, Sizes.LOGNORMAL, roster.treated)
    harmless = doses(owners, Harm.NONE)
    before = observe(source, owners.baseline, harmless)
    during = observe(source, owners.wave, harmless)
    treated = owners.is_treated
    warned = source.random(OWNERS) < 0.8
    wave = Wave(
        number=3,
        phase=Mode.ENFORCE,
        version_pin=(VERSION,),
        looks=(7,),
        opened_at=datetime(2026, 11, 9, 14, 20, tzinfo=UTC),
        salt=SALT,
        treated_bps=SHARE_BPS,
        roster_size=OWNERS,
        treated=roster.treated,
        roster_digest=roster.digest,
    )
    policies = load(None)
    cohorts = np.where(treated, Cohort.ENFORCED, Cohort.CONTROL)
    cohorts_before = np.where(warned, Cohort.WARNED, Cohort.HOLDBACK)
    gathered = GatheredEvidence(
        environment=ENVIRONMENT,
        guard=GUARD,
        gate=Gate.ENFORCE,
        wave=wave,
        declared_days=7,
        days=tuple(WaveDay(day, is_complete=True, reason=None) for day in week(FIRST)),
        owner_days=table(source, during, roster, cohorts=cohorts, first=FIRST),
        contract=Share(5_181, 5_184),
        violations={},
        roster=roster.pseudonyms,
        baseline=BaselineDays(
            2,
            Mode.WARN,
            week(FIRST_BEFORE),
            table(source, before, roster, cohorts=cohorts_before, first=FIRST_BEFORE),
        ),
        policy=policies.of(ENVIRONMENT),
        policy_hash=policies.hash,
        code_version=__version__,
        seed=str(DrawKey(ENVIRONMENT, GUARD, wave.number).seed),
    )
    concluded = conclude(gathered)
    bundle = Bundle(SCHEMA, 12, concluded.digest, concluded.result, gathered)
    BUNDLE.write_bytes(bundle.packed())
    print(f"{BUNDLE.name}: {BUNDLE.stat().st_size:,} bytes; {concluded.evaluation.sentence}")


def week(first: date) -> tuple[date, ...]:
    """Return seven days."""
    return tuple(first + timedelta(days=place) for place in range(7))


def table(
    source: np.random.Generator, outcome: Outcome, roster: Roster, *, cohorts: Places, first: date
) -> OwnerDayTable:
    """Spread the counts of a week over its days, prompt by prompt."""
    others = np.random.default_rng([SEED, first.toordinal()])
    rows = [
        replace(row, loops=int(others.binomial(row.started, LOOP_RATE)))
        for place, name in enumerate(roster.pseudonyms)
        for row in _days_of(Prompts.of(source, outcome, place), name, Cohort(cohorts[place]), first)
    ]
    return OwnerDayTable.of(rows)


class Prompts(NamedTuple):
    """The prompts of one owner's week, one entry per prompt."""

    days: Counts
    is_cancelled: Flags
    is_failed: Flags
    is_disrupted: Flags
    tokens: Counts
    turns: Counts
    buckets: Counts
    stops: Counts
    calls: Counts

    @classmethod
    def of(cls, source: np.random.Generator, outcome: Outcome, place: int) -> "Prompts":
        """Distribute the owner's counts over prompts, whose order has no meaning."""
        prompts = int(outcome.started[place])
        order = np.arange(prompts)
        cancelled, failed = int(outcome.cancelled[place]), int(outcome.failed[place])
        stops = source.binomial(1, STOP_RATE, prompts)
        durations = outcome.durations
        is_own = durations.owners == place
        buckets = np.repeat(durations.buckets[is_own], durations.counts[is_own])
        return cls(
            days=source.integers(0, 7, prompts),
            is_cancelled=order < cancelled,
            is_failed=(order >= cancelled) & (order < cancelled + failed),
            is_disrupted=source.permutation(order < outcome.disrupted[place]),
            tokens=_shares(source, int(outcome.tokens[place]), prompts),
            turns=1 + _shares(source, int(outcome.turns[place]) - prompts, prompts),
            buckets=source.permutation(buckets),
            stops=stops,
            calls=stops * source.poisson(CALLS_AFTER, prompts),
        )


def _days_of(week_of: Prompts, name: str, cohort: Cohort, first: date) -> Iterator[OwnerDay]:
    for day in np.unique(week_of.days):
        on = Prompts(*(column[week_of.days == day] for column in week_of))
        buckets, counts = np.unique(on.buckets, return_counts=True)
        started, stops = len(on.days), int(on.stops.sum())
        cancelled, failed = int(on.is_cancelled.sum()), int(on.is_failed.sum())
        is_enforced = cohort is Cohort.ENFORCED
        yield OwnerDay(
            owner=name,
            day=first + timedelta(days=int(day)),
            cohort=cohort,
            version=VERSION,
            started=started,
            cancelled=cancelled,
            completed=started - cancelled - failed,
            failed=failed,
            guard_stopped=0,
            limit=0,
            lost=0,
            disrupted=int(on.is_disrupted.sum()),
            tokens=int(on.tokens.sum()),
            turns=int(on.turns.sum()),
            would_stopped=0 if is_enforced else stops,
            stopped=stops if is_enforced else 0,
            calls_after_would_stop=0 if is_enforced else int(on.calls.sum()),
            unreliable=0,
            covered=started,
            ended=started,
            switched=0,
            tokens_untold=0,
            turns_untold=0,
            durations=tuple(zip(buckets.tolist(), counts.tolist(), strict=True)),
            mode=MODES[cohort],
        )


def _shares(source: np.random.Generator, total: int, prompts: int) -> Counts:
    if prompts == 0:
        return np.zeros(0, dtype=np.int64)
    return source.multinomial(total, np.full(prompts, 1.0 / prompts))


if __name__ == "__main__":
    main()
