"""Errors are pages in guardwave's words: what happened, as a sentence, and where to go on."""

import pytest
from flask import Flask, g
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound, RequestEntityTooLarge

from dashboards.problems import problem_page
from tests.dashboards.conftest import SignIn
from tests.dashboards.reading import words


@pytest.mark.parametrize(
    ("error", "said"),
    [
        pytest.param(NotFound(), "Not found No page has the address /<here>.", id="no such page"),
        pytest.param(MethodNotAllowed(), "/<here> does not take POST", id="a wrong method"),
        pytest.param(NotFound("no wave 9"), "Not Found No wave 9.", id="own words are kept"),
        pytest.param(RequestEntityTooLarge(), "exceeds the capacity limit", id="any other"),
    ],
)
def test_an_http_error_is_told_in_a_sentence(app: Flask, error: HTTPException, said: str) -> None:
    with app.test_request_context("/<here>", method="POST"):
        g.identity = None
        page = problem_page(error.code or 500, error.name, error.description or "")

    assert page.status_code == error.code
    assert said in words(page.get_data(as_text=True)).replace("&lt;", "<").replace("&gt;", ">")
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
def test_whoever_does_not_ask_for_something_else_is_sent_to_the_sign_in_page(
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
