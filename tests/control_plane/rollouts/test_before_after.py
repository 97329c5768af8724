"""Before-after promotions: without a holdback, the reason has to name the comparison."""

from dataclasses import replace
from hashlib import sha256

import orjson
import pytest

from guardwave.control_plane.commands.promotions import request_promotion
from guardwave.control_plane.core.errors import RuleViolated
from guardwave.control_plane.core.state import Evaluation, PromotionStatus
from guardwave.control_plane.rollouts.promotion_rules import PromotionRequest
from guardwave.reducer.vocabulary import Mode
from tests.support.lives import Life
from tests.support.worlds import ENVIRONMENT, GUARD, OPERATOR, WHY

SAID = "We trust this before/after comparison: no release, no holiday in both weeks."


@pytest.fixture
def life(store):
    """Three days of shadow, under a policy that holds nobody back."""
    found = Life.begin(store)
    policies = found.context.policies
    base = replace(policies.base, holdback_bps=0)
    found.context = replace(found.context, policies=replace(policies, base=base))
    found.live(3)
    found.promote(Mode.WARN)
    return found


def within(life: Life, comparison: str) -> Evaluation:
    content = {"policy_hash": life.context.policies.hash, "comparison": comparison}
    result = orjson.dumps(content).decode()
    return life.within(result=result, digest=sha256(result.encode()).hexdigest())


def promote(life: Life, evaluation: Evaluation, reason: str):
    assert evaluation.digest is not None
    return request_promotion(
        *(life.context, ENVIRONMENT, GUARD),
        request=PromotionRequest(evaluation.id, evaluation.digest, Mode.ENFORCE),
        actor=OPERATOR,
        reason=reason,
    )


def test_a_policy_without_a_holdback_warns_everybody(life):
    assert (life.wave.roster_size, life.wave.treated) == (24, 24)


def test_a_reason_that_does_not_say_so_is_refused(life):
    with pytest.raises(RuleViolated, match='with the words "before/after"') as refusal:
        promote(life, within(life, "before_after"), WHY)
    assert "/reason" in str(refusal.value.extras["errors"])


def test_a_reason_that_says_so_promotes(life):
    asked = promote(life, within(life, "before_after"), SAID)
    life.work()
    done = life.promotion(asked.id)
    assert (done.status, done.reason) == (PromotionStatus.DONE, SAID)


def test_a_concurrent_comparison_needs_no_such_words(life):
    assert promote(life, within(life, "concurrent"), WHY).status is PromotionStatus.PENDING
