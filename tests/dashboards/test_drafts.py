"""Drafts: the input of a form whose session had ended comes back after signing in."""

import re
from random import Random

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from guardwave.control_plane.rollouts.access import create_token
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.rollouts.loading import load_environment
from guardwave.reducer.vocabulary import Mode, Role
from tests.dashboards.conftest import GUARD_PATH, HERE
from tests.dashboards.samples import GUARD
from tests.dashboards.test_acknowledgement_form import (
    ACKNOWLEDGEMENT,
    PAGE,
    acknowledgement_form,
    latch_by_violation,
)

SET_COHORT = f"{GUARD_PATH}/cohorts/everyone"
WHY = "three hosts stop good calls"
MOST_COOKIE_BYTES = 4_096


@pytest.fixture
def browser(pages: Flask) -> FlaskClient:
    """A browser whose session has ended."""
    return pages.test_client()


def sign_in_there(browser: FlaskClient, control: Context, sent: TestResponse) -> TestResponse:
    """Follow an answer to the sign-in page, sign in there, and follow to where that leads."""
    assert sent.status_code == 303
    page = browser.get(sent.headers["Location"]).text
    (back,) = re.findall(r'<input type="hidden" name="next" value="([^"]*)">\n    <div', page)
    token = create_token(control, role=Role.OPERATOR, environment="internal")
    answer = browser.post("/sign-in", headers=HERE, data={"token": token, "next": back})
    return browser.get(answer.headers["Location"])


@pytest.mark.parametrize(
    ("action", "data", "shown"),
    [
        pytest.param(PAGE, {"reason": WHY}, PAGE, id="roll back"),
        pytest.param(SET_COHORT, {"reason": WHY, "mode": "off"}, GUARD_PATH, id="set a cohort"),
        pytest.param(
            ACKNOWLEDGEMENT, acknowledgement_form('"e1"') | {"reason": WHY}, PAGE, id="acknowledge"
        ),
    ],
)
def test_signing_in_leads_back_to_the_form_with_what_was_typed(
    browser: FlaskClient, control: Context, action: str, data: dict[str, str], shown: str
) -> None:
    latch_by_violation(control, "one")
    sent = browser.post(action, headers=HERE, data=data)
    assert "hosts" not in sent.headers["Location"]

    page = sign_in_there(browser, control, sent)

    assert page.request.path == shown
    assert page.text.count(f">{WHY}</textarea>") == 1
    assert "You were signed out when you sent this form, so nothing happened." in page.text
    assert load_environment(control, "internal").latch is not None
    rollout = control.environments.rollout("internal", GUARD)
    assert rollout is not None
    assert rollout.phase is Mode.SHADOW
    assert WHY not in browser.get(shown).text


def test_the_sign_in_page_says_that_nothing_was_changed_and_what_was_typed_is_kept(
    browser: FlaskClient,
) -> None:
    assert "What you typed is kept" not in browser.get("/sign-in").text
    browser.post(PAGE, headers=HERE, data={"reason": WHY})

    assert "What you typed is kept" in browser.get("/sign-in").text


def test_a_form_without_a_reason_keeps_nothing(browser: FlaskClient) -> None:
    sent = browser.post(f"{GUARD_PATH}/gates", headers=HERE, data={"gate": "shadow"})

    assert sent.headers["Location"].endswith(f"next={GUARD_PATH.replace('/', '%2F')}")
    assert "What you typed is kept" not in browser.get("/sign-in").text


def test_another_site_leaves_nothing_in_the_browser(browser: FlaskClient) -> None:
    there = {"Sec-Fetch-Site": "cross-site"}
    sent = browser.post(PAGE, headers=there, data={"reason": WHY})

    assert sent.status_code == 403
    assert "Set-Cookie" not in sent.headers


def test_signing_out_forgets_what_was_typed(browser: FlaskClient, control: Context) -> None:
    sent = browser.post(PAGE, headers=HERE, data={"reason": WHY})
    token = create_token(control, role=Role.OPERATOR, environment="internal")
    browser.post("/sign-in", headers=HERE, data={"token": token})
    browser.post("/sign-out", headers=HERE)

    assert WHY not in sign_in_there(browser, control, sent).text


@pytest.mark.parametrize(
    ("first", "last"),
    [
        pytest.param(0x20, 0x7E, id="letters"),
        pytest.param(0x4E00, 0x9FFF, id="three bytes each"),
        pytest.param(0x1F300, 0x1FAFF, id="four bytes each"),
    ],
)
def test_a_long_reason_never_makes_a_cookie_that_browsers_drop(
    browser: FlaskClient, control: Context, first: int, last: int
) -> None:
    random = Random(7)
    reason = "".join(chr(random.randint(first, last)) for _ in range(1_000))
    sent = browser.post(PAGE, headers=HERE, data={"reason": reason})
    assert len(sent.headers["Set-Cookie"]) < MOST_COOKIE_BYTES

    page = sign_in_there(browser, control, sent)

    assert "You were signed out" in page.text
    kept = re.findall(r'<textarea id="reason"[^>]*>([^<]*)</textarea>', page.text)
    assert len(kept[0]) >= 600
