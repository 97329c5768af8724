"""Pinned versions: a gate speaks for those that ran where it looked, and alike in both cohorts."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pandas as pd

from analysis.evidence import WaveEvidence
from analysis.frames import COHORT, OWNER
from analysis.report import CheckResult
from analysis.sentences import listed, share
from reducer.vocabulary import Cohort, Verdict

_UNTOLD = "Which versions are pinned was not told, so whether each of them ran is not known."
_VERSION, _STARTED = "version", "started"


def pinned_prompts(owner_days: pd.DataFrame, pin: Sequence[str]) -> pd.DataFrame:
    """Return the started prompts of each owner (the index) on each pinned version (the columns).

    `owner_days` are those of the days used, with `owner`, `version` and `started`.
    """
    sums = owner_days.groupby([OWNER, _VERSION], sort=True)[_STARTED].sum()
    return sums.unstack(fill_value=0).reindex(columns=list(pin), fill_value=0)


def judge_pinned(
    pure: CheckResult,
    evidence: WaveEvidence,
    totals: pd.DataFrame,
    *,
    p_between: Callable[[pd.Series], float | None],
    alpha: float,
) -> CheckResult:
    """Judge whether each pinned version ran in the treated cohort, and alike in both cohorts.

    `pure` is what prompts of other versions leave, within. `p_between` is p of "the cohorts started
    these prompts (by owner) alike": below `alpha` what the guard does and what the version does is
    one difference, which the draw of the owners did not make.
    """
    if evidence.pinned is None:
        return replace(pure, sentence=f"{pure.sentence} {_UNTOLD}")
    own = evidence.pinned.reindex(totals[OWNER], fill_value=0)
    ran = _in_cohort(own, totals, evidence.treated)
    silent = [str(version) for version, prompts in ran.items() if prompts == 0]
    if len(ran) == 1 and not silent:
        return pure
    numbers = {**pure.numbers, "pinned_versions": len(ran), "pinned_without_prompts": len(silent)}
    # A version alone has nothing to be confounded with, and one that nobody ran is alike.
    for version in [name for name in own.columns if len(ran) > 1 and own[name].any()]:
        p = p_between(own[version])
        if p is not None and p < alpha:
            sides = (evidence.treated, evidence.reference)
            parts = [_part(own[version], totals, cohort) for cohort in sides]
            sentence = (
                f"Version {version} started {listed(parts)}: the cohorts differ by more than "
                f"chance (p = {p:.2g}), and what the guard does cannot be told from what the "
                "version does; start a wave that pins one of them."
            )
            return replace(
                pure,
                verdict=Verdict.INVALID,
                sentence=sentence,
                numbers={**numbers, "p_versions": p},
            )
    if silent:
        sentence = _unproven(silent, evidence.treated, is_all=len(silent) == len(ran))
        return replace(pure, verdict=Verdict.UNPROVEN, sentence=sentence, numbers=numbers)
    counts = listed([f"{prompts:,} on {version}" for version, prompts in ran.items()])
    told = f"{pure.sentence} Prompts of {evidence.treated} started: {counts}."
    return replace(pure, sentence=told, numbers=numbers)


def _unproven(silent: Sequence[str], cohort: Cohort, *, is_all: bool) -> str:
    is_one = len(silent) == 1
    named = f"Version {listed(silent)} is" if is_one else f"Versions {listed(silent)} are"
    it = "it" if is_one else "them"
    sentence = f"{named} pinned, but {cohort} started no prompt on {it} on the days used"
    if is_all:
        return f"{sentence}."
    return f"{sentence}; leave {it} out of the pin: start a wave that pins only what runs."


def _in_cohort(own: pd.DataFrame, totals: pd.DataFrame, cohort: Cohort) -> pd.Series:
    return own[(totals[COHORT] == cohort.value).to_numpy()].sum()


def _part(prompts: pd.Series, totals: pd.DataFrame, cohort: Cohort) -> str:
    is_own = (totals[COHORT] == cohort.value).to_numpy()
    part, whole = int(prompts[is_own].sum()), int(totals.loc[is_own, _STARTED].sum())
    return f"{part:,} of {whole:,} prompts ({share(part, whole)}) in {cohort}"
