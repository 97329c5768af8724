import json
from hashlib import sha256

import pytest

from guardwave.control_plane.rollouts.access import sign_in
from guardwave.reducer.vocabulary import Role
from tests.control_plane.http.conftest import PLACE, REASON, assert_problem

AUDIT = "/api/v1/audit-events"
TOKENS = "/api/v1/tokens"


def test_the_audit_names_the_token_the_reason_and_the_request(operator, rollout):
    operator.put(
        f"{rollout}/cohorts/everyone", {"mode": "off", "reason": REASON}, X_Request_Id="call-1"
    )
    entry = operator.get(AUDIT).get_json()["items"][-1]
    assert (entry["action"], entry["reason"]) == ("mode lowered", REASON)
    assert entry["request_id"] == "call-1"
    assert operator.token.split("_")[1] in entry["actor"]
    assert (entry["generation_before"], entry["generation_after"]) == (1, 2)


def test_the_audit_is_read_in_parts_and_its_hashes_chain(operator, rollout):
    for at in range(5):
        operator.put(f"{PLACE}/owners/owner-{at}", {"ownership": "known", "trusted": True})
    entries = []
    address = f"{AUDIT}?limit=3"
    while address is not None:
        page = operator.get(address).get_json()
        entries += page["items"]
        address = page["next"]
    assert [entry["sequence"] for entry in entries] == list(range(1, 8))
    previous = ""
    for entry in entries:
        assert entry["previous"] == previous
        previous = entry["hash"]


def test_the_audit_is_read_on_from_a_sequence_number_that_it_showed(operator, rollout):
    for at in range(8):
        operator.put(f"{PLACE}/owners/owner-{at}", {"ownership": "known", "trusted": True})
    for after in range(12):
        page = operator.get(f"{AUDIT}?after={after}&limit=3").get_json()
        expected = [number for number in range(1, 11) if number > after]
        assert [entry["sequence"] for entry in page["items"]] == expected[:3]
        assert (page["next"] is None) is (len(expected) <= 3)
        if page["next"] is not None:
            second = operator.get(page["next"]).get_json()["items"]
            assert [entry["sequence"] for entry in second] == expected[3:6]


def test_an_entrys_hash_can_be_computed_from_what_is_answered(operator, rollout):
    entry = operator.get(AUDIT).get_json()["items"][0]
    assert entry["at"].endswith("Z")
    claimed = entry.pop("hash")
    canonical = json.dumps(entry, sort_keys=True, separators=(",", ":"))
    assert sha256(canonical.encode()).hexdigest() == claimed


def test_an_admin_names_the_environment_whose_audit_it_reads(admin, rollout):
    assert_problem(admin.get(AUDIT), 422, "rule-violated")
    assert admin.get(f"{AUDIT}?environment=internal").status_code == 200
    assert_problem(admin.get(f"{AUDIT}?environment=absent"), 404, "not-found")
    assert_problem(admin.get(f"{AUDIT}?environment=../x"), 400, "invalid-field")
    assert_problem(admin.get(f"{AUDIT}?environment=internal&after=now"), 400, "invalid-field")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_the_audit_cannot_be_written(admin, method):
    assert_problem(admin.ask(method, AUDIT, body={}), 405, "method-not-allowed")


def test_a_token_is_shown_once_and_works_until_it_is_revoked(context, admin, rollout):
    body = {"role": "operator", "environment": "internal", "name": "deploys"}
    made = admin.post(TOKENS, body)
    shown = made.get_json()
    identity = sign_in(context, shown["token"])
    assert identity is not None
    assert (made.status_code, identity.role, identity.environment) == (
        201,
        Role.OPERATOR,
        "internal",
    )
    assert shown["token"] not in admin.get(TOKENS).text
    assert admin.get(made.headers["Location"]).get_json()["name"] == "deploys"
    revoked = admin.ask("DELETE", made.headers["Location"])
    assert revoked.get_json()["revoked"] is True
    assert sign_in(context, shown["token"]) is None
    assert admin.ask("DELETE", made.headers["Location"]).status_code == 200


def test_the_answer_with_a_token_is_not_kept_for_a_key(admin, rollout):
    response = admin.post(TOKENS, {"role": "admin"}, Idempotency_Key="k")
    assert_problem(response, 400, "bad-request")


def test_tokens_have_no_etag_to_match(admin):
    assert_problem(admin.post(TOKENS, {"role": "admin"}, If_Match='"x"'), 400, "bad-request")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        pytest.param({"role": "king"}, 400, id="an unknown role"),
        pytest.param({"role": "viewer"}, 422, id="no environment"),
        pytest.param({"role": "viewer", "environment": "absent"}, 422, id="unknown environment"),
        pytest.param({"role": "viewer", "environment": "../x"}, 400, id="an impossible name"),
        pytest.param({"role": "admin", "environment": "internal"}, 422, id="a local admin"),
        pytest.param(
            {"role": "viewer", "environment": "internal", "trusted": True}, 422, id="trust for none"
        ),
        pytest.param({"role": "admin", "name": "x\ny"}, 400, id="a line break in the name"),
        pytest.param({"role": "admin", "secret": "mine"}, 400, id="a secret of one's own"),
    ],
)
def test_a_token_that_cannot_be_is_refused(admin, rollout, body, status):
    response = admin.post(TOKENS, body)
    assert response.status_code == status
    assert response.mimetype == "application/problem+json"
    assert len(admin.get(TOKENS).get_json()["items"]) == 1


def test_tokens_are_listed_in_parts(admin, rollout):
    for _ in range(3):
        admin.post(TOKENS, {"role": "viewer", "environment": "internal"})
    first = admin.get(f"{TOKENS}?limit=3").get_json()
    second = admin.get(first["next"]).get_json()
    ids = [token["id"] for token in first["items"] + second["items"]]
    assert (len(set(ids)), second["next"]) == (4, None)
