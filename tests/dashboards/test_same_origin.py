"""Same origin: forms of other sites are refused, and every page has the security headers."""

import pytest
from flask import Flask


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({"Sec-Fetch-Site": "cross-site"}, id="another site"),
        pytest.param({"Sec-Fetch-Site": "same-site"}, id="a sibling host"),
        pytest.param(
            {"Sec-Fetch-Site": "cross-site", "Origin": "http://localhost"},
            id="the browser's own statement outranks Origin",
        ),
        pytest.param({"Origin": "http://elsewhere.example"}, id="another origin"),
        pytest.param({"Origin": "null"}, id="an opaque origin"),
        pytest.param({}, id="a program without either"),
    ],
)
@pytest.mark.parametrize(
    "path", ["/theme", "/sign-in", "/sign-out", "/environments/internal/rollback"]
)
def test_a_form_from_elsewhere_is_refused(app: Flask, path: str, headers: dict[str, str]) -> None:
    answer = app.test_client().post(path, headers=headers)

    assert answer.status_code == 403
    assert "was not sent from a page of localhost" in answer.text


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({"Sec-Fetch-Site": "same-origin"}, id="a current browser"),
        pytest.param({"Origin": "http://localhost"}, id="an older browser"),
    ],
)
def test_a_form_from_here_is_taken(app: Flask, headers: dict[str, str]) -> None:
    answer = app.test_client().post("/theme", headers=headers, data={"theme": "dark"})

    assert answer.status_code == 303
    assert "theme=dark" in answer.headers["Set-Cookie"]


@pytest.mark.parametrize(
    ("back", "location"),
    [
        pytest.param("/environments/internal?x=1", "/environments/internal?x=1", id="a path here"),
        pytest.param("//elsewhere.example/", "/", id="another host without a scheme"),
        pytest.param("https://elsewhere.example/", "/", id="another host"),
        pytest.param("/\\elsewhere.example", "/", id="a backslash that browsers read as a slash"),
        pytest.param("", "/", id="nothing"),
    ],
)
def test_going_back_never_leaves_this_server(app: Flask, back: str, location: str) -> None:
    answer = app.test_client().post(
        "/theme",
        headers={"Sec-Fetch-Site": "same-origin"},
        data={"theme": "light", "next": back},
    )

    assert answer.headers["Location"] == location


def test_an_unknown_theme_is_not_remembered(app: Flask) -> None:
    answer = app.test_client().post(
        "/theme", headers={"Sec-Fetch-Site": "same-origin"}, data={"theme": "plaid"}
    )

    assert "Set-Cookie" not in answer.headers


def test_every_page_lets_the_browser_load_only_from_here(app: Flask) -> None:
    headers = app.test_client().get("/sign-in").headers

    assert headers["Content-Security-Policy"].startswith("default-src 'none'; ")
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] == "no-store"


def test_whoever_is_not_signed_in_comes_back_after_signing_in(app: Flask) -> None:
    answer = app.test_client().get("/environments/internal/rollback")

    assert answer.status_code == 303
    assert answer.headers["Location"] == "/sign-in?next=%2Fenvironments%2Finternal%2Frollback"


def test_polling_without_a_session_is_an_error_and_not_redirected(app: Flask) -> None:
    assert app.test_client().get("/fragments/overview").status_code == 401
