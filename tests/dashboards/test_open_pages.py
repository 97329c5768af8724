"""Open pages: a page that stays open reports when it is out of date."""

import re
from dataclasses import replace

import pytest
from flask.testing import FlaskClient

from guardwave.control_plane.commands.evaluations import request_evaluation
from guardwave.control_plane.core.state import EvaluationStatus
from guardwave.control_plane.rollouts.context import Context
from guardwave.dashboards.views.rollbacks import state_of
from guardwave.reducer.vocabulary import Cohort, Gate, Mode
from tests.dashboards import samples
from tests.dashboards.conftest import GUARD_PATH, HERE, PERSON, SignIn
from tests.dashboards.reading import visible_text
from tests.dashboards.samples import GUARD
from tests.dashboards.test_acknowledgement_form import PAGE, latch_by_violation


def poll_address(page: str) -> str:
    """Return the address that the page's line asks again."""
    (address,) = re.findall(r'id="now" hx-get="([^"]+)"', page)
    return str(address).replace("&amp;", "&")


def announcements(page: str) -> list[str]:
    return re.findall(r'hx-swap-oob="innerHTML:#announcement">([^<]+)<', page)


@pytest.fixture
def client(sign_in: SignIn) -> FlaskClient:
    return sign_in()


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param(GUARD_PATH, f"{GUARD} has changed since this page was shown.", id="guard"),
        pytest.param(PAGE, "internal has changed since this page was shown.", id="roll back"),
    ],
)
def test_an_open_page_announces_once_that_it_is_out_of_date_and_keeps_showing_it(
    client: FlaskClient, control: Context, path: str, expected: str
) -> None:
    page = client.get(path).text
    assert 'id="announcement"' in page
    before = client.get(poll_address(page)).text
    latch_by_violation(control, "one")

    first = client.get(poll_address(before)).text
    second = client.get(poll_address(first)).text

    for fresh in (page, before):
        assert expected not in visible_text(fresh)
        assert announcements(fresh) == []
    for outdated in (first, second):
        assert expected in visible_text(outdated)
    assert len(announcements(first)) == 1
    assert announcements(second) == []
    assert expected not in visible_text(client.get(path).text)


def test_a_polled_line_keeps_the_moment_of_the_rest_of_the_page(client: FlaskClient) -> None:
    shown = "2026-11-29T11:00:00%2B00:00"
    line = client.get(f"/fragments{GUARD_PATH}?generation=1&at={shown}&told=1").text

    assert "12:04:31 UTC; the rest of the page as of 11:00:00 UTC" in visible_text(line)
    assert f"at={shown}" in poll_address(line)


@pytest.mark.parametrize(
    "question",
    [
        pytest.param("", id="none"),
        pytest.param("?generation=x&at=yesterday&told=", id="unreadable"),
    ],
)
def test_a_line_polled_without_the_shown_state_is_current(
    client: FlaskClient, question: str
) -> None:
    for path in (GUARD_PATH, PAGE):
        answer = client.get(f"/fragments{path}{question}")
        assert answer.status_code == 200
        assert "has changed since" not in answer.text


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"latched": samples.LATCHED_PART}, id="a latch"),
        pytest.param({"last": None}, id="a rollback"),
        pytest.param(
            {
                "consequences": (
                    replace(samples.ROLLBACK_PAGE.consequences[0], phase=Mode.WARN),
                    samples.ROLLBACK_PAGE.consequences[1],
                )
            },
            id="a phase",
        ),
    ],
)
def test_the_state_of_a_rollback_page_changes_with_its_effect(
    changes: dict[str, object],
) -> None:
    page = samples.ROLLBACK_PAGE
    other = replace(page, **changes)  # type: ignore[arg-type]  # a table of fields

    assert state_of(page) == state_of(replace(page, frame=samples.FRAME, etag='"later"'))
    assert state_of(page) != state_of(other)


def test_a_requested_evaluation_appears_when_it_is_ready(
    client: FlaskClient, control: Context
) -> None:
    asked = request_evaluation(control, "internal", GUARD, gate=Gate.SHADOW, actor=PERSON)
    waiting = client.get(f"/fragments{GUARD_PATH}/evaluations/{asked.id}")
    fence = control.jobs.lease("internal", PERSON.id)
    failed = replace(asked, status=EvaluationStatus.FAILED)
    assert control.gates.finish_evaluation("internal", failed, fence=fence)
    ended = client.get(f"/fragments{GUARD_PATH}/evaluations/{asked.id}")

    assert (waiting.status_code, waiting.text) == (204, "")
    assert ended.status_code == 286
    assert f"Evaluation {asked.id} failed, and nothing was changed." in ended.text


def test_an_unknown_evaluation_is_not_followed(client: FlaskClient) -> None:
    assert "evaluation 99" not in client.get(f"{GUARD_PATH}?asked=99").text
    assert client.get(f"/fragments{GUARD_PATH}/evaluations/99").status_code == 286


def test_a_token_of_another_environment_polls_nothing_of_this_one(sign_in: SignIn) -> None:
    stranger = sign_in(environment="public-cloud")

    for path in (GUARD_PATH, PAGE, f"{GUARD_PATH}/evaluations/1"):
        assert stranger.get(f"/fragments{path}").status_code == 403


def test_lowering_a_cohort_outdates_open_pages(client: FlaskClient) -> None:
    page = client.get(PAGE).text
    data = {"mode": "off", "reason": "this guard is noisy"}
    path = f"{GUARD_PATH}/cohorts/{Cohort.EVERYONE}"
    assert client.post(path, headers=HERE, data=data).status_code == 303

    assert f"Now: {GUARD} ○ off." in visible_text(client.get(poll_address(page)).text)
