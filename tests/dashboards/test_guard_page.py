"""Guard page: cohorts, days and evaluations of one rollout."""

import re
from dataclasses import replace
from datetime import date, timedelta

import pytest

from guardwave.control_plane.core.state import EvaluationStatus
from guardwave.control_plane.queries.page_models import WaveDayLine
from guardwave.dashboards.formatting import GAP
from guardwave.dashboards.forms import FormReading
from guardwave.dashboards.views.guards import DAYS_UNFOLDED, EVALUATIONS_UNFOLDED
from guardwave.reducer.vocabulary import Gate, Mode
from tests.dashboards import samples
from tests.dashboards.conftest import Render
from tests.dashboards.reading import visible_text


def guard_of(render: Render, **values: object) -> str:
    return render(
        "guard.html",
        **{
            "page": samples.GUARD_PAGE,
            "frame": samples.FRAME,
            "form": FormReading(),
            "form_cohort": None,
            "refusal": None,
            "changed_cohort": None,
            "can_change": True,
            "due_gate": Gate.ENFORCE,
            "requested_evaluation": None,
            "requested_status": None,
            "days_unfolded": DAYS_UNFOLDED,
            "evaluations_unfolded": EVALUATIONS_UNFOLDED,
        }
        | values,
    )


def test_a_cohort_can_only_be_set_lower(render: Render) -> None:
    page = guard_of(render)
    modes = [re.findall(r'<option value="(\w+)"', part) for part in page.split("<article")[1:]]

    assert modes == [["warn", "shadow", "off"], ["shadow", "off"]]


def test_a_cohort_that_is_off_has_nothing_lower(render: Render) -> None:
    off = replace(samples.ENFORCED, mode=Mode.OFF)
    card = replace(samples.CARD, cohorts=(off,))

    page = guard_of(render, page=replace(samples.GUARD_PAGE, card=card))

    assert "There is no lower mode." in visible_text(page)
    assert "<select" not in page


def test_a_rollout_that_is_off_can_be_switched_on_in_shadow(render: Render) -> None:
    off = replace(samples.PUBLIC.cohorts[0], mode=Mode.OFF)
    card = replace(samples.PUBLIC, phase=Mode.OFF, cohorts=(off,), wave=None)

    page = guard_of(render, page=replace(samples.GUARD_PAGE, card=card), due_gate=None)

    assert "Switch on in shadow" in visible_text(page)
    assert 'name="mode" value="shadow"' in page
    assert 'name="etag" value="&#34;r9&#34;"' in page


def test_the_guard_page_says_why_a_day_does_not_count(render: Render) -> None:
    text = visible_text(guard_of(render))

    assert "27 November 2026complete smeared 28 November" in text
    assert "28 November 2026does not countintake was away for 12 min" in text
    assert "29 November 2026does not countnot sealed yet" in text


def test_a_note_of_days_is_explained_once_below_their_table(render: Render) -> None:
    smeared, *rest = samples.GUARD_PAGE.days
    again = replace(smeared, day=date(2026, 11, 26))
    page = replace(samples.GUARD_PAGE, days=(again, smeared, *rest))
    text = visible_text(guard_of(render, page=page))

    _, below = text.split("Notes: what is inexact about these days")
    assert "smeared: 3 points cross midnight (26 November 2026, 27 November 2026)" in below
    assert below.count("smeared") == 1


def test_without_notes_the_page_has_no_list_of_them(render: Render) -> None:
    days = tuple(replace(day, notes=()) for day in samples.GUARD_PAGE.days)
    text = visible_text(guard_of(render, page=replace(samples.GUARD_PAGE, days=days)))

    assert "28 November 2026does not count" in text
    assert "inexact" not in text


@pytest.mark.parametrize(
    ("status", "expected", "polls"),
    [
        pytest.param(EvaluationStatus.DONE, "Evaluation 12 is ready: review it.", 0, id="done"),
        pytest.param(
            EvaluationStatus.PENDING, "The worker is computing evaluation 12.", 1, id="not yet"
        ),
        pytest.param(
            EvaluationStatus.FAILED,
            "Evaluation 12 failed, and nothing was changed.",
            0,
            id="failed",
        ),
    ],
)
def test_a_requested_evaluation_is_followed(
    render: Render, status: EvaluationStatus, expected: str, polls: int
) -> None:
    page = guard_of(render, requested_evaluation=12, requested_status=status)

    assert expected in visible_text(page)
    assert page.count("/evaluations/12") == polls


