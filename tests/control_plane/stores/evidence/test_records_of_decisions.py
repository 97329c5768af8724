from dataclasses import replace
from datetime import UTC, datetime

import pytest

from guardwave.control_plane.core.state import (
    SYSTEM,
    CohortSums,
    Environment,
    Evaluation,
    EvaluationStatus,
    Latch,
    Promotion,
    PromotionStatus,
    Rollback,
    Violation,
)
from guardwave.control_plane.stores.codec import decode, encode
from guardwave.control_plane.stores.gates import GateStore
from guardwave.control_plane.stores.incidents import IncidentStore, put_rollback, put_violation
from guardwave.reducer.vocabulary import Cohort, Gate, Invariant, Mode

HERE, GUARD = "internal", "identical_call"
AT = datetime(2026, 11, 29, 12, tzinfo=UTC)
PROMOTION = Promotion(0, GUARD, 3, "digest", Mode.WARN, 8000, "it is proven", SYSTEM, AT)
VIOLATION = Violation(
    1, "record-1", Invariant.CONTRACT_VIOLATION, GUARD, Mode.ENFORCE, generation=4, at=AT
)
LATCH = Latch(rollback=1, reason="why", at=AT, first_violation=2, newest_violation=3)


@pytest.fixture
def gates(any_store):
    return GateStore(any_store)


def test_an_evaluation_is_pending_until_it_is_done(gates):
    number = gates.next_evaluation(HERE, GUARD)
    asked = Evaluation(number, GUARD, Gate.WARN, AT, SYSTEM)
    gates.request_evaluation(HERE, asked)
    assert gates.evaluation(HERE, GUARD, number) == asked
    assert gates.newest_done(HERE, GUARD) is None
    assert gates.evaluation(HERE, GUARD, number + 1) is None


def test_evaluations_are_listed_newest_first_and_by_page(gates):
    for _ in range(5):
        number = gates.next_evaluation(HERE, GUARD)
        gates.request_evaluation(HERE, Evaluation(number, GUARD, Gate.WARN, AT, SYSTEM))
    newest = gates.evaluations(HERE, GUARD, at_most=2)
    assert [evaluation.id for evaluation in newest] == [5, 4]
    assert [evaluation.id for evaluation in gates.evaluations(HERE, GUARD, before=4)] == [3, 2, 1]


def test_promotions_are_numbered_and_listed_newest_first(gates):
    for status in (PromotionStatus.REFUSED, PromotionStatus.PENDING):
        number = gates.next_promotion(HERE, GUARD)
        gates.save_promotion(HERE, replace(PROMOTION, id=number, status=status))
    assert [promotion.id for promotion in gates.promotions(HERE, GUARD)] == [2, 1]
    refused = gates.promotion(HERE, GUARD, 1)
    assert refused is not None
    assert refused.status is PromotionStatus.REFUSED
    assert gates.promotion(HERE, GUARD, 3) is None


def test_violations_are_known_by_their_records_identity(any_store):
    incidents = IncidentStore(any_store)
    for violation in (replace(VIOLATION, id=2, identity="record-2"), VIOLATION):
        write = put_violation(HERE, violation)
        any_store.hset(write.key, write.field, write.value)
    assert incidents.known(HERE, ["record-1", "record-3"]) == {"record-1"}
    assert incidents.known(HERE, []) == frozenset()
    assert [violation.id for violation in incidents.violations(HERE)] == [1, 2]


def test_rollbacks_are_listed_newest_first(any_store):
    incidents = IncidentStore(any_store)
    for number in (1, 2, 10):
        rollback = Rollback(number, AT, SYSTEM, "a drill", changed=True, lowerings=())
        write = put_rollback(HERE, rollback)
        any_store.hset(write.key, write.field, write.value)
    assert [rollback.id for rollback in incidents.rollbacks(HERE)] == [10, 2, 1]
    assert incidents.rollback(HERE, 3) is None


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(VIOLATION, id="a violation"),
        pytest.param(PROMOTION, id="a promotion"),
        pytest.param(
            Environment(HERE, "ab", "cd", guards=(GUARD,), latch=LATCH),
            id="an environment with a latch",
        ),
        pytest.param(
            Evaluation(
                *(1, GUARD, Gate.ENFORCE, AT, SYSTEM, EvaluationStatus.DONE),
                days_used=(AT.date(),),
                day_revisions=(2,),
                cohort_sums=(CohortSums(Cohort.ENFORCED, started=5, completed=4),),
            ),
            id="an evaluation",
        ),
    ],
)
def test_what_is_stored_comes_back_equal(value):
    assert decode(type(value), encode(value)) == value


@pytest.mark.parametrize(
    "stored",
    [
        pytest.param(b"not json", id="no json"),
        pytest.param(b"{}", id="fields are missing"),
        pytest.param(encode(VIOLATION).replace(b"enforce", b"destroy"), id="an unknown mode"),
    ],
)
def test_a_damaged_value_is_rejected(stored):
    with pytest.raises(ValueError, match="Violation"):
        decode(Violation, stored)
