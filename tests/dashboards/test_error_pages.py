"""Error pages: the message as a sentence in guardwave's words, and the links that follow."""

import re

import pytest
from flask import Flask, g
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound, RequestEntityTooLarge

from guardwave.control_plane.rollouts.context import Context
from guardwave.dashboards.problems import problem_page
from guardwave.reducer.vocabulary import Role
from tests.dashboards.conftest import GUARD_PATH, HERE, SignIn
from tests.dashboards.reading import visible_text
from tests.dashboards.samples import GUARD
from tests.dashboards.test_acknowledgement_form import latch_by_violation


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        pytest.param(NotFound(), "Not found No page has the address /<here>.", id="no such page"),
        pytest.param(MethodNotAllowed(), "/<here> does not accept POST", id="a wrong method"),
        pytest.param(NotFound("no wave 9"), "Not Found No wave 9.", id="another message is kept"),
        pytest.param(RequestEntityTooLarge(), "exceeds the capacity limit", id="any other"),
    ],
)
def test_an_http_error_is_a_sentence(app: Flask, error: HTTPException, expected: str) -> None:
    with app.test_request_context("/<here>", method="POST"):
        g.identity = None
        page = problem_page(error.code or 500, error.name, error.description or "")

    assert page.status_code == error.code
    assert expected in visible_text(page.get_data(as_text=True)).replace("&lt;", "<").replace(
        "&gt;", ">"
    )
    assert page.headers["Content-Security-Policy"].startswith("default-src 'none'")


def test_a_rollout_that_does_not_exist_is_named(sign_in: SignIn) -> None:
    answer = sign_in().get("/environments/internal/guards/no_such_guard")

    assert answer.status_code == 404
    assert "<h1>" in answer.text
    assert "no_such_guard" in answer.text


@pytest.mark.parametrize(
    ("accept", "status", "mimetype"),
    [
        pytest.param("text/html,*/*;q=0.8", 303, "text/html", id="a browser"),
        pytest.param("application/json", 401, "application/problem+json", id="a program"),
        pytest.param("application/json, */*", 401, "application/problem+json", id="a fetch"),
        pytest.param("*/*", 303, "text/html", id="curl"),
        pytest.param(None, 303, "text/html", id="no Accept"),
        pytest.param("text/html;q=0", 401, "application/problem+json", id="no page, please"),
    ],
)
def test_a_client_that_accepts_pages_is_redirected_to_the_sign_in_page(
    app: Flask, accept: str | None, status: int, mimetype: str
) -> None:
    client = app.test_client()
    del client.environ_base["HTTP_ACCEPT"]
    answer = client.get("/environments/x", headers={} if accept is None else {"Accept": accept})

    assert (answer.status_code, answer.mimetype) == (status, mimetype)


def test_a_program_gets_a_problem_for_a_form_that_was_not_sent_from_a_page(app: Flask) -> None:
    client = app.test_client()
    answer = client.post("/theme", headers={"Accept": "application/json"})

    assert (answer.status_code, answer.mimetype) == (403, "application/problem+json")


def error_links(page: str) -> list[str]:
    """Return the links that an error page offers, and check that its title says error."""
    assert "<title>Error: " in page
    (found,) = re.findall(r'<ul class="ways-on">(.*?)</ul>', page, flags=re.DOTALL)
    return re.findall(r">([^<]+)</a>", found)


@pytest.mark.parametrize(
    ("path", "links"),
    [
        pytest.param(
            f"{GUARD_PATH}/gates/99",
            [f"{GUARD} in internal", "internal", "All environments"],
            id="an evaluation",
        ),
        pytest.param(
            "/environments/internal/guards/none", ["internal", "All environments"], id="a guard"
        ),
        pytest.param("/environments/nowhere/rollback", ["All environments"], id="an environment"),
        pytest.param("/no/such/page", ["All environments"], id="a page"),
    ],
)
def test_an_error_links_to_the_parts_of_its_address_that_exist(
    sign_in: SignIn, path: str, links: list[str]
) -> None:
    page = sign_in(Role.ADMIN).get(path).text

    assert error_links(page) == links


def test_a_refused_person_can_sign_in_with_another_token_and_come_back(sign_in: SignIn) -> None:
    page = (
        sign_in(Role.VIEWER).post(f"{GUARD_PATH}/gates", headers=HERE, data={"gate": "shadow"}).text
    )

    assert "Sign in with another token" in error_links(page)
    assert f'/sign-in?next={GUARD_PATH.replace("/", "%2F")}"' in page


def test_an_error_names_no_environment_that_the_token_may_not_see(sign_in: SignIn) -> None:
    page = sign_in(Role.VIEWER, "public-cloud").get("/environments/internal").text

    assert error_links(page) == ["Sign in with another token", "All environments"]
    assert 'href="/environments/internal"' not in page


def test_an_error_under_a_latch_links_to_the_latch(sign_in: SignIn, control: Context) -> None:
    latch_by_violation(control, "one")
    page = sign_in().get(f"{GUARD_PATH}/gates/99").text

    assert "See why internal is held in shadow" in error_links(page)
    assert '<nav aria-label="Environments">' in page
    assert 'href="/environments/internal/rollback#acknowledgement"' in page


def test_an_error_without_a_sign_in_links_only_to_the_overview(app: Flask) -> None:
    page = (
        app.test_client().post(f"{GUARD_PATH}/gates", headers={"Sec-Fetch-Site": "cross-site"}).text
    )

    assert error_links(page) == ["All environments"]
    assert "<nav aria" not in page