@pytest.mark.parametrize(
    ("unvouched", "untrusted", "expected"),
    [
        pytest.param(2, 1, "3 violations were reported without a valid assignment id", id="some"),
        pytest.param(0, 1, "1 violation was reported without a valid assignment id", id="one"),
        pytest.param(0, 0, None, id="none"),
    ],
)
def test_violations_that_change_nothing_are_counted_on_the_page(
    render: Render, unvouched: int, untrusted: int, expected: str | None
) -> None:
    health = replace(samples.HEALTH, unvouched_violations=unvouched, untrusted_violations=untrusted)
    card = replace(samples.CARD, telemetry=health)

    page = visible_text(guard_of(render, page=replace(samples.GUARD_PAGE, card=card)))

    if expected is None:
        assert "untrusted" not in page
    else:
        assert f"{expected} or by untrusted producers" in page


@pytest.mark.parametrize(
    ("accepted", "tag"),
    [
        pytest.param(0, '<details id="remedies" open>', id="nothing was ever accepted"),
        pytest.param(84_322, '<details id="remedies">', id="most is accepted"),
    ],
)
def test_the_settings_to_fix_are_open_while_nothing_counts(
    render: Render, accepted: int, tag: str
) -> None:
    remedies = ("15 items were quarantined (version_missing): set service.version",)
    health = replace(samples.HEALTH, accepted=accepted, remedies=remedies)
    card = replace(samples.CARD, telemetry=health)

    page = guard_of(render, page=replace(samples.GUARD_PAGE, card=card))

    assert remedies[0] in visible_text(page)
    assert tag in page


def test_telemetry_that_all_counts_has_nothing_to_set(render: Render) -> None:
    assert 'id="remedies"' not in guard_of(render)


def test_the_newest_verdict_stands_at_the_top_with_a_link_to_its_gate(render: Render) -> None:
    page = guard_of(render)
    top = page[: page.index('<dl class="facts wide">')]

    assert "Completion 93.1 % enforced" in visible_text(top)
    assert f'/environments/internal/guards/{samples.GUARD}/gates/12"' in top


@pytest.mark.parametrize(
    ("days", "folded"),
    [
        pytest.param(DAYS_UNFOLDED, None, id="few"),
        pytest.param(DAYS_UNFOLDED + 1, "1 earlier day", id="one more"),
        pytest.param(DAYS_UNFOLDED + 41, "41 earlier days", id="many"),
    ],
)
def test_the_newest_days_are_shown_and_the_earlier_ones_folded(
    render: Render, days: int, folded: str | None
) -> None:
    first = date(2026, 9, 1)
    lines = tuple(WaveDayLine(first + timedelta(days=n), True, None) for n in range(days))
    page = guard_of(render, page=replace(samples.GUARD_PAGE, days=lines))
    summary = f"<summary>{(folded or '').replace(' ', GAP, 1)}</summary>"
    shown, _, hidden = page.partition(summary)

    assert page.count('<tr><th scope="row"><time') == days
    if folded is None:
        assert "earlier day" not in page
    else:
        assert shown.count('<tr><th scope="row"><time') == DAYS_UNFOLDED
        assert f'datetime="{first}"' in hidden


def test_earlier_evaluations_are_folded_to_a_line_each(render: Render) -> None:
    many = tuple(replace(samples.SUMMARY, evaluation_id=number) for number in range(20, 8, -1))
    text = visible_text(guard_of(render, page=replace(samples.GUARD_PAGE, evaluations=many)))

    assert "9 earlier evaluations" in text
    assert text.count("Completion 93.1 % enforced") == EVALUATIONS_UNFOLDED + 1
    assert "To list the evaluations before 9, call GET" in text


@pytest.mark.parametrize(
    ("days_used", "expected"),
    [
        pytest.param(7, "It would use the same 7 days as evaluation 12.", id="the same again"),
        pytest.param(5, "It uses the first 7 complete days of wave 3", id="more than before"),
    ],
)
def test_the_evaluate_button_explains_which_days_it_uses(
    render: Render, days_used: int, expected: str
) -> None:
    card = replace(samples.CARD, gate=replace(samples.SUMMARY, days_used=days_used))

    assert expected in visible_text(guard_of(render, page=replace(samples.GUARD_PAGE, card=card)))
