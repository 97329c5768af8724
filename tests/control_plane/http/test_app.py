from io import BytesIO

import pytest

from guardwave.control_plane.http.middleware.requests import MAX_BODY_BYTES
from guardwave.control_plane.server.app import create_app
from tests.control_plane.http.conftest import assert_problem, every_problem


@pytest.mark.parametrize("secure", [True, False], ids=["over https", "on loopback"])
def test_the_session_cookie_is_kept_from_scripts_and_other_sites(context, admin, secure):
    app = create_app(context, secure_cookies=secure)
    response = app.test_client().post(
        "/sign-in", data={"token": admin.token}, headers={"Sec-Fetch-Site": "same-origin"}
    )
    cookie = response.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert ("Secure" in cookie) is secure


def test_every_process_signs_cookies_with_the_same_key(context):
    assert create_app(context).secret_key == create_app(context).secret_key


def test_every_problem_type_has_an_address_that_explains_it(app):
    for kind in every_problem():
        response = app.test_client().get(f"/problems/{kind.code}")
        assert (response.status_code, response.mimetype) == (200, "text/plain")
        assert response.text.startswith(f"{kind.code}\n\n{kind.status}. ")
    asked = app.test_client().get("/problems/precondition-failed").text
    assert "Read the resource and decide again" in " ".join(asked.split())
    assert "## " not in asked


def test_a_body_without_a_length_is_cut_off(admin, rollout):
    # What a server does for a chunked body: it marks the end itself and names no length.
    response = admin.app.test_client().put(
        f"{rollout}/cohorts/everyone",
        input_stream=BytesIO(b" " * (MAX_BODY_BYTES + 1)),
        content_type="application/json",
        headers={"Authorization": f"Bearer {admin.token}"},
        environ_overrides={"wsgi.input_terminated": True},
    )
    assert_problem(response, 413, "body-too-large")
