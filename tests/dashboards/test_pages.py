"""What each page says, rendered from models: words, numbers, forms, and why it is blocked."""

import re
from dataclasses import replace

import pytest

from control_plane.errors import StateConflict
from control_plane.queries.pages import GatePage, GuardCard, PromotionLine
from control_plane.state import PromotionStatus
from dashboards import formatting as fmt
from dashboards.forms import FormReading
from dashboards.plots import forest_plot, verdict_counts
from dashboards.views.overview import announcement, grouped
from reducer.vocabulary import Gate, Mode, Verdict
from tests.dashboards import samples
from tests.dashboards.conftest import OPERATOR, VIEWER, Render

ALL = samples.FRAME.environments


def words(html: str) -> str:
    """Return the text of a page as one line, with the characters of a keyboard."""
    text = re.sub(r"<[^>]+>", "", html).replace("&nbsp;", " ").replace("&#39;", "'")
    text = text.replace(fmt.GAP, " ").replace(fmt.MINUS, "-").replace(fmt.TIMES, "x")
    return " ".join(text.split())


def overview_of(render: Render, *cards: GuardCard, seen: str | None = None) -> str:
    groups = grouped(replace(samples.OVERVIEW, cards=cards), ALL)
    spoken = announcement(groups) if seen else ""
    return render(
        "overview.html",
        frame=samples.FRAME,
        groups=groups,
        environment=None,
        announcement=spoken,
        seen="digest",
    )


def gate_of(render: Render, page: GatePage = samples.GATE_PAGE, **values: object) -> str:
    return render(
        "gate.html",
        **{
            "page": page,
            "frame": page.frame,
            "plot": forest_plot(page.evaluation),
            "verdict_counts": verdict_counts(page.evaluation),
            "form": FormReading(),
            "refusal": None,
            "can_change": True,
        }
        | values,
    )


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
        }
        | values,
    )


def rollback_of(render: Render, **values: object) -> str:
    return render(
        "rollback.html",
        **{
            "page": samples.ROLLBACK_PAGE,
            "frame": samples.FRAME,
            "form": FormReading(),
            "outcome": None,
            "can_change": True,
        }
        | values,
    )


def test_the_overview_says_mode_share_wave_telemetry_and_the_next_step(render: Render) -> None:
    said = words(overview_of(render, samples.CARD, samples.PUBLIC))

    for fact in (
        "5 % of owners, ceiling 5 %",
        "5 of 7 complete days",
        "flowing, last record 18 s ago · 84,322 accepted, 3 refused",
        "Not proven: completion 93.1 % enforced v 93.9 % control",
        "promote to ◑ warn: not yet. Internal must have passed the warn step first.",
        "No gate has been evaluated yet.",
    ):
        assert fact in said


def test_an_environment_without_a_rollout_says_how_to_begin(render: Render) -> None:
    assert "No guard is under rollout here yet" in words(overview_of(render, samples.CARD))


def test_a_latched_environment_comes_first_and_says_why(render: Render) -> None:
    latched = replace(samples.LATCHED, environment="public-cloud")
    page = overview_of(render, samples.CARD, latched)

    assert page.index('id="env-public-cloud"') < page.index('id="env-internal"')
    assert "public-cloud was rolled back to shadow by guardwave" in words(page)
    assert samples.LATCH.reason in words(page)


@pytest.mark.parametrize(
    ("worse", "better"),
    [
        pytest.param({"latch": samples.LATCH}, {"open_violations": 3}, id="a latch"),
        pytest.param({"open_violations": 1}, {}, id="a violation"),
        pytest.param(
            {"gate": replace(samples.SUMMARY, verdict=Verdict.BEYOND)},
            {"gate": replace(samples.SUMMARY, verdict=Verdict.WITHIN)},
            id="a worse verdict",
        ),
    ],
)
def test_the_worst_rollout_comes_first(worse: dict[str, object], better: dict[str, object]) -> None:
    cards = (
        replace(samples.CARD, guard="a", **better),  # type: ignore[arg-type]  # a table of fields
        replace(samples.CARD, guard="b", **worse),  # type: ignore[arg-type]  # a table of fields
    )
    (group, _) = grouped(replace(samples.OVERVIEW, cards=cards), ALL)

    assert [card.guard for card in group.cards] == ["b", "a"]


def test_a_change_of_mode_is_said_aloud_and_nothing_else_is(render: Render) -> None:
    quiet = overview_of(render, samples.CARD)
    loud = overview_of(render, samples.LATCHED, seen="older")

    assert "hx-swap-oob" not in quiet
    assert f"{samples.GUARD} in internal: shadow, rolled back:" in words(loud)


def test_the_gate_page_shows_sentence_checks_plot_and_table(render: Render) -> None:
    page = gate_of(render)
    said = words(page)

    assert "Beyond the margin: tokens 14,311 enforced v 11,872 control" in said
    assert "84,198 of 84,322 ended prompts are whole" in said
    assert "6 metrics: 2 within, 1 unproven, 1 no data, 1 beyond." in said
    assert "-2.04 to +0.44 pp" in said
    assert "Absence of proof never promotes" in said
    assert "intake outage of 12 min" in said


