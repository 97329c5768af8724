import logging
import re

import pytest
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]  # it ships none

from guardwave.control_plane.http.middleware.access_log import masked_path
from guardwave.control_plane.http.middleware.requests import MAX_BODY_BYTES
from guardwave.control_plane.rollouts.access import begin_session, revoke_token, sign_in
from guardwave.reducer.vocabulary import Role
from tests.control_plane.http.conftest import PLACE, REASON, ROLLOUT, Api, assert_problem


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({}, id="no token"),
        pytest.param({"Authorization": "Bearer gw_nonsense"}, id="not a token's shape"),
        pytest.param(
            {"Authorization": f"Bearer gw_{'a' * 12}_{'b' * 43}"}, id="a token nobody made"
        ),
        pytest.param({"Authorization": "Basic dXNlcjpwYXNz"}, id="another scheme"),
        pytest.param({"Authorization": "Bearer"}, id="a scheme alone"),
    ],
)
@pytest.mark.parametrize("path", ["/api/v1/environments", f"{PLACE}/rollbacks", "/api/v1/tokens"])
def test_a_caller_without_a_good_token_is_asked_to_sign_in(app, path, headers):
    response = Api(app).get(path, **headers)
    assert_problem(response, 401, "not-signed-in")
    assert response.headers["WWW-Authenticate"].startswith("Bearer")


def test_a_revoked_token_is_refused_at_once(context, viewer, rollout):
    assert viewer.get(rollout).status_code == 200
    revoke_token(context, viewer.token.split("_")[1])
    assert_problem(viewer.get(rollout), 401, "not-signed-in")


def test_the_session_cookie_of_the_pages_is_no_credential_of_the_api(app, context, admin):
    client = app.test_client()
    identity = sign_in(context, admin.token)
    assert identity is not None
    with client.session_transaction() as session:
        session["session"] = begin_session(context, identity)
    assert client.get("/api/v1/environments").status_code == 401


@pytest.mark.parametrize(
    ("role", "method", "path", "body"),
    [
        pytest.param(Role.VIEWER, "PUT", f"{ROLLOUT}/cohorts/everyone", {"mode": "off"}, id="mode"),
        pytest.param(Role.VIEWER, "POST", f"{PLACE}/rollbacks", {}, id="viewer rolls back"),
        pytest.param(Role.OPERATOR, "PUT", "/api/v1/environments/new", {}, id="environment"),
        pytest.param(Role.OPERATOR, "POST", "/api/v1/tokens", {"role": "admin"}, id="token"),
        pytest.param(Role.OPERATOR, "GET", "/api/v1/tokens", None, id="operator lists tokens"),
        pytest.param(Role.RUNTIME, "GET", ROLLOUT, None, id="runtime reads"),
        pytest.param(Role.INGEST, "GET", "/api/v1/environments", None, id="ingest reads"),
        pytest.param(Role.INGEST, "GET", "/api/v1/audit-events", None, id="ingest reads the audit"),
    ],
)
def test_a_role_does_only_what_it_is_for(as_role, rollout, role, method, path, body):
    sent = None if body is None else {"reason": REASON, **body}
    if path == "/api/v1/tokens" and sent is not None:
        del sent["reason"]
    document = assert_problem(as_role(role).ask(method, path, body=sent), 403, "forbidden")
    assert role in document["detail"]


