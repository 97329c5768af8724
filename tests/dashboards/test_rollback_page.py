"""The roll-back page says what happens, to how many, and what has happened."""

from dataclasses import replace

import pytest

from dashboards.forms import FormReading
from dashboards.views.rollbacks import SubmittedForms, state_of
from tests.dashboards import samples
from tests.dashboards.conftest import VIEWER, Render
from tests.dashboards.reading import words


def rollback_of(render: Render, **values: object) -> str:
    return render(
        "rollback.html",
        **{
            "page": samples.ROLLBACK_PAGE,
            "frame": samples.FRAME,
            "forms": SubmittedForms(),
            "state": state_of(samples.ROLLBACK_PAGE),
            "outcome": None,
            "can_change": True,
        }
        | values,
    )


def test_the_rollback_page_says_what_happens_to_how_many_owners(render: Render) -> None:
    said = words(rollback_of(render))

    assert "● enforce (5 % of owners enforced) → ◔ shadow" in said
    assert "enforced62● enforce◔ shadow" in said
    assert "identical_call ◔ shadow: stays, and its days start again from zero." in said
    assert "public-cloud is not touched." in said


def test_rolling_back_twice_is_told_as_such(render: Render) -> None:
    page = replace(samples.ROLLBACK_PAGE, consequences=samples.ROLLBACK_PAGE.consequences[1:])

    said = words(rollback_of(render, page=page, outcome="unchanged"))

    assert "internal is already in shadow." in said
    assert "the days of each shadow wave start again from zero" in said
    assert "There was nothing to lower" in said


def test_under_a_latch_a_rollback_starts_no_days_again(render: Render) -> None:
    page = replace(
        samples.ROLLBACK_PAGE,
        consequences=samples.ROLLBACK_PAGE.consequences[1:],
        latched=samples.LATCHED_PART,
    )

    said = words(rollback_of(render, page=page))

    assert "identical_call ◔ shadow: stays as it is." in said
    assert "internal stays in shadow, its days start again from zero" in said
    assert "the days of each shadow wave" not in said


def test_an_error_is_text_that_its_field_points_to(render: Render) -> None:
    form = FormReading(typed={"reason": "why"}, errors={"reason": "Say why."})
    page = rollback_of(render, forms=SubmittedForms(rollback=form))

    assert '<p class="error" id="reason-error">Say why.</p>' in page
    assert 'aria-describedby="reason-hint reason-error" aria-invalid="true"' in page


def test_an_automatic_rollback_is_acknowledged_on_what_was_shown(render: Render) -> None:
    page = replace(samples.ROLLBACK_PAGE, latched=samples.LATCHED_PART)
    shown = rollback_of(render, page=page)

    assert "Newest violation17 of 3 open" in words(shown)
    assert "contract violation" in words(shown)
    assert '/environments/internal/rollbacks/2/acknowledgement"' in shown
    assert 'name="last_violation" value="17"' in shown
    assert 'name="etag" value="&#34;e31&#34;"' in shown


@pytest.mark.parametrize(
    ("changes", "newest"),
    [
        pytest.param({"violation": None}, "Newest violationnone", id="no violation"),
        pytest.param({}, "Newest violation17 not open", id="a violation of the archive"),
    ],
)
def test_the_latch_of_an_import_is_acknowledged_as_such(
    render: Render, changes: dict[str, None], newest: str
) -> None:
    number = 17 if not changes else 0
    latch = replace(samples.LATCH, newest_violation=number, reason="The evidence was imported.")
    part = replace(samples.LATCHED_PART, latch=latch, open_violations=0, **changes)
    shown = rollback_of(render, page=replace(samples.ROLLBACK_PAGE, latched=part))

    said = words(shown)
    assert "internal is held in shadow since" in said
    assert "The evidence was imported." in said
    assert newest in said
    assert "Acknowledge the import" in said
    assert f'name="last_violation" value="{number}"' in shown


def test_a_viewer_sees_the_violation_and_who_could_acknowledge_it(render: Render) -> None:
    page = replace(samples.ROLLBACK_PAGE, latched=samples.LATCHED_PART)
    shown = rollback_of(render, page=page, identity=VIEWER, can_change=False)

    assert "/acknowledgement" not in shown
    assert 'aria-describedby="why-not-acknowledge"' in shown


def test_a_viewer_sees_only_the_environments_of_the_token(render: Render) -> None:
    said = words(rollback_of(render, identity=VIEWER, can_change=False))

    assert "public-cloud" not in said
    assert "this needs operator of internal" in said


def test_the_demo_clock_is_named(render: Render) -> None:
    page = replace(samples.ROLLBACK_PAGE, frame=replace(samples.FRAME, is_demo_clock=True))

    assert "(demo clock)" in words(rollback_of(render, page=page, frame=page.frame))
