"""Acknowledgement form: the release of an automatic rollback, over a real store."""

import pytest

from guardwave.control_plane.commands.rollback import FoundViolation, latch
from guardwave.control_plane.core.etags import environment_etag
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.rollouts.loading import load_environment
from guardwave.reducer.vocabulary import Invariant, Mode, Role
from tests.dashboards.conftest import GUARD_PATH, HERE, SignIn
from tests.dashboards.reading import visible_text
from tests.dashboards.samples import GUARD

PAGE = "/environments/internal/rollback"
ACKNOWLEDGEMENT = "/environments/internal/rollbacks/1/acknowledgement"


def latch_by_violation(control: Context, identity: str) -> str:
    """Let a record violate an invariant; return the environment's ETag after it."""
    found = FoundViolation(identity, Invariant.CONTRACT_VIOLATION, GUARD, Mode.SHADOW, 1)
    assert latch(control, "internal", [found]) is not None
    return environment_etag(load_environment(control, "internal"))


def acknowledgement_form(etag: str) -> dict[str, str]:
    return {"last_violation": "1", "etag": etag, "reason": "a broken build, now gone"}


def test_an_acknowledgement_releases_the_latch_and_raises_nothing(
    sign_in: SignIn, control: Context
) -> None:
    client = sign_in()
    etag = latch_by_violation(control, "one")
    assert "Acknowledge violation 1" in client.get(PAGE).text

    answer = client.post(ACKNOWLEDGEMENT, headers=HERE, data=acknowledgement_form(etag))

    assert answer.status_code == 303
    assert load_environment(control, "internal").latch is None
    page_text = client.get(answer.headers["Location"]).text
    assert "The latch of internal is released." in page_text
    assert "starts again in shadow with zero days" in page_text


@pytest.mark.parametrize(
    ("changes", "status", "expected"),
    [
        pytest.param({"reason": "fine"}, 400, "at least 10", id="a short reason"),
        pytest.param({"last_violation": "x"}, 400, "must be a whole number", id="no violation"),
        pytest.param({"last_violation": "7"}, 409, "newest violation is 1", id="another one"),
        pytest.param({"etag": ""}, 428, "needs If-Match", id="no etag"),
        pytest.param(
            {"etag": '"old"'}, 412, "changed since this page was shown", id="a stale etag"
        ),
    ],
)
def test_an_acknowledgement_that_cannot_be_comes_back_with_the_reason(
    sign_in: SignIn, control: Context, changes: dict[str, str], status: int, expected: str
) -> None:
    client = sign_in()
    etag = latch_by_violation(control, "one")
    answer = client.post(ACKNOWLEDGEMENT, headers=HERE, data=acknowledgement_form(etag) | changes)

    assert answer.status_code == status
    assert expected in answer.text
    assert f">{(acknowledgement_form(etag) | changes)['reason']}</textarea>" in answer.text
    assert load_environment(control, "internal").latch is not None


def test_a_violation_that_came_after_the_page_was_shown_refuses_and_is_shown(
    sign_in: SignIn, control: Context
) -> None:
    client = sign_in()
    etag = latch_by_violation(control, "one")
    latch_by_violation(control, "two")
    answer = client.post(ACKNOWLEDGEMENT, headers=HERE, data=acknowledgement_form(etag))

    assert answer.status_code == 412
    assert "Acknowledge violation 2" in answer.text
    assert load_environment(control, "internal").latch is not None


def test_every_open_violation_is_listed(sign_in: SignIn, control: Context) -> None:
    latch_by_violation(control, "one")
    latch_by_violation(control, "two")
    page_text = visible_text(sign_in().get(PAGE).text)

    assert "2 open violations, newest first" in page_text
    assert "Violation 2contract violation" in page_text
    assert "Violation 1contract violation" in page_text


def test_the_guard_page_counts_what_latched_though_it_closed_the_wave(
    sign_in: SignIn, control: Context
) -> None:
    latch_by_violation(control, "one")

    assert "Contract violation: 1 violation" in visible_text(sign_in().get(GUARD_PATH).text)


def test_a_viewer_cannot_acknowledge(sign_in: SignIn, control: Context) -> None:
    client = sign_in(Role.VIEWER)
    etag = latch_by_violation(control, "one")
    answer = client.post(ACKNOWLEDGEMENT, headers=HERE, data=acknowledgement_form(etag))

    assert answer.status_code == 403
    assert load_environment(control, "internal").latch is not None


def test_another_site_cannot_acknowledge(sign_in: SignIn, control: Context) -> None:
    client = sign_in()
    etag = latch_by_violation(control, "one")
    there = {"Sec-Fetch-Site": "cross-site"}
    answer = client.post(ACKNOWLEDGEMENT, headers=there, data=acknowledgement_form(etag))

    assert answer.status_code == 403
    assert load_environment(control, "internal").latch is not None
