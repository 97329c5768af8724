"""Arbitrary JSON: every endpoint answers a success or a problem, and never a fault of its own."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from guardwave.reducer.vocabulary import Gate, Mode, Role
from tests.control_plane.http.conftest import PLACE, REASON, ROLLOUT, assert_problem

WRITES = [
    pytest.param("PUT", "/api/v1/environments/other", id="environment"),
    pytest.param("PUT", ROLLOUT, id="rollout"),
    pytest.param("PUT", f"{ROLLOUT}/cohorts/everyone", id="cohort"),
    pytest.param("PUT", f"{ROLLOUT}/cohorts/enforced?dry_run=true", id="cohort, tried out"),
    pytest.param("POST", f"{ROLLOUT}/waves", id="wave"),
    pytest.param("POST", f"{ROLLOUT}/gate-evaluations", id="evaluation"),
    pytest.param("POST", f"{ROLLOUT}/promotions", id="promotion"),
    pytest.param("POST", f"{PLACE}/rollbacks", id="rollback"),
    pytest.param("POST", f"{PLACE}/rollbacks/1/acknowledgement", id="acknowledgement"),
    pytest.param("PUT", f"{PLACE}/owners/alice", id="owner"),
    pytest.param("POST", f"{PLACE}/owners", id="owners"),
    pytest.param("POST", "/api/v1/tokens", id="token"),
]

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
    | st.sampled_from([REASON, "known", "internal", "1.0", *Mode, *Gate, *Role])
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=8,
)
MEMBERS = (
    "reason",
    "mode",
    "share_bps",
    "gate_evaluation",
    "digest",
    "to",
    "gate",
    "version_pin",
    "evidence_source",
    "looks",
    "requires",
    "guard",
    "last_violation",
    "owners",
    "owner",
    "ownership",
    "trusted",
    "role",
    "environment",
    "name",
)
bodies = values | st.dictionaries(st.sampled_from(MEMBERS), values, max_size=8).map(
    lambda body: {"reason": REASON, **body}
)


@pytest.mark.parametrize(("method", "path"), WRITES)
@settings(
    max_examples=20,
    deadline=None,
    # The store is emptied once for all examples: what one leaves is part of the next one's world.
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(body=bodies, key=st.integers(0, 9))
def test_any_json_is_answered_by_a_success_or_a_problem(
    admin, rollout, method: str, path: str, body: Any, key: int
):
    headers = {} if path.endswith("/tokens") else {"Idempotency_Key": str(key)}
    client = admin.app.test_client()
    response = client.open(
        path,
        method=method,
        data=json.dumps(body),
        content_type="application/json",
        headers={
            "Authorization": f"Bearer {admin.token}",
            "If-Match": admin.get(path.partition("/guards/")[0]).headers.get("ETag", '"none"'),
            **{name.replace("_", "-"): text for name, text in headers.items()},
        },
    )
    if response.status_code < 300:
        assert response.mimetype == "application/json"
        return
    assert 400 <= response.status_code < 500, response.text
    assert_problem(response, response.status_code, response.get_json()["type"].split("/")[-1])
