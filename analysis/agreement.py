"""Owner re-randomisation for what is no metric of a gate: alike or not, and apart by how much."""

from dataclasses import replace
from typing import NamedTuple

from analysis.frames import Outcomes
from analysis.rerandomisation import DrawKey, Draws, Rerandomisation
from reducer.rollout.policy import GatePolicy
from reducer.vocabulary import Metric


class Agreement(NamedTuple):
    """Of a difference of rates and a band around zero: the least alpha that shows either."""

    p_inside: float
    p_outside: float


def two_sided_p(
    own: Outcomes,
    metric: Metric,
    key: DrawKey,
    policy: GatePolicy,
    *,
    draws: Draws | None = None,
) -> float:
    """Return p of "the cohorts are alike"; metrics that share `draws` share the random sets.

    Nothing is injected at a margin of zero, so any metric of the right kind stands for its kind.
    Both cohorts need an owner, and a ratio needs harm in both.
    """
    return two_sided_p_of(Rerandomisation.of(own, metric, key, draws=draws), policy)


def two_sided_p_of(trial: Rerandomisation, policy: GatePolicy) -> float:
    """Return p of "the cohorts are alike" from a test that is already prepared."""
    test = trial.decide(0.0, policy)
    return min(1.0, 2.0 * min(test.p_harm, test.p_safe))


def agreement(own: Outcomes, band: float, key: DrawKey, policy: GatePolicy) -> Agreement:
    """Test whether two rates are apart by less than `band`, on either side.

    Two one-sided tests: each puts the band on the cohort that would be lower, so that no count
    falls below zero. Inside needs both, outside needs one.
    """
    swapped = own._replace(is_treated=~own.is_treated)
    above, below = (
        # A rate of prompts is a rate of prompts: this one lends its kind and its uniforms.
        Rerandomisation.of(each, Metric.DISRUPTION, key).decide(band, policy)
        for each in (own, swapped)
    )
    return Agreement(max(above.p_harm, below.p_harm), min(above.p_safe, below.p_safe))


def strict(policy: GatePolicy, alpha: float) -> GatePolicy:
    """Return the policy at another alpha: p values near it are refined until they can reach it."""
    return replace(policy, alpha=alpha / 2.0)
