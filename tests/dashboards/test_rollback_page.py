"""Rollback page: the effect of a rollback, its size, and the last rollback."""

from dataclasses import replace

import pytest

from guardwave.control_plane.queries.page_models import WaveProgress
from guardwave.dashboards.forms import FormReading
from guardwave.dashboards.labels import INVARIANT_MEANINGS
from guardwave.dashboards.views.rollbacks import SubmittedForms, state_of
from guardwave.reducer.vocabulary import Invariant
from tests.dashboards import samples
from tests.dashboards.conftest import VIEWER, Render
from tests.dashboards.reading import visible_text
from tests.dashboards.samples import GUARD


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
    text = visible_text(rollback_of(render))

    assert "● enforce (5 % of owners enforced) → ◔ shadow" in text
    assert "enforced62● enforce◔ shadow" in text
    assert "5 complete days of wave 3 and evaluation 12 (unproven) stop counting" in text
    assert "identical_call ◔ shadow: stays, and starts again." in text
    assert "121 complete days of wave 1 stop counting" in text
    assert "public-cloud is not touched." in text


def test_a_second_rollback_reports_that_nothing_changed(render: Render) -> None:
    page = replace(samples.ROLLBACK_PAGE, consequences=samples.ROLLBACK_PAGE.consequences[1:])

    text = visible_text(rollback_of(render, page=page, outcome="unchanged"))

    assert "internal is already in shadow." in text
    assert "It also restarts shadow, at this cost:" in text
    assert "There was no mode to lower" in text
    assert "your reason was not kept." in text
    assert "The rollback in force is number 2, by ops-token," in text


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param(
            {"wave": WaveProgress(1, 1, 7, 7, samples.NOW)},
            "1 complete day of wave 1 stops counting",
            id="one day",
        ),
        pytest.param(
            {"wave": None, "evaluation": samples.SUMMARY},
            "evaluation 12 (unproven) stops counting",
            id="an evaluation alone",
        ),
        pytest.param(
            {"wave": WaveProgress(1, 0, 7, 7, samples.NOW)},
            "No complete day is lost; a new wave begins.",
            id="nothing yet",
        ),
        pytest.param({"restarts": False}, "stays as it is.", id="a wave that has only just begun"),
    ],
)
def test_the_cost_of_a_rollback_is_shown_in_numbers(
    render: Render, changes: dict[str, object], expected: str
) -> None:
    consequence = replace(
        samples.ROLLBACK_PAGE.consequences[1],
        **changes,  # type: ignore[arg-type]  # a table of fields
    )

    page = replace(samples.ROLLBACK_PAGE, consequences=(consequence,))

    assert expected in visible_text(rollback_of(render, page=page))


def test_under_a_latch_a_rollback_resets_no_days(render: Render) -> None:
    page = replace(
        samples.ROLLBACK_PAGE,
        consequences=(replace(samples.ROLLBACK_PAGE.consequences[1], restarts=False),),
        latched=samples.LATCHED_PART,
    )

    text = visible_text(rollback_of(render, page=page))

    assert "identical_call ◔ shadow: stays as it is." in text
    assert "internal stays in shadow, its days start again from zero" in text
    assert "restarts shadow, at this cost" not in text


def test_an_error_is_text_that_its_field_points_to(render: Render) -> None:
    form = FormReading(entries={"reason": "why"}, errors={"reason": "Give a reason."})
    page = rollback_of(render, forms=SubmittedForms(rollback=form))

    assert '<p class="error" id="reason-error">Give a reason.</p>' in page
    assert 'aria-describedby="reason-hint reason-error" aria-invalid="true"' in page


def test_an_automatic_rollback_is_acknowledged_on_what_was_shown(render: Render) -> None:
    page = replace(samples.ROLLBACK_PAGE, latched=samples.LATCHED_PART)
    shown = rollback_of(render, page=page)

    assert "3 open violations, newest first" in visible_text(shown)
    row = f"contract violation a record that the telemetry contract rules out{GUARD}"
    for number in (17, 16, 15):
        assert f"Violation {number}{row}● enforce8" in visible_text(shown)
    assert '/environments/internal/rollbacks/2/acknowledgement"' in shown
    assert 'name="last_violation" value="17"' in shown
    assert 'name="etag" value="&#34;e31&#34;"' in shown


@pytest.mark.parametrize(
    ("changes", "newest"),
    [
        pytest.param({"violations": ()}, "No violation was recorded.", id="no violation"),
        pytest.param({}, "The newest violation (not open)", id="a violation of the archive"),
    ],
)
def test_the_latch_of_an_import_is_acknowledged_as_such(
    render: Render, changes: dict[str, tuple[()]], newest: str
) -> None:
    number = 17 if not changes else 0
    latch = replace(samples.LATCH, newest_violation=number, reason="The evidence was imported.")
    part = replace(samples.LATCHED_PART, latch=latch, open_violations=0, **changes)
    shown = rollback_of(render, page=replace(samples.ROLLBACK_PAGE, latched=part))

    text = visible_text(shown)
    assert "internal has been held in shadow since" in text
    assert "The evidence was imported." in text
    assert newest in text
    assert "Acknowledge the import" in text
    assert f'name="last_violation" value="{number}"' in shown


def test_a_viewer_sees_the_violation_and_the_role_that_may_acknowledge_it(render: Render) -> None:
    page = replace(samples.ROLLBACK_PAGE, latched=samples.LATCHED_PART)
    shown = rollback_of(render, page=page, identity=VIEWER, can_change=False)

    assert "/acknowledgement" not in shown
    assert 'aria-describedby="why-not-acknowledge"' in shown


def test_a_viewer_sees_only_the_environments_of_the_token(render: Render) -> None:
    text = visible_text(rollback_of(render, identity=VIEWER, can_change=False))

    assert "public-cloud" not in text
    assert "this needs the role operator of internal" in text


def test_only_some_of_many_open_violations_are_shown(render: Render) -> None:
    part = replace(samples.LATCHED_PART, open_violations=1_000)
    page = replace(samples.ROLLBACK_PAGE, latched=part)

    assert "The newest 3 of 1,000 open violations" in visible_text(rollback_of(render, page=page))


def test_each_invariant_is_explained() -> None:
    assert set(INVARIANT_MEANINGS) == set(Invariant)


def test_the_demo_clock_is_named(render: Render) -> None:
    page = replace(samples.ROLLBACK_PAGE, frame=replace(samples.FRAME, is_demo_clock=True))

    assert "(demo clock)" in visible_text(rollback_of(render, page=page, frame=page.frame))
