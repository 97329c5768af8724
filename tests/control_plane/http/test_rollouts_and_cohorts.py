import pytest

from guardwave.control_plane.commands.promotions import carry_out
from guardwave.reducer.vocabulary import Verdict
from tests.control_plane.http.conftest import ENVIRONMENT, GUARD, PLACE, REASON, assert_problem

KNOWN = {"ownership": "known", "trusted": True}


def test_a_new_rollout_is_in_shadow_with_its_wave_open(admin):
    admin.put(PLACE, {"reason": REASON})
    body = {"version_pin": ["1.1", "1.0", "1.1"], "reason": REASON}
    made = admin.put(f"{PLACE}/guards/{GUARD}", body)
    assert made.status_code == 201
    shown = made.get_json()
    assert (shown["phase"], shown["wave"], shown["version_pin"]) == ("shadow", 1, ["1.0", "1.1"])
    assert shown["share_bps"] is None
    assert [condition["type"] for condition in shown["conditions"]] == [
        "latched",
        "wave_open",
        "next_step_allowed",
    ]
    assert made.headers["Location"] == shown["links"]["self"]
    again = admin.put(f"{PLACE}/guards/{GUARD}", body)
    assert (again.status_code, again.headers["ETag"]) == (200, made.headers["ETag"])


@pytest.mark.parametrize(
    "pin",
    [
        pytest.param([], id="none"),
        pytest.param("1.0", id="a text"),
        pytest.param([1.0], id="a number"),
        pytest.param([""], id="an empty version"),
        pytest.param([" 1.0"], id="a blank in front"),
        pytest.param(["x" * 65], id="too long"),
        pytest.param([str(at) for at in range(17)], id="too many"),
    ],
)
def test_a_pin_that_cannot_be_one_is_refused(operator, rollout, pin):
    response = operator.put(rollout, {"version_pin": pin, "reason": REASON})
    document = assert_problem(response, 400, "invalid-field")
    assert document["errors"][0]["pointer"].startswith("/version_pin")


def test_another_pin_is_a_new_wave_and_no_put(operator, rollout):
    response = operator.put(rollout, {"version_pin": ["2.0"], "reason": REASON})
    assert_problem(response, 409, "state-conflict")


def test_one_call_lowers_a_cohort(operator, rollout):
    before = operator.get(rollout).headers["ETag"]
    done = operator.put(f"{rollout}/cohorts/everyone", {"mode": "off", "reason": REASON})
    shown = done.get_json()
    assert (done.status_code, shown["changed"], shown["rollout"]["phase"]) == (200, True, "off")
    assert done.headers["ETag"] == operator.get(rollout).headers["ETag"] != before


def test_a_repeated_lowering_changes_nothing(operator, rollout):
    body = {"mode": "off", "reason": REASON}
    operator.put(f"{rollout}/cohorts/everyone", body)
    again = operator.put(f"{rollout}/cohorts/everyone", body).get_json()
    assert (again["changed"], again["rollout"]["generation"]) == (False, 2)


def test_a_dry_run_answers_what_would_change_and_writes_nothing(operator, rollout):
    body = {"mode": "off", "reason": REASON}
    tried = operator.put(f"{rollout}/cohorts/everyone?dry_run=true", body)
    shown = tried.get_json()
    assert (shown["dry_run"], shown["changed"], shown["rollout"]["phase"]) == (True, True, "off")
    assert operator.get(rollout).get_json()["phase"] == "shadow"


def test_a_misspelt_dry_run_does_not_write(operator, rollout):
    body = {"mode": "off", "reason": REASON}
    response = operator.put(f"{rollout}/cohorts/everyone?dryrun=true", body)
    assert_problem(response, 400, "invalid-field")
    assert operator.get(rollout).get_json()["phase"] == "shadow"


def test_raising_without_an_evaluation_links_to_where_one_is_asked_for(operator, rollout):
    response = operator.put(f"{rollout}/cohorts/warned", {"mode": "warn", "reason": REASON})
    document = assert_problem(response, 409, "gate-required")
    assert document["links"]["evaluate"] == f"{rollout}/gate-evaluations"


def test_skipping_a_step_is_refused(operator, rollout):
    response = operator.put(f"{rollout}/cohorts/enforced", {"mode": "enforce", "reason": REASON})
    assert_problem(response, 409, "step-skipped")


def test_a_mode_above_the_cohorts_line_is_refused(operator, rollout):
    response = operator.put(f"{rollout}/cohorts/control", {"mode": "enforce", "reason": REASON})
    assert_problem(response, 422, "rule-violated")