def test_a_missing_number_is_never_a_zero_on_the_gate_page(render: Render) -> None:
    page = gate_of(render)
    row = page[page.index("Latency p95 <span") :]

    assert words(row[: row.index("</tr>")]).count("no data") == 7


def test_a_promotion_that_is_not_allowed_says_why_and_has_no_form(render: Render) -> None:
    page = gate_of(render)

    assert 'aria-disabled="true" aria-describedby="why-not"' in page
    assert "Not now: the verdict is beyond, not within." in words(page)
    assert "/promotions" not in page


def test_a_promotion_that_is_allowed_posts_the_digest_that_was_seen(render: Render) -> None:
    page = gate_of(render, replace(samples.GATE_PAGE, offer=samples.OFFER), identity=OPERATOR)

    assert f'name="digest" value="{samples.GATE_PAGE.digest}"' in page
    assert 'name="to" value="enforce"' in page
    assert 'name="share_bps" value="500"' in page
    assert "Type internal to confirm" in words(page)


def test_a_viewer_sees_who_could_promote(render: Render) -> None:
    page = gate_of(
        render,
        replace(samples.GATE_PAGE, offer=samples.OFFER),
        identity=VIEWER,
        can_change=False,
    )

    assert "/promotions" not in page
    assert "The token eyes is viewer; this needs operator of internal." in words(page)


def test_an_older_evaluation_leads_to_the_newest(render: Render) -> None:
    page = gate_of(render, replace(samples.GATE_PAGE, newest_id=14))

    assert "A newer evaluation exists" in words(page)
    assert "/gates/14" in page


@pytest.mark.parametrize(
    ("status", "refusal", "said"),
    [
        pytest.param(PromotionStatus.PENDING, None, "Reload to see", id="pending"),
        pytest.param(PromotionStatus.DONE, None, "Promotion 3: done.", id="done"),
        pytest.param(PromotionStatus.REFUSED, "latched.", "Refused: latched.", id="refused"),
    ],
)
def test_a_promotion_that_was_asked_for_says_where_it_is(
    render: Render, status: PromotionStatus, refusal: str | None, said: str
) -> None:
    line = PromotionLine(3, status, samples.NOW, "ops", "looks <b>good</b> to me", refusal)
    page = gate_of(render, replace(samples.GATE_PAGE, promotions=(line,)))

    assert said in words(page)
    assert "looks &lt;b&gt;good&lt;/b&gt; to me" in page


def test_a_refusal_is_shown_with_its_numbers_and_keeps_what_was_typed(render: Render) -> None:
    form = FormReading(typed={"reason": "seven quiet days"})
    page = gate_of(
        render,
        replace(samples.GATE_PAGE, offer=samples.OFFER),
        form=form,
        refusal=StateConflict("gate evaluation 12 is unproven"),
    )

    assert "Conflict with the present state. gate evaluation 12 is unproven" in words(page)
    assert ">seven quiet days</textarea>" in page


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


def test_the_guard_page_says_why_a_day_does_not_count(render: Render) -> None:
    said = words(guard_of(render))

    assert "28 November 2026does not countintake was away for 12 min" in said
    assert "29 November 2026does not countnot sealed yet" in said


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        pytest.param(12, "Evaluation 12 is ready", id="done"),
        pytest.param(13, "The worker is making evaluation 13", id="not yet"),
    ],
)
def test_an_evaluation_that_was_asked_for_is_followed(
    render: Render, asked: int, said: str
) -> None:
    assert said in words(guard_of(render, asked=asked))


def test_the_rollback_page_says_what_happens_to_how_many_owners(render: Render) -> None:
    said = words(rollback_of(render))

    assert "● enforce (5 % of owners enforced) → ◔ shadow" in said
    assert "enforced62● enforce◔ shadow" in said
    assert "identical_call ◔ shadow: stays as it is." in said
    assert "public-cloud is not touched." in said


def test_rolling_back_twice_is_told_as_such(render: Render) -> None:
    page = replace(samples.ROLLBACK_PAGE, consequences=samples.ROLLBACK_PAGE.consequences[1:])

    said = words(rollback_of(render, page=page, outcome="unchanged"))

    assert "internal is already in shadow." in said
    assert "There was nothing to lower" in said


def test_an_error_is_text_that_its_field_points_to(render: Render) -> None:
    form = FormReading(typed={"reason": "why"}, errors={"reason": "Say why."})
    page = rollback_of(render, form=form)

    assert '<p class="error" id="reason-error">Say why.</p>' in page
    assert 'aria-describedby="reason-hint reason-error" aria-invalid="true"' in page


def test_a_viewer_sees_only_the_environments_of_the_token(render: Render) -> None:
    said = words(rollback_of(render, identity=VIEWER, can_change=False))

    assert "public-cloud" not in said
    assert "this needs operator of internal" in said


def test_the_demo_clock_is_named(render: Render) -> None:
    page = replace(samples.ROLLBACK_PAGE, frame=replace(samples.FRAME, is_demo_clock=True))

    assert "(demo clock)" in words(rollback_of(render, page=page, frame=page.frame))
