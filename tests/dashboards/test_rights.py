"""Rights: the pages and changes that a role allows, over a real store."""

import pytest
import redis

from guardwave.control_plane.core.clock import fixed_clock
from guardwave.control_plane.core.policy import load
from guardwave.control_plane.rollouts.context import Context, make_context
from guardwave.reducer.vocabulary import Role
from tests.dashboards.conftest import GUARD_PATH, HERE, NOW, SignIn, pages_over
from tests.dashboards.samples import GUARD


@pytest.mark.parametrize(
    "path", ["/", "/environments/internal", GUARD_PATH, "/environments/internal/rollback"]
)
def test_each_page_answers_over_a_real_store(sign_in: SignIn, path: str) -> None:
    answer = sign_in(Role.ADMIN).get(path)

    assert answer.status_code == 200
    assert GUARD in answer.text


def test_a_token_sees_its_own_environment_only(sign_in: SignIn) -> None:
    client = sign_in(Role.VIEWER, "public-cloud")

    assert "internal" not in client.get("/").text
    for path in ("/environments/internal", GUARD_PATH, "/environments/internal/rollback"):
        answer = client.get(path)
        assert answer.status_code == 403
        assert "sign in with such a token" in answer.text
    assert client.get("/fragments/overview?environment=internal").status_code == 403


@pytest.mark.parametrize(
    "path",
    [
        "/environments/internal/rollback",
        f"{GUARD_PATH}/cohorts/everyone",
        f"{GUARD_PATH}/gates",
        f"{GUARD_PATH}/gates/1/promotions",
    ],
)
def test_a_viewer_changes_nothing(sign_in: SignIn, path: str) -> None:
    answer = sign_in(Role.VIEWER).post(
        path, headers=HERE, data={"reason": "long enough", "mode": "off"}
    )

    assert answer.status_code == 403
    assert "this needs the role operator of internal" in answer.text


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("/environments/nowhere", id="environment"),
        pytest.param("/environments/nowhere/rollback", id="environment of a rollback"),
        pytest.param("/environments/internal/guards/none", id="guard"),
        pytest.param(f"{GUARD_PATH}/gates/99", id="evaluation"),
        pytest.param("/fragments/environments/internal/guards/none", id="fragment"),
    ],
)
def test_what_does_not_exist_is_a_page_that_says_so(sign_in: SignIn, path: str) -> None:
    answer = sign_in(Role.ADMIN).get(path)

    assert answer.status_code == 404
    assert "Not found" in answer.text
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


def test_the_overview_fragment_speaks_only_when_something_changed(
    sign_in: SignIn, control: Context
) -> None:
    client = sign_in()
    quiet = client.get("/fragments/overview")
    spoken = client.get("/fragments/overview?seen=an-older-state")

    assert "hx-swap-oob" not in quiet.text
    assert f"{GUARD} in internal: shadow." in spoken.text


def test_a_store_that_is_away_is_a_page_that_asks_to_retry() -> None:
    away = redis.Redis(unix_socket_path="/nonexistent/store.sock")
    client = pages_over(
        make_context(away, clock=fixed_clock(NOW), policies=load(None))
    ).test_client()
    with client.session_transaction() as session:
        session["session"] = "anything"

    answer = client.get("/")

    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "1"
    assert "The store is unavailable" in answer.text
