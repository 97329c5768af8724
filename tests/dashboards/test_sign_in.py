"""Sign-in: a session from a token or a link, and its end."""

import pytest
from flask import Flask

from guardwave.control_plane.rollouts.access import (
    create_token,
    make_sign_in_code,
    parse_token,
    revoke_token,
)
from guardwave.control_plane.rollouts.context import Context
from guardwave.reducer.vocabulary import Role
from tests.dashboards.conftest import HERE, SignIn


def test_the_cookie_names_a_session_and_nothing_of_the_token(
    pages: Flask, control: Context
) -> None:
    token = create_token(control, role=Role.VIEWER, environment="internal")
    parts = parse_token(token)
    assert parts is not None
    with pages.test_client() as client:
        client.post("/sign-in", headers=HERE, data={"token": token})
        with client.session_transaction() as session:
            assert list(session) == ["session"]
            assert not any(part in session["session"] for part in parts)


def test_a_copied_cookie_is_signed_out_too(pages: Flask, control: Context) -> None:
    token = create_token(control, role=Role.VIEWER, environment="internal")
    client, thief = pages.test_client(), pages.test_client()
    client.post("/sign-in", headers=HERE, data={"token": token})
    cookie = client.get_cookie("guardwave") or client.get_cookie("session")
    assert cookie is not None
    thief.set_cookie(cookie.key, cookie.value)
    assert thief.get("/").status_code == 200

    client.post("/sign-out", headers=HERE)

    assert thief.get("/").status_code == 303


@pytest.mark.parametrize(
    "address",
    [
        pytest.param("//evil.example", id="another host"),
        pytest.param("////evil.example", id="more slashes"),
        pytest.param("/\\evil.example", id="a backslash"),
        pytest.param("https://evil.example", id="a whole address"),
        pytest.param("/a\r\nX: y", id="a line break"),
        pytest.param("/a\tb", id="a tab"),
        pytest.param("", id="nothing"),
    ],
)
def test_signing_in_never_leads_elsewhere(pages: Flask, control: Context, address: str) -> None:
    token = create_token(control, role=Role.VIEWER, environment="internal")
    sent = {"token": token, "next": address}

    answer = pages.test_client().post("/sign-in", headers=HERE, data=sent)

    assert (answer.status_code, answer.headers["Location"]) == (303, "/")


@pytest.mark.parametrize(
    ("token", "status", "expected"),
    [
        pytest.param("", 400, "Paste a token", id="nothing"),
        pytest.param("gw_short", 401, "unknown or revoked", id="not a token"),
        pytest.param("gw_abcdefghijkm_" + "x" * 43, 401, "unknown or revoked", id="an unknown one"),
    ],
)
def test_a_bad_token_does_not_sign_in(pages: Flask, token: str, status: int, expected: str) -> None:
    answer = pages.test_client().post("/sign-in", headers=HERE, data={"token": token})

    assert answer.status_code == status
    assert expected in answer.text
    assert "aria-invalid" in answer.text
    assert "<title>Error: Sign in" in answer.text
    assert "Set-Cookie" not in answer.headers


def test_a_token_for_programs_does_not_sign_in(pages: Flask, control: Context) -> None:
    token = create_token(control, role=Role.INGEST, environment="internal")
    answer = pages.test_client().post("/sign-in", headers=HERE, data={"token": token})

    assert answer.status_code == 403
    assert "for programs" in answer.text


def test_a_one_time_link_signs_in_once(pages: Flask, control: Context) -> None:
    parts = parse_token(create_token(control, role=Role.ADMIN, environment=None))
    assert parts is not None
    code = make_sign_in_code(control, parts[0])

    first = pages.test_client().get(f"/sign-in?code={code}")
    second = pages.test_client().get(f"/sign-in?code={code}")

    assert (first.status_code, first.headers["Location"]) == (303, "/")
    assert second.status_code == 401
    assert "already used" in second.text
    assert "aria-invalid" not in second.text
    assert "<title>Error: Sign in" in second.text


def test_a_revoked_token_ends_its_sessions(pages: Flask, control: Context) -> None:
    token = create_token(control, role=Role.VIEWER, environment="internal")
    client = pages.test_client()
    client.post("/sign-in", headers=HERE, data={"token": token})
    parts = parse_token(token)
    assert parts is not None
    revoke_token(control, parts[0])

    answer = client.get("/")

    assert answer.headers["Location"].startswith("/sign-in")


def test_signing_out_ends_the_session(sign_in: SignIn) -> None:
    client = sign_in()
    client.post("/sign-out", headers=HERE)

    assert client.get("/").status_code == 303
