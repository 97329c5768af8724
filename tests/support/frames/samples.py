"""Evidence for tests: the reference datasets, simulated owners and whole waves."""

import dataclasses
import datetime as dt
import json
from pathlib import Path

import numpy as np
import pandas as pd

from guardwave.analysis.frames.evidence import DrawInputs, Share, WaveDay, WaveEvidence
from guardwave.analysis.frames.owner_totals import Outcomes, checked_totals, outcomes_of
from guardwave.reducer.rollout.draw import ALGORITHM, BPS, draw
from guardwave.reducer.rollout.policy import MinimumData
from guardwave.reducer.vocabulary import Cohort, Gate, Metric
from tests.support.policies import shipped_policy

REFERENCES = Path(__file__).parents[2] / "fixtures" / "stats"
DATASETS = (
    "dev-1-lognormal-aa",
    "dev-2-zipf-harm",
    "dev-3-few-treated-zero-events",
    "dev-4-dominant-owner",
)
# Our metric, and what the reference datasets call it.
REFERENCE_METRICS = {
    Metric.COMPLETION: "completions",
    Metric.DISRUPTION: "disconnects",
    Metric.TOKENS: "tokens",
    Metric.TURNS: "turns",
}
ENVIRONMENT, GUARD, SALT = "internal", "repeated_tool_failure", "00" * 16 + ".0"
PAIR = (Cohort.ENFORCED, Cohort.CONTROL)
ENFORCE_MARGINS = {
    Metric.COMPLETION: 0.01,
    Metric.DISRUPTION: 0.005,
    Metric.TOKENS: 1.10,
    Metric.TURNS: 1.10,
}
POLICY = dataclasses.replace(
    shipped_policy(),
    version="test",
    margins={
        Gate.WARN: {Metric.CANCELLATION: 0.005, Metric.DISRUPTION: 0.005},
        Gate.ENFORCE: ENFORCE_MARGINS,
    },
)
# For tests about the test itself: nothing is too little data.
NO_MINIMUM = dataclasses.replace(POLICY, minimum_data=MinimumData(1, 1.0, 1.0, 0.0))


def reference_totals(dataset: str) -> pd.DataFrame:
    """Return a reference dataset as owner totals of `enforced` and `control`."""
    table = pd.read_csv(REFERENCES / f"{dataset}.csv")
    return pd.DataFrame(
        {
            "owner": table["owner"],
            "cohort": table["arm"].map({"enforce": "enforced", "warn": "control"}),
            "started": table["prompts"],
            "cancelled": 0,
            "completed": table["completions"],
            "disrupted": table["disconnects"],
            "tokens": table["tokens"],
            "turns": table["turns"],
        }
    )


def reference_values(dataset: str):
    """Return the figures that independent peers computed for a reference dataset."""
    return json.loads((REFERENCES / f"{dataset}.json").read_text())


def compared(totals: pd.DataFrame, metric: Metric, pair: tuple[Cohort, Cohort] = PAIR) -> Outcomes:
    """Return one metric's outcomes of unchecked totals."""
    return outcomes_of(checked_totals(totals), metric, pair)


def simulated_totals(*, treated: int, control: int, seed: int = 7, harm: float = 0.0):
    """Return owners of even size, 94 % of whose prompts complete; `harm` lowers the treated's.

    They are in the order of the draw, so that it treats the first of them.
    """
    source = np.random.default_rng(seed)
    owners = treated + control
    is_treated = np.arange(owners) < treated
    names = [f"o{place:05d}" for place in range(owners)]
    started = source.integers(40, 80, owners)
    cancelled = source.binomial(started, 0.03)
    completed = source.binomial(started - cancelled, np.where(is_treated, 0.94 - harm, 0.94))
    return pd.DataFrame(
        {
            "owner": draw(ENVIRONMENT, GUARD, SALT, names, share_bps=0).pseudonyms,
            "cohort": np.where(is_treated, "enforced", "control"),
            "started": started,
            "cancelled": cancelled,
            "completed": completed,
            "disrupted": source.binomial(started, 0.01),
            "tokens": started * source.integers(9_000, 11_000, owners),
            "turns": started * 6 + source.integers(0, 60, owners),
        }
    )


def over_days(totals: pd.DataFrame, number: int) -> pd.DataFrame:
    """Give every owner's counts once on each of so many days from 2026-11-20."""
    first = dt.date(2026, 11, 20)
    return pd.concat(
        [totals.assign(day=first + dt.timedelta(days=place)) for place in range(number)],
        ignore_index=True,
    )


def days(complete: int, *, incomplete: int = 0) -> tuple[WaveDay, ...]:
    """Return a wave's days: the incomplete ones first."""
    first = dt.date(2026, 11, 20)
    return tuple(
        WaveDay(
            first + dt.timedelta(days=place),
            is_complete=place >= incomplete,
            reason="intake was out for 12 min" if place < incomplete else None,
        )
        for place in range(complete + incomplete)
    )


def draw_inputs(owners: pd.DataFrame, pair: tuple[Cohort, Cohort]) -> DrawInputs:
    """Return the inputs of a draw of the pair's owners that treats as many as are treated.

    The names of simulated owners make it treat exactly the owners that are treated.
    """
    names = owners.loc[owners["cohort"].isin([cohort.value for cohort in pair]), "owner"]
    treated = int((owners["cohort"] == pair[0].value).sum())
    share_bps = -(-treated * BPS // len(names)) if len(names) else BPS
    return DrawInputs(ALGORITHM, SALT, share_bps, tuple(dict.fromkeys(names)))


def consistent_stops(owners: pd.DataFrame) -> pd.DataFrame | None:
    """Return guard totals with as many stops as would-be stops; None without plain counts."""
    started = pd.to_numeric(owners["started"], errors="coerce")
    if owners["owner"].duplicated().any() or not (started >= 0).all() or started.max() > 10**9:
        return None
    plain = owners.assign(started=started).sort_values("owner")
    stops = np.random.default_rng(5).binomial(plain["started"].to_numpy(dtype=np.int64), 0.004)
    return pd.DataFrame(
        {
            "owner": plain["owner"],
            "would_stopped": stops,
            "stopped": stops,
            "calls_after_would_stop": 3 * stops,
            "unreliable": 0,
            "off_pin": 0,
        }
    )


def wave(owners: pd.DataFrame, **changes: object) -> WaveEvidence:
    """Return an enforce wave with everything in order, but for `changes`."""
    pair = (
        Cohort(str(changes.get("treated", PAIR[0]))),
        Cohort(str(changes.get("reference", PAIR[1]))),
    )
    counted = owners["cohort"].value_counts()
    evidence = WaveEvidence(
        environment=ENVIRONMENT,
        guard=GUARD,
        gate=Gate.ENFORCE,
        wave=3,
        treated=PAIR[0],
        reference=PAIR[1],
        owners=owners,
        rostered={cohort: int(counted.get(cohort.value, 0)) for cohort in pair},
        days=days(7),
        declared_days=7,
        coverage=Share(9_990, 10_000),
        contract=Share(1_000, 1_000),
        off_pin=dict.fromkeys(PAIR, Share(0, 10_000)),
        violations={},
        lost=4,
        draw=draw_inputs(owners, pair) if pair[0] is not pair[1] else None,
        guard_totals=consistent_stops(owners),
    )
    changes = {"off_pin": dict.fromkeys(pair, Share(0, 10_000)), **changes}
    return dataclasses.replace(evidence, **changes)  # type: ignore[arg-type]  # by field name
