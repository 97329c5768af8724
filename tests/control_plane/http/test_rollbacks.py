import pytest

from guardwave.control_plane.commands.promotions import carry_out
from guardwave.control_plane.commands.rollback import FoundViolation, latch
from guardwave.reducer.vocabulary import Invariant, Mode
from tests.control_plane.http.conftest import ENVIRONMENT, GUARD, PLACE, REASON, assert_problem

ROLLBACKS = f"{PLACE}/rollbacks"


@pytest.fixture
def in_warn(context, operator, rollout, passed_gate):
    gate = passed_gate()
    body = {"gate_evaluation": gate.id, "digest": gate.digest, "to": "warn", "reason": REASON}
    operator.post(f"{rollout}/promotions", body, Idempotency_Key="up")
    carry_out(context, ENVIRONMENT, GUARD, 1)
    assert operator.get(rollout).get_json()["phase"] == "warn"
    return rollout


def violate(context, identity):
    found = FoundViolation(identity, Invariant.CONTRACT_VIOLATION, GUARD, Mode.WARN, 2)
    latch(context, ENVIRONMENT, [found])


def test_a_rollback_returns_the_environment_to_shadow(operator, in_warn):
    done = operator.post(ROLLBACKS, {"reason": REASON})
    shown = done.get_json()
    assert (done.status_code, shown["changed"], shown["is_verified"]) == (201, True, True)
    assert shown["lowerings"] == [
        {"guard": GUARD, "before": "warn", "after": "shadow", "generation": 3}
    ]
    assert operator.get(in_warn).get_json()["phase"] == "shadow"
    assert operator.get(done.headers["Location"]).get_json()["reason"] == REASON


def test_a_second_rollback_answers_the_same_record_unchanged(operator, in_warn):
    first = operator.post(ROLLBACKS, {"reason": REASON}).get_json()
    second = operator.post(ROLLBACKS, {"reason": REASON})
    shown = second.get_json()
    assert (second.status_code, shown["changed"], shown["id"]) == (200, False, first["id"])


def test_a_rollback_in_shadow_that_refuses_a_promotion_is_a_change(operator, rollout, passed_gate):
    gate = passed_gate()
    body = {"gate_evaluation": gate.id, "digest": gate.digest, "to": "warn", "reason": REASON}
    pending = operator.post(f"{rollout}/promotions", body, Idempotency_Key="up")
    done = operator.post(ROLLBACKS, {"reason": REASON})
    shown = done.get_json()
    assert (done.status_code, shown["changed"], shown["lowerings"]) == (201, True, [])
    refused = operator.get(pending.headers["Location"]).get_json()
    assert (refused["status"], refused["refusal"]) == ("refused", f"rolled back: {REASON}")


@pytest.mark.parametrize("body", [{}, {"guard": GUARD}])
def test_nothing_to_do_and_no_rollback_before_it_has_no_id(operator, rollout, body):
    done = operator.post(ROLLBACKS, {"reason": REASON, **body})
    shown = done.get_json()
    assert (done.status_code, shown["id"], shown["changed"]) == (200, None, False)
    assert (shown["guards"], shown["is_verified"]) == ([GUARD], True)
    assert shown["links"] == {"environment": PLACE}
    assert operator.get(ROLLBACKS).get_json()["items"] == []


def test_only_the_answer_to_a_rollback_is_verified(operator, in_warn):
    done = operator.post(ROLLBACKS, {"reason": REASON})
    outcome = done.get_json()
    assert outcome.pop("is_verified") is True
    assert operator.get(done.headers["Location"]).get_json() == outcome
    assert operator.get(ROLLBACKS).get_json()["items"] == [outcome]


def test_a_rollback_of_one_guard_names_it(operator, in_warn):
    done = operator.post(ROLLBACKS, {"reason": REASON, "guard": GUARD})
    assert done.status_code == 201
    unknown = operator.post(ROLLBACKS, {"reason": REASON, "guard": "absent"})
    assert_problem(unknown, 404, "not-found")


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param({"headers": {"If-Match": '"stale"'}}, id="a stale If-Match"),
        pytest.param({"headers": {"Idempotency-Key": "not a key \x7f"}}, id="a bad key"),
        pytest.param({"headers": {"Accept": "text/html"}}, id="a client that wants HTML"),
        pytest.param({"content_type": "text/plain"}, id="another content type"),
        pytest.param({"content_type": None}, id="no content type"),
    ],
)
def test_no_formality_stands_in_the_way_of_a_rollback(operator, in_warn, sent):
    headers = {"Authorization": f"Bearer {operator.token}", **sent.get("headers", {})}
    response = operator.app.test_client().post(
        ROLLBACKS,
        data=b'{"reason": "%s"}' % REASON.encode(),
        content_type=sent.get("content_type", "application/json"),
        headers=headers,
    )
    assert response.status_code == 201


