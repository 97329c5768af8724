"""The roll-back page says what happens, to how many, and what has happened."""

from dataclasses import replace

import pytest

from control_plane.queries.pages import WaveProgress
from dashboards.forms import FormReading
from dashboards.views.rollbacks import SubmittedForms, state_of
from dashboards.words import INVARIANT_MEANINGS
from reducer.vocabulary import Invariant
from tests.dashboards import samples
from tests.dashboards.conftest import VIEWER, Render
from tests.dashboards.reading import words
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
    said = words(rollback_of(render))

    assert "● enforce (5 % of owners enforced) → ◔ shadow" in said
    assert "enforced62● enforce◔ shadow" in said
    assert "5 complete days of wave 3 and evaluation 12 (unproven) stop counting" in said
    assert "identical_call ◔ shadow: stays, and begins anew." in said
    assert "121 complete days of wave 1 stop counting" in said
    assert "public-cloud is not touched." in said


def test_rolling_back_twice_is_told_as_such(render: Render) -> None:
    page = replace(samples.ROLLBACK_PAGE, consequences=samples.ROLLBACK_PAGE.consequences[1:])

    said = words(rollback_of(render, page=page, outcome="unchanged"))

    assert "internal is already in shadow." in said
    assert "It also lets shadow begin anew, at this cost:" in said
    assert "There was nothing to lower" in said
    assert "your reason was not kept." in said
    assert "The rollback that holds is number 2, by ops-token," in said


@pytest.mark.parametrize(
    ("changes", "said"),
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
        pytest.param(
            {"begins_anew": False}, "stays as it is.", id="a wave that has only just begun"
        ),
    ],
)
def test_what_a_rollback_costs_is_told_in_numbers(
    render: Render, changes: dict[str, object], said: str
) -> None:
    each = replace(
        samples.ROLLBACK_PAGE.consequences[1],
        **changes,  # type: ignore[arg-type]  # a table of fields
    )

    page = replace(samples.ROLLBACK_PAGE, consequences=(each,))

    assert said in words(rollback_of(render, page=page))


def test_under_a_latch_a_rollback_starts_no_days_again(render: Render) -> None:
    page = replace(
        samples.ROLLBACK_PAGE,
        consequences=(replace(samples.ROLLBACK_PAGE.consequences[1], begins_anew=False),),
        latched=samples.LATCHED_PART,
    )

    said = words(rollback_of(render, page=page))

    assert "identical_call ◔ shadow: stays as it is." in said
    assert "internal stays in shadow, its days start again from zero" in said
    assert "begin anew, at this cost" not in said


def test_an_error_is_text_that_its_field_points_to(render: Render) -> None:
    form = FormReading(typed={"reason": "why"}, errors={"reason": "Say why."})
    page = rollback_of(render, forms=SubmittedForms(rollback=form))

    assert '<p class="error" id="reason-error">Say why.</p>' in page
    assert 'aria-describedby="reason-hint reason-error" aria-invalid="true"' in page


def test_an_automatic_rollback_is_acknowledged_on_what_was_shown(render: Render) -> None:
    page = replace(samples.ROLLBACK_PAGE, latched=samples.LATCHED_PART)
    shown = rollback_of(render, page=page)

    assert "3 open violations, newest first" in words(shown)
    row = f"contract violation a record that the telemetry contract calls impossible{GUARD}"
    for number in (17, 16, 15):
        assert f"Violation {number}{row}● enforce8" in words(shown)
    assert '/environments/internal/rollbacks/2/acknowledgement"' in shown
    assert 'name="last_violation" value="17"' in shown
    assert 'name="etag" value="&#34;e31&#34;"' in shown


@pytest.mark.parametrize(
    ("changes", "newest"),
    [
        pytest.param({"violations": ()}, "No violation was recorded.", id="no violation"),
        pytest.param(
            {}, "The newest violation, which is not open", id="a violation of the archive"
        ),
    ],
)
def test_the_latch_of_an_import_is_acknowledged_as_such(
    render: Render, changes: dict[str, tuple[()]], newest: str
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
    assert "this needs the role operator of internal" in said


def test_of_many_open_violations_it_is_said_how_many_are_shown(render: Render) -> None:
    part = replace(samples.LATCHED_PART, open_violations=1_000)
    page = replace(samples.ROLLBACK_PAGE, latched=part)

    assert "The newest 3 of 1,000 open violations" in words(rollback_of(render, page=page))


def test_each_invariant_is_explained() -> None:
    assert set(INVARIANT_MEANINGS) == set(Invariant)


def test_the_demo_clock_is_named(render: Render) -> None:
    page = replace(samples.ROLLBACK_PAGE, frame=replace(samples.FRAME, is_demo_clock=True))

    assert "(demo clock)" in words(rollback_of(render, page=page, frame=page.frame))