def test_a_token_of_another_environment_learns_nothing_of_this_one(as_role, rollout):
    stranger = as_role(Role.OPERATOR, "elsewhere")
    for path in (PLACE, ROLLOUT, f"{PLACE}/guards/absent", f"{PLACE}/rollbacks/1"):
        assert_problem(stranger.get(path), 403, "forbidden")
    listed = stranger.get("/api/v1/environments").get_json()
    assert listed == {"items": [], "next": None}


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        pytest.param("/api/v1/nothing", 404, "not-found", id="unknown path"),
        pytest.param("/api/v1/environments/", 404, "not-found", id="trailing slash"),
        pytest.param("/api//v1/environments", 404, "not-found", id="two slashes"),
        pytest.param("/api/v1/environments/../x", 404, "not-found", id="a name with dots"),
        pytest.param("/api/v1/environments/%2e%2e%2fx", 404, "not-found", id="dots, escaped"),
        pytest.param("/api/v1/environments/..", 400, "invalid-field", id="two dots"),
        pytest.param("/api/v1/environments/Internal", 400, "invalid-field", id="capital letters"),
        pytest.param("/api/v1/environments/a%0ab", 400, "invalid-field", id="a line break"),
        pytest.param(f"/api/v1/environments/{'a' * 49}", 400, "invalid-field", id="too long"),
        pytest.param("/api/v1/environments/absent", 404, "not-found", id="unknown environment"),
        pytest.param(f"{PLACE}/guards/absent", 404, "not-found", id="unknown guard"),
        pytest.param(f"{PLACE}/guards/Bad-Name", 400, "invalid-field", id="a guard with dashes"),
        pytest.param(f"{ROLLOUT}/cohorts/nobody", 404, "not-found", id="unknown cohort"),
        pytest.param(f"{ROLLOUT}/waves/99", 404, "not-found", id="unknown wave"),
        pytest.param(f"{ROLLOUT}/waves/0", 400, "invalid-field", id="wave zero"),
        pytest.param(f"{ROLLOUT}/waves/-1", 404, "not-found", id="a negative wave"),
        pytest.param(f"{ROLLOUT}/waves/{'9' * 40}", 400, "invalid-field", id="a huge wave"),
        pytest.param(f"{ROLLOUT}/gate-evaluations/7", 404, "not-found", id="unknown evaluation"),
        pytest.param(f"{ROLLOUT}/promotions/7", 404, "not-found", id="unknown promotion"),
        pytest.param(f"{PLACE}/rollbacks/7", 404, "not-found", id="unknown rollback"),
        pytest.param("/api/v1/tokens/abcdefghijkm", 404, "not-found", id="unknown token"),
        pytest.param("/problems/no-such-problem", 404, "not-found", id="unknown problem"),
        pytest.param(f"{ROLLOUT}/waves?cursor=x", 400, "invalid-field", id="a cursor in words"),
        pytest.param(f"{ROLLOUT}/waves?limit=0", 400, "invalid-field", id="a limit of zero"),
        pytest.param(f"{ROLLOUT}/waves?limit=201", 400, "invalid-field", id="a limit too high"),
        pytest.param(f"{ROLLOUT}/waves?page=2", 400, "invalid-field", id="unknown parameter"),
        pytest.param(f"{PLACE}?verbose=1", 400, "invalid-field", id="a parameter where none is"),
    ],
)
def test_a_wrong_address_gets_a_problem_with_the_reason(admin, rollout, path, status, code):
    assert_problem(admin.get(path), status, code)


def test_a_method_that_is_not_there_names_those_that_are(admin, rollout):
    response = admin.ask("PATCH", rollout)
    document = assert_problem(response, 405, "method-not-allowed")
    assert response.headers["Allow"] == "GET, HEAD, OPTIONS, PUT"
    assert "GET, HEAD, OPTIONS, PUT" in document["detail"]


@pytest.mark.parametrize("accept", ["text/html", "application/xml;q=0.9, text/*"])
def test_a_client_that_takes_no_json_gets_406(admin, rollout, accept):
    assert_problem(admin.get(rollout, Accept=accept), 406, "not-acceptable")


