"""A page that stays open says when what stands on it is not so any more."""

import re
from dataclasses import replace

import pytest
from flask.testing import FlaskClient

from control_plane.commands.evaluations import request_evaluation
from control_plane.context import Context
from control_plane.state import EvaluationStatus
from dashboards.views.rollbacks import state_of
from reducer.vocabulary import Cohort, Gate, Mode
from tests.dashboards import samples
from tests.dashboards.conftest import GUARD_PATH, HERE, PERSON, SignIn
from tests.dashboards.reading import words
from tests.dashboards.samples import GUARD
from tests.dashboards.test_acknowledgement_form import PAGE, violated


def polled(page: str) -> str:
    """Return the address that the page's line asks again."""
    (address,) = re.findall(r'id="now" hx-get="([^"]+)"', page)
    return str(address).replace("&amp;", "&")


def spoken(page: str) -> list[str]:
    return re.findall(r'hx-swap-oob="innerHTML:#announcement">([^<]+)<', page)


@pytest.fixture
def client(sign_in: SignIn) -> FlaskClient:
    return sign_in()


@pytest.mark.parametrize(
    ("path", "said"),
    [
        pytest.param(GUARD_PATH, f"{GUARD} has changed since this page was shown.", id="guard"),
        pytest.param(PAGE, "internal has changed since this page was shown.", id="roll back"),
    ],
)
def test_a_page_left_open_says_once_aloud_and_from_then_on_in_text_that_it_is_old(
    client: FlaskClient, control: Context, path: str, said: str
) -> None:
    page = client.get(path).text
    assert 'id="announcement"' in page
    before = client.get(polled(page)).text
    violated(control, "one")

    first = client.get(polled(before)).text
    second = client.get(polled(first)).text

    for each in (page, before):
        assert said not in words(each)
        assert spoken(each) == []
    for each in (first, second):
        assert said in words(each)
    assert len(spoken(first)) == 1
    assert spoken(second) == []
    assert said not in words(client.get(path).text)


def test_a_line_that_moves_keeps_the_moment_of_what_stands_below(client: FlaskClient) -> None:
    shown = "2026-11-29T11:00:00%2B00:00"
    line = client.get(f"/fragments{GUARD_PATH}?generation=1&at={shown}&told=1").text

    assert "12:04:31 UTC; what stands below, as of 11:00:00 UTC" in words(line)
    assert f"at={shown}" in polled(line)


@pytest.mark.parametrize(
    "question",
    [
        pytest.param("", id="none"),
        pytest.param("?generation=x&at=yesterday&told=", id="not readable"),
    ],
)
def test_a_line_that_is_asked_without_what_was_shown_is_of_now(
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
def test_what_a_rollback_would_do_has_a_state_that_moves_with_it(
    changes: dict[str, object],
) -> None:
    page = samples.ROLLBACK_PAGE
    other = replace(page, **changes)  # type: ignore[arg-type]  # a table of fields

    assert state_of(page) == state_of(replace(page, frame=samples.FRAME, etag='"later"'))
    assert state_of(page) != state_of(other)


def test_an_evaluation_that_was_asked_for_appears_when_it_is_ready(
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
    assert f"Evaluation {asked.id} could not be made" in ended.text


def test_an_evaluation_that_nobody_asked_for_is_not_followed(client: FlaskClient) -> None:
    assert "evaluation 99" not in client.get(f"{GUARD_PATH}?asked=99").text
    assert client.get(f"/fragments{GUARD_PATH}/evaluations/99").status_code == 286


def test_a_token_of_another_environment_polls_nothing_of_this_one(sign_in: SignIn) -> None:
    stranger = sign_in(environment="public-cloud")

    for path in (GUARD_PATH, PAGE, f"{GUARD_PATH}/evaluations/1"):
        assert stranger.get(f"/fragments{path}").status_code == 403


def test_setting_a_cohort_lower_moves_the_pages_on(client: FlaskClient) -> None:
    page = client.get(PAGE).text
    data = {"mode": "off", "reason": "this guard is noisy"}
    path = f"{GUARD_PATH}/cohorts/{Cohort.EVERYONE}"
    assert client.post(path, headers=HERE, data=data).status_code == 303

    assert f"Now: {GUARD} ○ off." in words(client.get(polled(page)).text)
