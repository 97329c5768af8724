"""Refused forms: an error at the top, the text kept, and a link back to the field."""

import re
from dataclasses import replace
from datetime import timedelta

import pytest
from flask.testing import FlaskClient

from guardwave.control_plane.core.clock import fixed_clock
from guardwave.control_plane.rollouts.access import create_token
from guardwave.control_plane.rollouts.context import Context
from guardwave.reducer.vocabulary import Role
from tests.dashboards.conftest import GUARD_PATH, HERE, NOW, SignIn, pages_over
from tests.dashboards.reading import visible_text
from tests.dashboards.test_acknowledgement_form import (
    ACKNOWLEDGEMENT,
    PAGE,
    acknowledgement_form,
    latch_by_violation,
)

LONG = "what was seen, " * 100
SET_COHORT = f"{GUARD_PATH}/cohorts/everyone"
SUMMARY = re.compile(r'<div class="banner beyond problems" role="alert".*?</div>', re.DOTALL)


@pytest.fixture
def tomorrow(control: Context) -> FlaskClient:
    """An operator's browser on the next day, when a rollback has days to reset."""
    later = replace(control, clock=fixed_clock(NOW + timedelta(days=1)))
    client = pages_over(later).test_client()
    token = create_token(control, role=Role.OPERATOR, environment="internal")
    client.post("/sign-in", headers=HERE, data={"token": token})
    return client


@pytest.mark.parametrize(
    ("path", "data", "expected"),
    [
        pytest.param(PAGE, {"reason": "why"}, "yours has 3", id="a rollback without a reason"),
        pytest.param(
            SET_COHORT, {"mode": "off", "reason": "no"}, "yours has 2", id="a lowering without one"
        ),
        pytest.param(
            SET_COHORT,
            {"mode": "loud", "reason": "long enough"},
            "got loud",
            id="a lowering to an unknown mode",
        ),
        pytest.param(
            SET_COHORT,
            {"mode": "warn", "reason": "long enough"},
            "A rule is violated",
            id="a lowering that is a raise",
        ),
        pytest.param(
            ACKNOWLEDGEMENT,
            acknowledgement_form('"old"'),
            "changed since this page was shown",
            id="an acknowledgement of an older page",
        ),
        pytest.param(
            ACKNOWLEDGEMENT,
            acknowledgement_form('"old"') | {"reason": LONG},
            "A reason has at most 1,000 characters; yours has 1,499.",
            id="an acknowledgement with a long reason",
        ),
    ],
)
def test_a_refused_form_reports_it_at_the_top_and_links_to_the_field(
    sign_in: SignIn, control: Context, path: str, data: dict[str, str], expected: str
) -> None:
    latch_by_violation(control, "one")
    page = sign_in().post(path, headers=HERE, data=data).text
    (summary,) = SUMMARY.findall(page)

    assert "<title>Error: " in page
    assert "Nothing was changed." in summary
    assert expected in visible_text(summary)
    anchors = re.findall(r'href="#([^"]+)"', summary)
    assert len(anchors) == 1
    assert page.count(f'id="{anchors[0]}"') == 1
    assert page.index(summary) < page.index("<h1>")
    assert f">{data['reason'].strip()}</textarea>" in page


def test_a_refused_evaluation_is_reported_on_the_page_of_its_guard(
    sign_in: SignIn,
) -> None:
    answer = sign_in().post(f"{GUARD_PATH}/gates", headers=HERE, data={"gate": "warn"})
    (summary,) = SUMMARY.findall(answer.text)

    assert answer.status_code == 422
    assert "The phase is shadow, its gate is shadow; warn cannot be evaluated." in visible_text(
        summary
    )
    assert 'href="#evaluations"' in summary
    assert re.findall(r'name="next" value="([^"]*)"', answer.text) == [GUARD_PATH]


def test_a_page_without_a_fault_has_no_summary(sign_in: SignIn) -> None:
    for path in (PAGE, GUARD_PATH):
        page = sign_in().get(path).text
        assert not SUMMARY.search(page)
        assert "<title>Error" not in page


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        pytest.param(ACKNOWLEDGEMENT, PAGE, id="acknowledge"),
        pytest.param(PAGE, PAGE, id="roll back"),
        pytest.param(SET_COHORT, GUARD_PATH, id="set a cohort"),
    ],
)
def test_reloading_and_changing_the_theme_lead_from_a_refused_form_to_its_page(
    sign_in: SignIn, path: str, shown: str
) -> None:
    client = sign_in()
    page = client.post(path, headers=HERE, data={"reason": "no", "mode": "off"}).text

    assert re.findall(r'<a href="([^"]+)">Reload</a>', page) == [shown]
    assert re.findall(r'name="next" value="([^"]*)"', page) == [shown]
    assert client.get(shown).status_code == 200


def test_changing_the_theme_of_a_page_keeps_its_query(sign_in: SignIn) -> None:
    page = sign_in().get(f"{GUARD_PATH}?asked=7").text

    assert f'name="next" value="{GUARD_PATH}?asked=7"' in page


def test_a_rollback_with_a_long_reason_happens_and_reports_the_truncation(
    tomorrow: FlaskClient, control: Context
) -> None:
    answer = tomorrow.post(PAGE, headers=HERE, data={"reason": LONG})
    (rollback,) = control.incidents.rollbacks("internal")

    assert answer.status_code == 303
    assert rollback.reason == LONG[:1000].strip()
    assert "its first 1,000 characters were kept" in tomorrow.get(answer.headers["Location"]).text


def test_lowering_a_cohort_with_a_long_reason_happens_and_reports_it(sign_in: SignIn) -> None:
    client = sign_in()
    answer = client.post(SET_COHORT, headers=HERE, data={"mode": "off", "reason": LONG})

    assert answer.status_code == 303
    assert "its first 1,000 characters were kept" in client.get(answer.headers["Location"]).text


def test_a_rollback_leaves_control_characters_out_of_its_reason(
    tomorrow: FlaskClient, control: Context
) -> None:
    data = {"reason": "pasted\x0b from\r\na log\x00"}

    assert tomorrow.post(PAGE, headers=HERE, data=data).status_code == 303
    (rollback,) = control.incidents.rollbacks("internal")
    assert rollback.reason == "pasted from\na log"


def test_an_acknowledgement_asks_for_a_reason_in_plain_text(
    sign_in: SignIn, control: Context
) -> None:
    etag = latch_by_violation(control, "one")
    data = acknowledgement_form(etag) | {"reason": "a broken\x0b build"}

    answer = sign_in().post(ACKNOWLEDGEMENT, headers=HERE, data=data)

    assert answer.status_code == 400
    assert "The reason contains a control character." in answer.text


def test_a_reason_of_the_greatest_length_with_line_breaks_is_not_truncated(
    tomorrow: FlaskClient, control: Context
) -> None:
    reason = "one line\r\n" * 111 + "x"
    assert len(reason) > 1000

    answer = tomorrow.post(PAGE, headers=HERE, data={"reason": reason})

    (rollback,) = control.incidents.rollbacks("internal")
    assert "cut" not in answer.headers["Location"]
    assert rollback.reason == reason.replace("\r\n", "\n")
