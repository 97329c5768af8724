"""What prompts did not tell: with too much of it a metric is no data.

A host may end a prompt without its tokens, its turns or its duration, or never end it. None of it
is in any sum, so the cohort that leaves more of it out looks cheaper or faster than it is, whatever
it did. Every fleet loses some prompts: of those without an end only what one cohort has more than
the other counts.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import pandas as pd

from analysis.cells import OWNER
from analysis.evidence import Share
from analysis.frames import COHORT
from analysis.histograms import Counts, Durations, ExplicitHistograms
from analysis.owner_days import share_of
from analysis.sentences import listed, share
from reducer.vocabulary import Cohort, Metric

# The contract check asks for 99 % of a day's records (domain rules, section 5): this is the rest.
MOST_UNTOLD = Fraction(1, 100)
ENDED, STARTED = "ended", "started"
COLUMNS: Mapping[Metric, str] = {Metric.TOKENS: "tokens_untold", Metric.TURNS: "turns_untold"}

_LEFT_OUT: Mapping[Metric, str] = {
    Metric.TOKENS: "their tokens, input or output",
    Metric.TURNS: "their turns",
    Metric.LATENCY_P95: "their duration",
}

Untold: TypeAlias = Mapping[Metric, Mapping[Cohort, Share]]


def untold_of(
    owner_days: pd.DataFrame, durations: Durations | None, cohorts: tuple[Cohort, Cohort]
) -> Untold:
    """Return, by metric and cohort, the prompts that did not tell it: see `beyond_the_other`.

    `owner_days` are those of the days used, and `durations` what they told of time. A metric is
    lacking where nobody knows: without its column in `COLUMNS`, or without durations. Prompts are
    those that `ended` counts, or without that column those that started.

    Raises:
        ValueError: naming column, row and value where more are untold than ended.
    """
    rows = {cohort: owner_days[owner_days[COHORT] == cohort.value] for cohort in cohorts}
    by_cohort = {cohort: shares_of(own, durations) for cohort, own in rows.items()}
    beyond = beyond_the_other({cohort: _unended(own) for cohort, own in rows.items()})
    metrics = dict.fromkeys(metric for own in by_cohort.values() for metric in own)
    return {
        metric: {
            cohort: Share(own[metric].part + beyond[cohort], own[metric].whole + beyond[cohort])
            for cohort, own in by_cohort.items()
        }
        for metric in metrics
    }


def beyond_the_other(unended: Mapping[Cohort, Share]) -> Mapping[Cohort, int]:
    """Return how many prompts of each cohort have no end, beyond the other cohort's share.

    `unended` are the prompts without an end of all that started. What both cohorts lose alike
    leaves their ratio as it is.
    """
    shares = {
        cohort: Fraction(own.part, own.whole) if own.whole else Fraction(0)
        for cohort, own in unended.items()
    }
    least = min(shares.values(), default=Fraction(0))
    return {cohort: max(0, int(own.part - least * own.whole)) for cohort, own in unended.items()}


def shares_of(owner_days: pd.DataFrame, durations: Durations | None) -> Mapping[Metric, Share]:
    """Return the ended prompts that did not tell a metric, whatever cohort their owners are in.

    Raises:
        ValueError: as `untold_of`.
    """
    whole = ENDED if ENDED in owner_days.columns else STARTED
    found = {metric: share_of(owner_days, column, whole) for metric, column in COLUMNS.items()}
    if durations is not None:
        found[Metric.LATENCY_P95] = _untimed(owner_days, durations, whole)
    return {metric: own for metric, own in found.items() if own is not None}


def why_untold(untold: Untold, names: Mapping[Cohort, str] | None = None) -> Mapping[Metric, str]:
    """Say of each metric that is no data which cohorts left it out; `names` are theirs in words."""
    found: dict[Metric, str] = {}
    for metric, by_cohort in untold.items():
        told = [
            _told(own, f"of {(names or {}).get(cohort, cohort)}")
            for cohort, own in by_cohort.items()
            if is_too_much(own)
        ]
        if told:
            found[metric] = f"{listed(told)} {_left_out(metric)}"
    return found


def why_untold_before(shares: Mapping[Metric, Share]) -> Mapping[Metric, str]:
    """Say of each metric that the days before the wave cannot tell how much of it was left out."""
    return {
        metric: f"{_told(own, 'before the wave')} {_left_out(metric)}"
        for metric, own in shares.items()
        if is_too_much(own)
    }


def is_too_much(own: Share) -> bool:
    """Whether so much is untold that the rest says nothing of the whole."""
    return own.part > MOST_UNTOLD * own.whole


def _unended(owner_days: pd.DataFrame) -> Share:
    """Return the prompts without an end; none where the frame does not tell both."""
    if not {STARTED, ENDED} <= {*owner_days.columns}:
        return Share(0, 0)
    started = int(owner_days[STARTED].sum())
    return Share(max(0, started - int(owner_days[ENDED].sum())), started)


def _untimed(owner_days: pd.DataFrame, durations: Durations, whole: str) -> Share:
    """Compare by owner: what one counts too often makes up for nothing of another."""
    timed = pd.Series(_timed(durations), index=list(durations.owners), dtype=np.float64)
    prompts = owner_days.groupby(OWNER)[whole].sum()
    lacking = prompts - timed.reindex(prompts.index, fill_value=0.0)
    return Share(int(lacking.clip(lower=0.0).sum()), int(prompts.sum()))


def _timed(durations: Durations) -> Counts:
    if isinstance(durations, ExplicitHistograms):
        return np.asarray(durations.counts.sum(axis=1), dtype=np.int64)
    return durations.totals


def _told(own: Share, whose: str) -> str:
    return f"{own.part:,} of {own.whole:,} prompts {whose} ({share(own.part, own.whole)})"


def _left_out(metric: Metric) -> str:
    return f"left out {_LEFT_OUT[metric]}; at most {100 * float(MOST_UNTOLD):g} % may"
