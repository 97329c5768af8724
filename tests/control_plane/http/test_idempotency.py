import threading

import pytest

from guardwave.reducer.vocabulary import Role
from tests.control_plane.http.conftest import PLACE, assert_problem
from tests.support.web_workers import PATIENCE_S


def ask(client, rollout, key, body=None):
    path = f"{rollout}/gate-evaluations"
    return client.post(path, {"gate": "shadow"} if body is None else body, Idempotency_Key=key)


def test_the_same_key_and_payload_get_the_first_answer_again(operator, rollout):
    first, second = ask(operator, rollout, "k1"), ask(operator, rollout, "k1")
    assert second.data == first.data
    assert second.status_code == first.status_code
    assert second.headers["Location"] == first.headers["Location"]
    assert "Idempotency-Replayed" not in first.headers
    assert second.headers["Idempotency-Replayed"] == "true"
    assert len(operator.get(f"{rollout}/gate-evaluations").get_json()["items"]) == 1


def test_the_drafts_quotes_around_a_key_change_nothing(operator, rollout):
    ask(operator, rollout, '"k1"')
    assert "Idempotency-Replayed" in ask(operator, rollout, "k1").headers


def test_the_same_key_with_another_payload_is_refused(operator, rollout):
    ask(operator, rollout, "k1")
    assert_problem(ask(operator, rollout, "k1", {"gate": "warn"}), 422, "idempotency-conflict")


def test_another_credential_or_path_has_keys_of_its_own(as_role, operator, rollout):
    ask(operator, rollout, "k1")
    other = ask(as_role(Role.OPERATOR), rollout, "k1")
    assert other.get_json()["id"] == 2
    owners = [{"owner": "a", "ownership": "known", "trusted": True}]
    stated = operator.post(f"{PLACE}/owners", {"owners": owners}, Idempotency_Key="k1")
    assert "Idempotency-Replayed" not in stated.headers


@pytest.mark.parametrize("key", ["", '""', "a b", "x" * 256, "ü"])
def test_what_is_no_key_is_refused(operator, rollout, key):
    document = assert_problem(ask(operator, rollout, key), 400, "invalid-field")
    assert document["errors"][0]["pointer"] == "/Idempotency-Key"


def test_a_key_whose_first_request_still_runs_is_asked_to_wait(
    context, operator, rollout, monkeypatch
):
    entered, leave = threading.Event(), threading.Event()
    answers = []
    true_put = type(context.jobs).put

    def slow_put(self, environment, job):
        entered.set()
        assert leave.wait(PATIENCE_S)
        true_put(self, environment, job)

    monkeypatch.setattr(type(context.jobs), "put", slow_put)
    first = threading.Thread(target=lambda: answers.append(ask(operator, rollout, "k1")))
    first.start()
    assert entered.wait(PATIENCE_S)
    second = ask(operator, rollout, "k1")
    leave.set()
    first.join(PATIENCE_S)
    assert_problem(second, 409, "idempotency-in-progress")
    assert second.headers["Retry-After"] == "1"
    assert answers[0].status_code == 202


def test_a_refused_request_leaves_its_key_free(operator, rollout):
    assert_problem(ask(operator, rollout, "k1", {"gate": "warn"}), 422, "rule-violated")
    assert ask(operator, rollout, "k1").status_code == 202
