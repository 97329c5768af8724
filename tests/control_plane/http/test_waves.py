import pytest

from guardwave.control_plane.commands.promotions import carry_out
from tests.control_plane.http.conftest import ENVIRONMENT, GUARD, REASON, assert_problem


def start(client, rollout, *, key="k1", etag=None, **body):
    etag = client.get(rollout).headers["ETag"] if etag is None else etag
    return client.post(
        f"{rollout}/waves", {"reason": REASON, **body}, Idempotency_Key=key, If_Match=etag
    )


def test_a_wave_shows_each_day_and_why_it_does_not_count(viewer, wall, rollout):
    wall.pass_by(days=2)
    shown = viewer.get(f"{rollout}/waves/1").get_json()
    assert [(day["is_complete"], day["reason"]) for day in shown["days"]] == [
        (False, "the wave began during it"),
        (False, "it is not sealed yet"),
        (False, "it is not over yet"),
    ]
    assert shown["roster_digest"] is None
    assert [condition["type"] for condition in shown["conditions"]] == ["open", "look_reached"]
    assert shown["opened_at"] == "2026-11-02T09:00:00Z"


def test_a_wave_is_started_again_with_another_pin(operator, wall, rollout):
    wall.pass_by(hours=1)
    made = start(operator, rollout, version_pin=["2.0"], looks=[7, 14])
    shown = made.get_json()
    assert (made.status_code, shown["id"], shown["looks"]) == (201, 2, [7, 14])
    assert made.headers["ETag"] == operator.get(rollout).headers["ETag"]
    assert operator.get(made.headers["Location"]).get_json()["version_pin"] == ["2.0"]
    assert operator.get(f"{rollout}/waves/1").get_json()["closed_at"] == "2026-11-02T10:00:00Z"


def test_above_shadow_a_version_without_a_gate_is_refused_with_what_to_do(
    context, operator, rollout, passed_gate
):
    gate = passed_gate()
    body = {"gate_evaluation": gate.id, "digest": gate.digest, "to": "warn", "reason": REASON}
    operator.post(f"{rollout}/promotions", body, Idempotency_Key="up")
    carry_out(context, ENVIRONMENT, GUARD, 1)
    document = assert_problem(start(operator, rollout, version_pin=["2.0"]), 409, "step-skipped")
    assert "version 2.0 was left out of the pin, or passed no gate" in document["detail"]
    assert "start a shadow wave that pins it" in document["detail"]
    assert operator.get(rollout).get_json()["version_pin"] == ["1.0"]


def test_waves_are_listed_newest_first_in_parts(operator, rollout):
    for key in ("a", "b", "c"):
        assert start(operator, rollout, key=key).status_code == 201
    first = operator.get(f"{rollout}/waves?limit=3").get_json()
    assert [wave["id"] for wave in first["items"]] == [4, 3, 2]
    second = operator.get(first["next"]).get_json()
    assert ([wave["id"] for wave in second["items"]], second["next"]) == ([1], None)


def test_starting_a_wave_needs_a_key_and_if_match(operator, rollout):
    missing_key = operator.post(f"{rollout}/waves", {"reason": REASON})
    document = assert_problem(missing_key, 400, "invalid-field")
    assert "Idempotency-Key" in document["detail"]
    missing_etag = operator.post(f"{rollout}/waves", {"reason": REASON}, Idempotency_Key="k")
    assert_problem(missing_etag, 428, "precondition-required")
    assert operator.get(rollout).get_json()["wave"] == 1


def test_a_refused_request_may_be_mended_and_sent_again_with_its_key(operator, rollout):
    assert_problem(start(operator, rollout, etag='"stale"'), 412, "precondition-failed")
    assert start(operator, rollout).status_code == 201


def test_looks_before_the_dwell_are_against_the_policy(operator, rollout):
    response = start(operator, rollout, looks=[6])
    document = assert_problem(response, 422, "rule-violated")
    assert document["errors"][0]["pointer"].startswith("/looks")


@pytest.mark.parametrize(
    "looks",
    [
        pytest.param([], id="none"),
        pytest.param([14, 7], id="falling"),
        pytest.param([7, 7], id="twice"),
        pytest.param([7.5], id="half a day"),
        pytest.param(["7"], id="a text"),
        pytest.param([91], id="after the last day"),
        pytest.param(list(range(7, 16)), id="nine looks"),
    ],
)
def test_looks_that_cannot_be_are_refused(operator, rollout, looks):
    response = start(operator, rollout, looks=looks)
    document = assert_problem(response, 400, "invalid-field")
    assert document["errors"][0]["pointer"].startswith("/looks")


def test_a_rollout_that_is_off_has_no_wave_to_start(operator, rollout):
    operator.put(f"{rollout}/cohorts/everyone", {"mode": "off", "reason": REASON})
    document = assert_problem(start(operator, rollout), 409, "step-skipped")
    assert "set the mode of the cohort everyone to shadow" in document["detail"]
