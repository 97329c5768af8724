import pytest

from guardwave.control_plane.commands.rollback import FoundViolation, latch
from guardwave.control_plane.stores.evidence.delta.request import EvidenceBatch
from guardwave.reducer.vocabulary import Invariant, Mode
from tests.control_plane.http.conftest import PLACE, REASON, assert_problem


def test_an_admin_creates_an_environment_once(admin):
    made = admin.put(PLACE, {"reason": REASON})
    assert (made.status_code, made.headers["Location"]) == (201, PLACE)
    again = admin.put(PLACE, {"reason": REASON})
    assert (again.status_code, again.headers["ETag"]) == (200, made.headers["ETag"])
    assert again.get_json() == admin.get(PLACE).get_json()


def test_an_environment_shows_no_key(context, admin, rollout):
    held = context.environments.load("internal")
    text = admin.get(PLACE).text
    assert held.pseudonym_key not in text
    assert held.tag_key not in text


def test_the_policy_adds_to_what_an_environment_requires(admin):
    admin.put("/api/v1/environments/internal", {"reason": REASON})
    made = admin.put("/api/v1/environments/public-cloud", {"reason": REASON})
    assert made.get_json()["requires"] == ["internal"]


def test_what_an_environment_requires_is_set_once(admin, rollout):
    body = {"requires": ["staging"], "reason": REASON}
    assert_problem(admin.put(PLACE, body), 409, "state-conflict")


def test_a_required_name_that_cannot_be_one_is_refused(admin):
    body = {"requires": ["../x"], "reason": REASON}
    document = assert_problem(admin.put(PLACE, body), 400, "invalid-field")
    assert document["errors"][0]["pointer"] == "/requires/0"


def test_environments_are_listed_in_parts(admin):
    names = ["a", "b", "c"]
    for name in names:
        admin.put(f"/api/v1/environments/{name}", {"reason": REASON})
    found = []
    address = "/api/v1/environments?limit=2"
    while address is not None:
        page = admin.get(address).get_json()
        assert len(page["items"]) <= 2
        found += [environment["name"] for environment in page["items"]]
        address = page["next"]
    assert found == names


def test_the_etag_moves_with_every_change(admin, rollout):
    before = admin.get(PLACE).headers["ETag"]
    admin.put(f"{rollout}/cohorts/everyone", {"mode": "off", "reason": REASON})
    assert admin.get(PLACE).headers["ETag"] != before


def test_the_latch_is_shown_with_what_to_acknowledge(context, admin, rollout):

    found = FoundViolation("r1", Invariant.CONTRACT_VIOLATION, "identical_call", Mode.SHADOW, 1)
    latch(context, "internal", [found])
    shown = admin.get(PLACE).get_json()
    assert shown["latch"]["newest_violation"] == 1
    assert shown["latch"]["rollback"] == 1
    condition = next(
        condition for condition in shown["conditions"] if condition["type"] == "latched"
    )
    assert condition["status"] == "true"
    assert condition["last_transition"].endswith("Z")


@pytest.mark.parametrize("if_match", ['"0123456789"', "*", 'W/"0123456789"'])
def test_a_stale_weak_or_open_if_match_is_refused(admin, rollout, if_match):
    response = admin.put(PLACE, {"reason": REASON}, If_Match=if_match)
    assert response.status_code in {400, 412}
    assert response.mimetype == "application/problem+json"


def test_a_stale_if_match_gets_the_present_etag(admin, rollout):
    response = admin.put(PLACE, {"reason": REASON}, If_Match='"0123456789"')
    document = assert_problem(response, 412, "precondition-failed")
    assert document["current_etag"] == admin.get(PLACE).headers["ETag"]


def test_violations_that_change_nothing_are_counted_in_the_telemetry(context, admin, rollout):
    counts = {"untrusted_violation:mode_mismatch": 2, "unvouched_violation:sensitive_field": 3}
    batch = EvidenceBatch((), health=counts, last_record_second=1)
    context.evidence.write("internal", batch)
    telemetry = admin.get(PLACE).get_json()["telemetry"]
    assert (telemetry["untrusted_violations"], telemetry["unvouched_violations"]) == (2, 3)
