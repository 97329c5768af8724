"""The page of one rollout: cohorts, days, evaluations."""

import re
from dataclasses import replace
from datetime import date, timedelta

import pytest

from control_plane.queries.pages import WaveDayLine
from control_plane.state import EvaluationStatus
from dashboards.formatting import GAP
from dashboards.forms import FormReading
from dashboards.views.guards import DAYS_UNFOLDED, EVALUATIONS_UNFOLDED
from reducer.vocabulary import Gate, Mode
from tests.dashboards import samples
from tests.dashboards.conftest import Render
from tests.dashboards.reading import words


def guard_of(render: Render, **values: object) -> str:
    return render(
        "guard.html",
        **{
            "page": samples.GUARD_PAGE,
            "frame": samples.FRAME,
            "form": FormReading(),
            "form_cohort": None,
            "refusal": None,
            "changed": None,
            "can_change": True,
            "due_gate": Gate.ENFORCE,
            "asked": None,
            "asked_status": None,
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

    assert "There is no lower mode." in words(page)
    assert "<select" not in page


def test_a_rollout_that_is_off_can_be_switched_on_in_shadow(render: Render) -> None:
    off = replace(samples.PUBLIC.cohorts[0], mode=Mode.OFF)
    card = replace(samples.PUBLIC, phase=Mode.OFF, cohorts=(off,), wave=None)

    page = guard_of(render, page=replace(samples.GUARD_PAGE, card=card), due_gate=None)

    assert "Switch on in shadow" in words(page)
    assert 'name="mode" value="shadow"' in page
    assert 'name="etag" value="&#34;r9&#34;"' in page


def test_the_guard_page_says_why_a_day_does_not_count(render: Render) -> None:
    said = words(guard_of(render))

    assert "27 November 2026complete smeared 28 November" in said
    assert "28 November 2026does not countintake was away for 12 min" in said
    assert "29 November 2026does not countnot sealed yet" in said


def test_each_note_of_days_is_told_in_full_once_below_their_table(render: Render) -> None:
    smeared, *rest = samples.GUARD_PAGE.days
    again = replace(smeared, day=date(2026, 11, 26))
    page = replace(samples.GUARD_PAGE, days=(again, smeared, *rest))
    said = words(guard_of(render, page=page))

    _, below = said.split("Notes: what is not exact of these days")
    assert "smeared: 3 points cross midnight (26 November 2026, 27 November 2026)" in below
    assert below.count("smeared") == 1


def test_without_notes_nothing_is_said_of_them(render: Render) -> None:
    days = tuple(replace(each, notes=()) for each in samples.GUARD_PAGE.days)
    said = words(guard_of(render, page=replace(samples.GUARD_PAGE, days=days)))

    assert "28 November 2026does not count" in said
    assert "not exact" not in said


@pytest.mark.parametrize(
    ("status", "said", "polls"),
    [
        pytest.param(EvaluationStatus.DONE, "Evaluation 12 is ready: review it.", 0, id="done"),
        pytest.param(
            EvaluationStatus.PENDING, "The worker is making evaluation 12.", 1, id="not yet"
        ),
        pytest.param(EvaluationStatus.FAILED, "Evaluation 12 could not be made", 0, id="failed"),
    ],
)
def test_an_evaluation_that_was_asked_for_is_followed(
    render: Render, status: EvaluationStatus, said: str, polls: int
) -> None:
    page = guard_of(render, asked=12, asked_status=status)

    assert said in words(page)
    assert page.count("/evaluations/12") == polls


@pytest.mark.parametrize(
    ("unvouched", "untrusted", "said"),
    [
        pytest.param(2, 1, "3 violations were reported without a valid assignment id", id="some"),
        pytest.param(0, 1, "1 violation was reported without a valid assignment id", id="one"),
        pytest.param(0, 0, None, id="none"),
    ],
)
def test_violations_that_change_nothing_are_counted_on_the_page(
    render: Render, unvouched: int, untrusted: int, said: str | None
) -> None:
    health = replace(samples.HEALTH, unvouched_violations=unvouched, untrusted_violations=untrusted)
    card = replace(samples.CARD, telemetry=health)

    page = words(guard_of(render, page=replace(samples.GUARD_PAGE, card=card)))

    if said is None:
        assert "untrusted" not in page
    else:
        assert f"{said} or by untrusted producers" in page


@pytest.mark.parametrize(
    ("accepted", "tag"),
    [
        pytest.param(0, '<details id="remedies" open>', id="nothing was ever accepted"),
        pytest.param(84_322, '<details id="remedies">', id="most is accepted"),
    ],
)
def test_what_to_set_is_on_the_page_and_open_while_nothing_counts(
    render: Render, accepted: int, tag: str
) -> None:
    remedies = ("15 items were quarantined (version_missing): set service.version",)
    health = replace(samples.HEALTH, accepted=accepted, remedies=remedies)
    card = replace(samples.CARD, telemetry=health)

    page = guard_of(render, page=replace(samples.GUARD_PAGE, card=card))

    assert remedies[0] in words(page)
    assert tag in page


def test_telemetry_that_all_counts_has_nothing_to_set(render: Render) -> None:
    assert 'id="remedies"' not in guard_of(render)


def test_the_newest_verdict_stands_at_the_top_with_the_way_to_its_gate(render: Render) -> None:
    page = guard_of(render)
    top = page[: page.index('<dl class="facts wide">')]

    assert "Completion 93.1 % enforced" in words(top)
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
    said = words(guard_of(render, page=replace(samples.GUARD_PAGE, evaluations=many)))

    assert "9 earlier evaluations" in said
    assert said.count("Completion 93.1 % enforced") == EVALUATIONS_UNFOLDED + 1
    assert "Those before evaluation 9 are listed by" in said


@pytest.mark.parametrize(
    ("days_used", "said"),
    [
        pytest.param(7, "It would use the same 7 days as evaluation 12.", id="the same again"),
        pytest.param(5, "It uses the first 7 complete days of wave 3", id="more than before"),
    ],
)
def test_beside_the_button_that_evaluates_stands_what_it_would_use(
    render: Render, days_used: int, said: str
) -> None:
    card = replace(samples.CARD, gate=replace(samples.SUMMARY, days_used=days_used))

    assert said in words(guard_of(render, page=replace(samples.GUARD_PAGE, card=card)))
