"""Forms that lower: a cohort's mode and a rollback, over a real store."""

import re

import pytest

from guardwave.control_plane.rollouts.context import Context
from guardwave.reducer.vocabulary import Mode
from tests.dashboards.conftest import GUARD_PATH, HERE, SignIn
from tests.dashboards.samples import GUARD


def test_a_cohort_is_set_lower_by_a_form(sign_in: SignIn, control: Context) -> None:
    client = sign_in()
    answer = client.post(
        f"{GUARD_PATH}/cohorts/everyone",
        headers=HERE,
        data={"mode": "off", "reason": "this guard is noisy"},
    )
    rollout = control.environments.rollout("internal", GUARD)

    assert answer.status_code == 303
    assert rollout is not None
    assert rollout.phase is Mode.OFF
    assert "is now in" in client.get(answer.headers["Location"]).text


@pytest.mark.parametrize(
    ("data", "status", "expected"),
    [
        pytest.param({"mode": "off", "reason": "no"}, 400, "at least 10", id="a short reason"),
        pytest.param(
            {"mode": "loud", "reason": "long enough"}, 400, "got loud", id="an unknown mode"
        ),
        pytest.param(
            {"mode": "warn", "reason": "long enough"}, 422, "A rule is violated", id="a raise"
        ),
    ],
)
def test_a_form_that_cannot_be_done_comes_back_with_the_reason(
    sign_in: SignIn, control: Context, data: dict[str, str], status: int, expected: str
) -> None:
    answer = sign_in().post(f"{GUARD_PATH}/cohorts/everyone", headers=HERE, data=data)
    rollout = control.environments.rollout("internal", GUARD)

    assert answer.status_code == status
    assert expected in answer.text
    assert rollout is not None
    assert rollout.phase is Mode.SHADOW


def test_a_rollout_that_is_off_is_switched_on_as_it_was_shown(
    sign_in: SignIn, control: Context
) -> None:
    client = sign_in()
    asked = {"mode": "off", "reason": "this guard is noisy"}
    client.post(f"{GUARD_PATH}/cohorts/everyone", headers=HERE, data=asked)
    etag = re.search(r'name="etag" value="&#34;(\w+)&#34;"', client.get(GUARD_PATH).text)
    assert etag is not None

    asked = {"mode": "shadow", "reason": "it was mended", "etag": '"of yesterday"'}
    stale = client.post(f"{GUARD_PATH}/cohorts/everyone", headers=HERE, data=asked)
    asked |= {"etag": f'"{etag[1]}"'}
    answer = client.post(f"{GUARD_PATH}/cohorts/everyone", headers=HERE, data=asked)
    rollout = control.environments.rollout("internal", GUARD)

    assert stale.status_code == 412
    assert ">it was mended</textarea>" in stale.text
    assert answer.status_code == 303
    assert rollout is not None
    assert rollout.phase is Mode.SHADOW


def test_a_rollback_with_nothing_to_lower_says_so(sign_in: SignIn) -> None:
    client = sign_in()
    answer = client.post(
        "/environments/internal/rollback", headers=HERE, data={"reason": "a drill on Monday"}
    )

    assert answer.status_code == 303
    assert "already in shadow" in client.get(answer.headers["Location"]).text


def test_a_rollback_asks_for_a_reason(sign_in: SignIn) -> None:
    answer = sign_in().post(
        "/environments/internal/rollback", headers=HERE, data={"reason": " why "}
    )

    assert answer.status_code == 400
    assert "yours has 3" in answer.text