@pytest.mark.parametrize("accept", ["*/*", "application/*", "application/json", "text/html, */*"])
def test_a_client_that_takes_json_among_others_gets_it(admin, rollout, accept):
    assert admin.get(rollout, Accept=accept).status_code == 200


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        pytest.param({"data": b""}, 415, "unsupported-media-type", id="nothing"),
        pytest.param({"data": {"mode": "off"}}, 415, "unsupported-media-type", id="a form"),
        pytest.param(
            {"data": b"{}", "content_type": "text/plain"},
            415,
            "unsupported-media-type",
            id="plain text",
        ),
        pytest.param(
            {
                "data": b"{}",
                "content_type": "application/json",
                "headers": {"Content-Encoding": "gzip"},
            },
            415,
            "unsupported-media-type",
            id="compressed",
        ),
        pytest.param(
            {"data": b"", "content_type": "application/json"}, 400, "bad-request", id="no JSON"
        ),
        pytest.param(
            {"data": b'{"mode": ', "content_type": "application/json"},
            400,
            "bad-request",
            id="half a JSON",
        ),
        pytest.param(
            {"data": b'{"mode": NaN}', "content_type": "application/json"},
            400,
            "bad-request",
            id="not a number",
        ),
        pytest.param(
            {"data": b'"\xff"', "content_type": "application/json"},
            400,
            "bad-request",
            id="not UTF-8",
        ),
        pytest.param(
            {"data": b'{"reason": "\\ud800 0123456789"}', "content_type": "application/json"},
            400,
            "bad-request",
            id="half a character",
        ),
        pytest.param(
            {"data": b"[" * 5000 + b"]" * 5000, "content_type": "application/json"},
            400,
            "bad-request",
            id="very deep",
        ),
        pytest.param(
            {"data": b'{"a":' * 40 + b"1" + b"}" * 40, "content_type": "application/json"},
            400,
            "bad-request",
            id="rather deep",
        ),
        pytest.param(
            {"data": b"[]", "content_type": "application/json"}, 400, "invalid-field", id="a list"
        ),
        pytest.param(
            {"data": b'"{}"', "content_type": "application/json"}, 400, "invalid-field", id="a text"
        ),
        pytest.param(
            {"data": b"null", "content_type": "application/json"}, 400, "invalid-field", id="null"
        ),
        pytest.param(
            {"data": b" " * (MAX_BODY_BYTES + 1), "content_type": "application/json"},
            413,
            "body-too-large",
            id="too large",
        ),
    ],
)
def test_a_body_that_cannot_be_read_is_refused_with_the_reason(admin, rollout, sent, status, code):
    further = dict(sent)
    headers = {"Authorization": f"Bearer {admin.token}", **further.pop("headers", {})}
    path = f"{rollout}/cohorts/everyone"
    response = admin.app.test_client().put(path, headers=headers, **further)
    assert_problem(response, status, code)
    assert admin.get(rollout).get_json()["phase"] == "shadow"


@pytest.mark.parametrize(
    ("body", "pointer", "words"),
    [
        pytest.param({}, "/reason", "reason is missing", id="no reason"),
        pytest.param({"reason": "short"}, "/reason", "'short'", id="a short reason"),
        pytest.param({"reason": " " * 12}, "/reason", "10", id="a blank reason"),
        pytest.param({"reason": 1234567890}, "/reason", "1234567890", id="a number for a reason"),
        pytest.param({"reason": REASON, "mode": "enforced"}, "/mode", "'enforce'", id="not a mode"),
        pytest.param({"reason": REASON, "mode": 3}, "/mode", "mode is 3", id="a number for a mode"),
        pytest.param(
            {"reason": REASON, "share_bps": 10001}, "/share_bps", "10001", id="more than all"
        ),
        pytest.param({"reason": REASON, "share_bps": "5"}, "/share_bps", "'5'", id="a text share"),
        pytest.param({"reason": REASON, "share_bps": 5.5}, "/share_bps", "5.5", id="a fraction"),
        pytest.param({"reason": REASON, "share_bps": True}, "/share_bps", "true", id="a boolean"),
        pytest.param({"reason": REASON, "moed": "off"}, "/moed", "not known", id="unknown member"),
        pytest.param(
            {"reason": REASON, "a/b~c": 1}, "/a~1b~0c", "not known", id="a member with a slash"
        ),
        pytest.param(
            {"reason": REASON, "gate_evaluation": 1}, "/digest", "digest", id="no digest with it"
        ),
    ],
)
def test_a_refused_member_is_named_with_its_value_and_the_remedy(
    operator, rollout, body, pointer, words
):
    document = assert_problem(
        operator.put(f"{rollout}/cohorts/everyone", body), 400, "invalid-field"
    )
    assert pointer in [error["pointer"] for error in document["errors"]]
    assert words in document["errors"][0]["detail"]


def test_every_refused_member_is_listed(operator, rollout):
    body = {"mode": "loud", "share_bps": 0, "colour": "red"}
    document = operator.put(f"{rollout}/cohorts/everyone", body).get_json()
    assert {error["pointer"] for error in document["errors"]} == {
        "/mode",
        "/share_bps",
        "/colour",
        "/reason",
    }


def test_a_sane_request_id_of_the_caller_is_kept(admin, rollout):
    assert admin.get(rollout, X_Request_Id="trace-42").headers["X-Request-Id"] == "trace-42"


