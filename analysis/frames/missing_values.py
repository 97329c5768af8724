"""Missing values: a metric is `no_data` when more than 1 % of a cohort's prompts lack it.

A host may end a prompt without its tokens, its turns or its duration, or never end it. Such a
prompt is in no sum, so a cohort that leaves more of them out looks cheaper or faster than it is.
Every fleet loses some prompts: of those without an end only the excess of one cohort over the other
counts.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import pandas as pd

from guardwave.analysis.frames.column_checks import OWNER, Counts
from guardwave.analysis.frames.evidence import Share
from guardwave.analysis.frames.histograms import Durations, ExplicitHistograms
from guardwave.analysis.frames.owner_days import share_of
from guardwave.analysis.frames.owner_totals import COHORT
from guardwave.analysis.sentences import listed, share
from guardwave.reducer.vocabulary import Cohort, Metric

# The rest of the 99 % of a day's records that the contract check asks for (domain, section 5).
MOST_MISSING = Fraction(1, 100)
ENDED, STARTED = "ended", "started"
MISSING_COLUMNS: Mapping[Metric, str] = {
    Metric.TOKENS: "tokens_untold",
    Metric.TURNS: "turns_untold",
}

_LEFT_OUT: Mapping[Metric, str] = {
    Metric.TOKENS: "their tokens, input or output",
    Metric.TURNS: "their turns",
    Metric.LATENCY_P95: "their duration",
}

MissingValues: TypeAlias = Mapping[Metric, Mapping[Cohort, Share]]


def missing_values_of(
    owner_days: pd.DataFrame, durations: Durations | None, cohorts: tuple[Cohort, Cohort]
) -> MissingValues:
    """Return, by metric and cohort, the prompts that did not report it: see `excess_unended`.

    `owner_days` and `durations` are those of the days used. A metric is left out where nobody
    knows: without its column in `MISSING_COLUMNS`, or without durations. Prompts are those that
    `ended` counts, or without that column those that started.

    Raises:
        ValueError: naming column, row and value where more values are missing than prompts ended.
    """
    rows = {cohort: owner_days[owner_days[COHORT] == cohort.value] for cohort in cohorts}
    by_cohort = {cohort: missing_shares(days, durations) for cohort, days in rows.items()}
    excess = excess_unended({cohort: _unended(days) for cohort, days in rows.items()})
    metrics = dict.fromkeys(metric for shares in by_cohort.values() for metric in shares)
    return {
        metric: {
            cohort: Share(
                shares[metric].part + excess[cohort], shares[metric].whole + excess[cohort]
            )
            for cohort, shares in by_cohort.items()
        }
        for metric in metrics
    }


def excess_unended(unended: Mapping[Cohort, Share]) -> Mapping[Cohort, int]:
    """Return how many prompts of each cohort have no end, beyond the other cohort's share.

    `unended` are the prompts without an end of all that started. What both cohorts lose in the same
    proportion leaves their ratio as it is.
    """
    parts = {
        cohort: Fraction(prompts.part, prompts.whole) if prompts.whole else Fraction(0)
        for cohort, prompts in unended.items()
    }
    least = min(parts.values(), default=Fraction(0))
    return {
        cohort: max(0, int(prompts.part - least * prompts.whole))
        for cohort, prompts in unended.items()
    }


def missing_shares(owner_days: pd.DataFrame, durations: Durations | None) -> Mapping[Metric, Share]:
    """Return, by metric, the ended prompts that did not report it, of all owners together.

    Raises:
        ValueError: as `missing_values_of`.
    """
    whole = ENDED if ENDED in owner_days.columns else STARTED
    shares = {
        metric: share_of(owner_days, column, whole) for metric, column in MISSING_COLUMNS.items()
    }
    if durations is not None:
        shares[Metric.LATENCY_P95] = _untimed(owner_days, durations, whole)
    return {metric: missing for metric, missing in shares.items() if missing is not None}


def explain_missing(
    missing: MissingValues, names: Mapping[Cohort, str] | None = None
) -> Mapping[Metric, str]:
    """Return, for each metric that is no data, which cohorts left it out; `names` rename them."""
    reasons: dict[Metric, str] = {}
    for metric, by_cohort in missing.items():
        parts = [
            _prompts(prompts, f"of {(names or {}).get(cohort, cohort)}")
            for cohort, prompts in by_cohort.items()
            if is_too_much(prompts)
        ]
        if parts:
            reasons[metric] = f"{listed(parts)} {_left_out(metric)}"
    return reasons


def explain_missing_before(shares: Mapping[Metric, Share]) -> Mapping[Metric, str]:
    """Return, for each metric that too many prompts before the wave left out, how many did."""
    return {
        metric: f"{_prompts(prompts, 'before the wave')} {_left_out(metric)}"
        for metric, prompts in shares.items()
        if is_too_much(prompts)
    }


def is_too_much(missing: Share) -> bool:
    """Whether so many values are missing that the rest does not stand for the whole."""
    return missing.part > MOST_MISSING * missing.whole


def _unended(owner_days: pd.DataFrame) -> Share:
    """Return the prompts without an end; none where the frame does not count both."""
    if not {STARTED, ENDED} <= {*owner_days.columns}:
        return Share(0, 0)
    started = int(owner_days[STARTED].sum())
    return Share(max(0, started - int(owner_days[ENDED].sum())), started)


def _untimed(owner_days: pd.DataFrame, durations: Durations, whole: str) -> Share:
    """Count by owner: a surplus of one owner's durations makes up for nothing of another's."""
    timed = pd.Series(_timed(durations), index=list(durations.owners), dtype=np.float64)
    prompts = owner_days.groupby(OWNER)[whole].sum()
    lack = prompts - timed.reindex(prompts.index, fill_value=0.0)
    return Share(int(lack.clip(lower=0.0).sum()), int(prompts.sum()))


def _timed(durations: Durations) -> Counts:
    if isinstance(durations, ExplicitHistograms):
        return np.asarray(durations.counts.sum(axis=1), dtype=np.int64)
    return durations.totals


def _prompts(prompts: Share, origin: str) -> str:
    part = share(prompts.part, prompts.whole)
    return f"{prompts.part:,} of {prompts.whole:,} prompts {origin} ({part})"


def _left_out(metric: Metric) -> str:
    return f"left out {_LEFT_OUT[metric]}; at most {100 * float(MOST_MISSING):g} % may"