@pytest.mark.parametrize("cohort", ["outside", "ineligible"])
def test_a_cohort_that_follows_the_phase_is_not_set(operator, rollout, cohort):
    response = operator.put(f"{rollout}/cohorts/{cohort}", {"mode": "off", "reason": REASON})
    assert response.status_code in {404, 422}
    assert response.mimetype == "application/problem+json"


def test_an_unknown_cohort_gets_the_list_of_cohorts(operator, rollout):
    response = operator.put(f"{rollout}/cohorts/canary", {"mode": "off", "reason": REASON})
    document = assert_problem(response, 404, "not-found")
    assert "enforced" in document["detail"]


def test_a_stale_if_match_is_refused_even_for_a_lowering(operator, rollout):
    response = operator.put(
        f"{rollout}/cohorts/everyone", {"mode": "off", "reason": REASON}, If_Match='"0123456789"'
    )
    document = assert_problem(response, 412, "precondition-failed")
    assert document["current_etag"] == operator.get(rollout).headers["ETag"]
    assert operator.get(rollout).get_json()["phase"] == "shadow"


def test_the_present_if_match_is_accepted(operator, rollout):
    etag = operator.get(rollout).headers["ETag"]
    done = operator.put(
        f"{rollout}/cohorts/everyone", {"mode": "off", "reason": REASON}, If_Match=etag
    )
    assert done.status_code == 200


def test_resuming_needs_if_match(operator, rollout):
    operator.put(f"{rollout}/cohorts/everyone", {"mode": "off", "reason": REASON})
    body = {"mode": "shadow", "reason": REASON}
    refused = operator.put(f"{rollout}/cohorts/everyone", body)
    document = assert_problem(refused, 428, "precondition-required")
    done = operator.put(
        f"{rollout}/cohorts/everyone", body, If_Match=document["current_etag"]
    ).get_json()
    assert (done["rollout"]["phase"], done["rollout"]["wave"]) == ("shadow", 2)


def test_a_raise_that_names_a_passed_gate_becomes_a_promotion(
    context, operator, rollout, passed_gate
):
    gate = passed_gate()
    body = {
        "mode": "warn",
        "gate_evaluation": gate.id,
        "digest": gate.digest,
        "reason": REASON,
    }
    tried = operator.put(f"{rollout}/cohorts/warned?dry_run=true", body)
    assert (tried.status_code, "Location" in tried.headers) == (200, False)
    would = tried.get_json()
    assert (would["changed"], would["dry_run"], would["promotion"]["id"]) == (True, True, None)
    assert (would["rollout"]["phase"], would["rollout"]["share_bps"]) == ("warn", 8000)
    asked = operator.put(f"{rollout}/cohorts/warned", body)
    assert asked.status_code == 202
    place = asked.headers["Location"]
    assert operator.get(place).get_json()["status"] == "pending"
    assert operator.get(rollout).get_json()["phase"] == "shadow"
    carry_out(context, ENVIRONMENT, GUARD, asked.get_json()["promotion"]["id"])
    assert operator.get(place).get_json()["status"] == "done"
    shown = operator.get(rollout).get_json()
    assert (shown["phase"], shown["wave"], shown["share_bps"]) == ("warn", 2, 8000)
    assert [(cohort["cohort"], cohort["mode"]) for cohort in shown["cohorts"]] == [
        ("warned", "warn"),
        ("holdback", "shadow"),
    ]


@pytest.mark.parametrize("verdict", sorted({*Verdict} - {Verdict.WITHIN}))
def test_only_within_raises_a_mode(operator, rollout, passed_gate, verdict):
    gate = passed_gate(verdict)
    body = {"mode": "warn", "gate_evaluation": gate.id, "digest": gate.digest, "reason": REASON}
    response = operator.put(f"{rollout}/cohorts/warned", body)
    document = assert_problem(response, 409, "state-conflict")
    assert document["verdict"] == verdict


def test_the_cohorts_of_the_phase_are_listed_and_read(viewer, rollout):
    listed = viewer.get(f"{rollout}/cohorts").get_json()["items"]
    assert [cohort["cohort"] for cohort in listed] == ["everyone"]
    assert viewer.get(f"{rollout}/cohorts/everyone").get_json() == listed[0]
    response = viewer.get(f"{rollout}/cohorts/enforced")
    document = assert_problem(response, 404, "not-found")
    assert "only everyone" in document["detail"]