def test_the_same_key_never_replays_a_rollback(context, operator, in_warn, passed_gate):
    first = operator.post(ROLLBACKS, {"reason": REASON}, Idempotency_Key="same")
    gate = passed_gate()
    body = {"gate_evaluation": gate.id, "digest": gate.digest, "to": "warn", "reason": REASON}
    operator.post(f"{in_warn}/promotions", body, Idempotency_Key="up-again")
    carry_out(context, ENVIRONMENT, GUARD, 2)
    second = operator.post(ROLLBACKS, {"reason": REASON}, Idempotency_Key="same")
    assert (first.get_json()["id"], second.get_json()["id"]) == (1, 2)
    assert operator.get(in_warn).get_json()["phase"] == "shadow"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"{}", id="no reason"),
        pytest.param(b'{"reason": "oops"}', id="a short reason"),
        pytest.param(b'{"reason": "%s"}' % (b"x" * (1 << 20)), id="a megabyte of reason"),
    ],
)
def test_a_rollback_without_a_reason_is_refused_with_400(operator, in_warn, data):
    response = operator.app.test_client().post(
        ROLLBACKS, data=data, headers={"Authorization": f"Bearer {operator.token}"}
    )
    assert response.status_code == 400
    assert response.mimetype == "application/problem+json"


def test_a_latched_environment_can_still_be_rolled_back(context, operator, in_warn):
    violate(context, "r1")
    response = operator.post(ROLLBACKS, {"reason": REASON})
    assert (response.status_code, response.get_json()["changed"]) == (200, False)


def test_rollbacks_are_listed_newest_first(context, operator, in_warn):
    violate(context, "r1")
    (automatic,) = operator.get(ROLLBACKS).get_json()["items"]
    assert (automatic["is_automatic"], automatic["violation"]) == (True, 1)


def acknowledge(client, *, last_violation, etag=None, rollback=1):
    etag = client.get(PLACE).headers["ETag"] if etag is None else etag
    return client.post(
        f"{ROLLBACKS}/{rollback}/acknowledgement",
        {"reason": REASON, "last_violation": last_violation},
        **({} if etag == "none" else {"If_Match": etag}),
    )


def test_the_latch_is_released_by_who_saw_the_newest_violation(context, operator, in_warn):
    violate(context, "r1")
    violate(context, "r2")
    assert_problem(acknowledge(operator, last_violation=1), 409, "state-conflict")
    done = acknowledge(operator, last_violation=2)
    assert (done.status_code, done.get_json()["latch"]) == (200, None)
    assert done.headers["ETag"] == operator.get(PLACE).headers["ETag"]


def test_an_acknowledgement_needs_if_match(context, operator, in_warn):
    violate(context, "r1")
    document = assert_problem(
        acknowledge(operator, last_violation=1, etag="none"), 428, "precondition-required"
    )
    assert document["current_etag"] == operator.get(PLACE).headers["ETag"]
    assert operator.get(PLACE).get_json()["latch"] is not None


def test_nothing_to_acknowledge_is_a_conflict(operator, in_warn):
    operator.post(ROLLBACKS, {"reason": REASON})
    assert_problem(acknowledge(operator, last_violation=0), 409, "state-conflict")
    assert_problem(acknowledge(operator, last_violation=0, rollback=9), 404, "not-found")


def test_while_latched_no_step_up_is_taken(context, operator, in_warn):
    violate(context, "r1")
    conditions = operator.get(in_warn).get_json()["conditions"]
    assert (
        next(condition for condition in conditions if condition["type"] == "latched")["status"]
        == "true"
    )
    assert operator.get(in_warn).get_json()["next_step"]["is_allowed"] is False
