import pytest

from guardwave.control_plane.commands.promotions import carry_out
from guardwave.reducer.vocabulary import Role
from tests.control_plane.http.conftest import ENVIRONMENT, GUARD, REASON, assert_problem


def ask(client, rollout, *, key="k1", gate="shadow", **headers):
    path = f"{rollout}/gate-evaluations"
    return client.post(path, {"gate": gate}, Idempotency_Key=key, **headers)


def promote(client, rollout, gate, *, key="p1", query="", **body):
    sent = {
        "gate_evaluation": gate.id,
        "digest": gate.digest,
        "to": "warn",
        "reason": REASON,
        **body,
    }
    return client.post(f"{rollout}/promotions{query}", sent, Idempotency_Key=key)


def test_an_evaluation_is_asked_for_and_read_where_location_says(operator, rollout):
    asked = ask(operator, rollout)
    assert asked.status_code == 202
    found = operator.get(asked.headers["Location"]).get_json()
    assert (found["status"], found["verdict"], found["result"]) == ("pending", None, None)
    assert [condition["type"] for condition in found["conditions"]] == ["done", "within"]


def test_a_finished_evaluation_has_its_whole_result(context, operator, rollout, passed_gate):
    done = passed_gate()
    found = operator.get(f"{rollout}/gate-evaluations/{done.id}").get_json()
    assert (found["verdict"], found["digest"], found["result"]) == (
        "within",
        "d" * 64,
        {"schema": 1, "policy_hash": context.policies.hash},
    )
    assert all(condition["status"] == "true" for condition in found["conditions"])


def test_evaluations_are_listed_newest_first_without_results(operator, rollout):
    for key in ("a", "b", "c"):
        ask(operator, rollout, key=key)
    first = operator.get(f"{rollout}/gate-evaluations?limit=2").get_json()
    assert [evaluation["id"] for evaluation in first["items"]] == [3, 2]
    assert "result" not in first["items"][0]
    second = operator.get(first["next"]).get_json()
    assert ([evaluation["id"] for evaluation in second["items"]], second["next"]) == ([1], None)


def test_the_gate_of_another_phase_cannot_be_evaluated(operator, rollout):
    assert_problem(ask(operator, rollout, gate="enforce"), 422, "rule-violated")


@pytest.mark.parametrize("gate", ["contract", "", None, 1])
def test_an_unknown_gate_is_refused(operator, rollout, gate):
    assert_problem(ask(operator, rollout, gate=gate), 400, "invalid-field")


def test_an_evaluation_honours_if_match(operator, rollout):
    assert_problem(ask(operator, rollout, If_Match='"stale"'), 412, "precondition-failed")
    etag = operator.get(rollout).headers["ETag"]
    assert ask(operator, rollout, If_Match=etag).status_code == 202


def test_a_promotion_is_pending_until_the_worker_decides(context, operator, rollout, passed_gate):
    asked = promote(operator, rollout, passed_gate())
    assert asked.status_code == 202
    place = asked.headers["Location"]
    assert operator.get(place).get_json()["status"] == "pending"
    carry_out(context, ENVIRONMENT, GUARD, asked.get_json()["id"])
    found = operator.get(place).get_json()
    assert (found["status"], found["wave"], found["refusal"]) == ("done", 2, None)


def test_a_promotion_overtaken_by_a_change_is_refused_with_the_reason(
    context, operator, rollout, passed_gate
):
    asked = promote(operator, rollout, passed_gate()).get_json()
    operator.put(f"{rollout}/cohorts/everyone", {"mode": "off", "reason": REASON})
    carry_out(context, ENVIRONMENT, GUARD, asked["id"])
    found = operator.get(asked["links"]["self"]).get_json()
    assert found["status"] == "refused"
    assert "evaluate again" in found["refusal"]
    assert found["conditions"][0]["message"] == found["refusal"]


def test_a_tried_out_promotion_leaves_nothing(operator, rollout, passed_gate):
    tried = promote(operator, rollout, passed_gate(), query="?dry_run=true")
    assert (tried.status_code, tried.get_json()["id"]) == (200, None)
    assert operator.get(f"{rollout}/promotions").get_json() == {"items": [], "next": None}


def test_an_old_evaluation_is_refused_with_a_link_to_evaluate_again(
    operator, rollout, wall, passed_gate
):
    gate = passed_gate()
    wall.pass_by(hours=25)
    document = assert_problem(promote(operator, rollout, gate), 409, "evaluation-stale")
    assert document["links"]["evaluate"] == f"{rollout}/gate-evaluations"


def test_an_evaluation_of_another_generation_is_refused(operator, rollout, passed_gate):
    gate = passed_gate()
    etag = operator.get(rollout).headers["ETag"]
    operator.post(f"{rollout}/waves", {"reason": REASON}, Idempotency_Key="w", If_Match=etag)
    assert_problem(promote(operator, rollout, gate), 409, "evaluation-stale")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        pytest.param({"gate_evaluation": 99}, 404, "not-found", id="an evaluation nobody made"),
        pytest.param({"digest": "e" * 64}, 422, "rule-violated", id="another digest"),
        pytest.param({"to": "enforce"}, 409, "step-skipped", id="two steps at once"),
        pytest.param({"to": "shadow"}, 409, "step-skipped", id="no step up"),
        pytest.param({"share_bps": 0}, 400, "invalid-field", id="a share of nothing"),
        pytest.param({"gate_evaluation": "1"}, 400, "invalid-field", id="a text for a number"),
        pytest.param({"gate_evaluation": 2**53}, 400, "invalid-field", id="a number too large"),
        pytest.param({"reason": "because"}, 400, "invalid-field", id="a short reason"),
    ],
)
def test_a_promotion_that_cannot_be_is_refused(operator, rollout, passed_gate, body, status, code):
    assert_problem(promote(operator, rollout, passed_gate(), **body), status, code)


def test_promotions_are_listed_newest_first(operator, rollout, passed_gate):
    gate = passed_gate()
    for key in ("a", "b", "c"):
        promote(operator, rollout, gate, key=key)
    first = operator.get(f"{rollout}/promotions?limit=2").get_json()
    assert [promotion["id"] for promotion in first["items"]] == [3, 2]
    second = operator.get(first["next"]).get_json()
    assert ([promotion["id"] for promotion in second["items"]], second["next"]) == ([1], None)


def test_a_viewer_promotes_nothing(as_role, rollout, passed_gate):
    assert_problem(promote(as_role(Role.VIEWER), rollout, passed_gate()), 403, "forbidden")