@pytest.mark.parametrize("given", ["", "a b", "x" * 65, "<script>"])
def test_any_other_request_id_is_replaced(admin, rollout, given):
    made = admin.get(rollout, X_Request_Id=given).headers["X-Request-Id"]
    assert re.fullmatch(r"[0-9a-f-]{36}", made)


def test_answers_are_kept_out_of_caches(admin, rollout):
    headers = admin.get(rollout).headers
    assert headers["Cache-Control"] == "no-store"
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_a_fault_of_ours_is_a_problem_and_its_log_names_no_owner(
    app, admin, rollout, monkeypatch, caplog
):
    owner = "alice@example.com"

    def break_down() -> None:
        raise RuntimeError(owner)

    monkeypatch.setattr("guardwave.control_plane.http.api.owners.requests.context", break_down)
    with caplog.at_level(logging.ERROR):
        response = admin.get(f"{PLACE}/owners/{owner}")
    assert_problem(response, 500, "internal-error")
    assert "alice" not in response.text
    assert "alice" not in caplog.text
    assert "RuntimeError" in caplog.text
    assert response.headers["X-Request-Id"] in caplog.text


def test_an_absent_store_is_a_problem_that_asks_to_retry(admin, rollout, store_server, settings):
    store_server.stop()
    try:
        response = admin.get(rollout)
        assert_problem(response, 503, "store-unavailable")
        assert response.headers["Retry-After"] == "1"
    finally:
        store_server.ensure_running()


BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


@pytest.mark.parametrize("path", ["/no/such/page", "/apiv1/environments", "/environments//x"])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_an_error_is_a_page_for_browsers_alone(app, path, method):
    client = app.test_client()
    page = client.open(path, method=method, headers={"Accept": BROWSER})
    assert (page.status_code, page.mimetype) == (404, "text/html")
    for accept in ("*/*", "application/json", "application/problem+json"):
        assert_problem(
            client.open(path, method=method, headers={"Accept": accept}), 404, "not-found"
        )
    assert_problem(client.open(path, method=method), 404, "not-found")


def test_a_wrong_method_on_a_page_is_a_problem_that_names_the_right_ones(app):
    response = app.test_client().delete("/sign-in", headers={"Accept": "application/json"})
    assert_problem(response, 405, "method-not-allowed")
    assert "POST" in response.headers["Allow"]


PROTOBUF = ["application/x-protobuf", "application/protobuf", "Application/X-Protobuf; a=b"]


@pytest.mark.parametrize("protobuf", PROTOBUF)
@pytest.mark.parametrize("path", ["/otlp/v1/logs", "/api/v1/metrics", "/v2/v1/traces/"])
def test_an_exporter_with_a_wrong_address_gets_a_status_in_its_own_encoding(app, path, protobuf):
    client = app.test_client()
    as_json = client.post(path, data=b"{}", content_type="application/json")
    assert (as_json.status_code, as_json.mimetype) == (404, "application/json")
    assert as_json.get_json()["code"] == 5
    assert path in as_json.get_json()["message"]
    as_protobuf = client.post(path, data=b"", content_type=protobuf)
    assert (as_protobuf.status_code, as_protobuf.mimetype) == (404, "application/x-protobuf")
    assert Status.FromString(as_protobuf.data).code == 5


@pytest.mark.parametrize("protobuf", PROTOBUF)
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_an_exporter_with_a_wrong_method_gets_a_status_in_its_own_encoding(app, method, protobuf):
    client = app.test_client()
    as_json = client.open("/v1/logs", method=method, content_type="application/json")
    assert (as_json.status_code, as_json.mimetype) == (405, "application/json")
    assert (as_json.get_json()["code"], as_json.headers["Allow"]) == (12, "POST")
    as_protobuf = client.open("/v1/logs/", method=method, content_type=protobuf)
    assert (as_protobuf.status_code, as_protobuf.mimetype) == (405, "application/x-protobuf")
    assert Status.FromString(as_protobuf.data).code == 12


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        pytest.param("/api/v1/environments/e/owners/alice", "/api/v1/environments/e/owners/***"),
        pytest.param("/g/assignments/alice?route=cron", "/g/assignments/***?route=cron"),
        pytest.param("/g/assignments/a/b%2fc", "/g/assignments/***"),
        pytest.param("/api/v1/environments", "/api/v1/environments"),
    ],
)
def test_owner_ids_are_masked_in_logged_paths(path, shown):
    assert masked_path(path) == shown
