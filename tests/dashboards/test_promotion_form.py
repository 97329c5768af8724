"""Promotion form: an evaluation and the promotion it allows, over a real store."""

import json

import pytest

from guardwave.control_plane.commands.evaluations import request_evaluation
from guardwave.control_plane.core.state import EvaluationStatus
from guardwave.control_plane.rollouts.access import create_token
from guardwave.control_plane.rollouts.context import Context
from guardwave.reducer.vocabulary import Gate, Mode, Role
from tests.dashboards.conftest import GUARD_PATH, HERE, NOW, PERSON, SignIn
from tests.dashboards.samples import GUARD, METRICS, wire


def store_evaluation(control: Context, verdict: str) -> str:
    """Store a finished shadow evaluation with a verdict; return the path of its page."""
    asked = request_evaluation(control, "internal", GUARD, gate=Gate.SHADOW, actor=PERSON)
    rollout = control.environments.rollout("internal", GUARD)
    assert rollout is not None
    result = wire(
        gate="shadow",
        wave=rollout.wave,
        verdict=verdict,
        treated_cohort="everyone",
        reference_cohort="everyone",
        metrics=list(METRICS[:0]),
        owners={"everyone": 1240},
        rostered={},
    )
    done = type(asked)(
        id=asked.id,
        guard=GUARD,
        gate=Gate.SHADOW,
        requested_at=NOW,
        actor=PERSON,
        status=EvaluationStatus.DONE,
        evaluated_at=NOW,
        generation=rollout.generation,
        wave=rollout.wave,
        verdict=verdict,
        sentence="A sentence of the test.",
        digest="d1gest",
        result=json.dumps({**result, "policy_hash": control.policies.hash}),
    )
    fence = control.jobs.lease("internal", "a test")
    assert control.gates.finish_evaluation("internal", done, fence=fence)
    return f"{GUARD_PATH}/gates/{asked.id}"


def test_a_button_requests_an_evaluation(sign_in: SignIn, control: Context) -> None:
    client = sign_in()
    answer = client.post(f"{GUARD_PATH}/gates", headers=HERE, data={"gate": "shadow"})

    assert answer.status_code == 303
    assert control.gates.evaluation("internal", GUARD, 1) is not None
    assert "is computing evaluation 1" in client.get(answer.headers["Location"]).text


def test_a_promotion_is_requested_on_the_shown_evaluation(
    sign_in: SignIn, control: Context
) -> None:
    client = sign_in()
    path = store_evaluation(control, "within")
    assert "Promote to warn" in client.get(path).text

    answer = client.post(
        f"{path}/promotions",
        headers=HERE,
        data={
            "digest": "d1gest",
            "to": "warn",
            "share_bps": "8000",
            "reason": "seven quiet days",
            "confirm": "internal",
        },
    )

    assert answer.status_code == 303, answer.text
    (promotion,) = control.gates.promotions("internal", GUARD)
    assert (promotion.to, promotion.share_bps) == (Mode.WARN, 8000)
    assert "Promotion 1: pending." in client.get(path).text


@pytest.mark.parametrize(
    ("verdict", "changes", "status", "expected"),
    [
        pytest.param("within", {"confirm": "intern"}, 400, "Type internal", id="not confirmed"),
        pytest.param("within", {"reason": "ok"}, 400, "at least 10", id="a short reason"),
        pytest.param("within", {"share_bps": "5%"}, 400, "basis points", id="a share in words"),
        pytest.param("within", {"digest": "other"}, 422, "digest", id="another digest"),
        pytest.param("unproven", {}, 409, "only within raises", id="an unproven gate"),
    ],
)
def test_a_promotion_that_cannot_be_comes_back_with_the_reason(
    sign_in: SignIn,
    control: Context,
    verdict: str,
    changes: dict[str, str],
    status: int,
    expected: str,
) -> None:
    asked = {
        "digest": "d1gest",
        "to": "warn",
        "share_bps": "8000",
        "reason": "seven quiet days",
        "confirm": "internal",
    }
    path = store_evaluation(control, verdict)
    answer = sign_in().post(f"{path}/promotions", headers=HERE, data=asked | changes)

    assert answer.status_code == status
    assert expected in answer.text
    assert "<title>Error: " in answer.text
    assert f">{(asked | changes)['reason']}</textarea>" in answer.text
    assert control.gates.promotions("internal", GUARD) == ()


def test_what_was_typed_before_the_session_ended_is_in_the_form_again(
    sign_in: SignIn, control: Context
) -> None:
    path = store_evaluation(control, "within")
    client = sign_in()
    client.post("/sign-out", headers=HERE)

    sent = client.post(f"{path}/promotions", headers=HERE, data={"reason": "seven quiet days"})
    token = create_token(control, role=Role.OPERATOR, environment="internal")
    back = client.post(sent.headers["Location"], headers=HERE, data={"token": token})

    assert back.headers["Location"].startswith(path)
    assert ">seven quiet days</textarea>" in client.get(path).text
