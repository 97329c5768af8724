"""Gate page: sentence, checks, plot, table, and the promotion or the reason against it."""

from dataclasses import replace

import pytest

from guardwave.control_plane.core.errors import StateConflict
from guardwave.control_plane.core.state import PromotionStatus
from guardwave.control_plane.queries.decision_models import (
    CohortMove,
    GatePage,
    LadderPosition,
    PositionChange,
    PromotionLine,
)
from guardwave.control_plane.queries.evaluation_model import CheckView, CupedView, JsonValue
from guardwave.dashboards import formatting as fmt
from guardwave.dashboards import labels
from guardwave.dashboards.forms import FormReading, Problem, problem_of
from guardwave.dashboards.plots import forest_plot, verdict_counts
from guardwave.reducer.vocabulary import Cohort, Mode, Verdict
from tests.dashboards import samples
from tests.dashboards.conftest import OPERATOR, VIEWER, Render
from tests.dashboards.reading import visible_text


def gate_of(render: Render, page: GatePage = samples.GATE_PAGE, **values: object) -> str:
    return render(
        "gate.html",
        **{
            "page": page,
            "frame": page.frame,
            "plot": forest_plot(page.evaluation),
            "verdict_counts": verdict_counts(page.evaluation),
            "form": FormReading(),
            "problems": (),
            "can_change": True,
        }
        | values,
    )


def test_the_gate_page_shows_sentence_checks_plot_and_table(render: Render) -> None:
    page = gate_of(render)
    text = visible_text(page)

    assert "Beyond the margin: tokens 14,311 enforced v 11,872 control" in text
    assert "84,198 of 84,322 ended prompts are whole" in text
    assert "6 metrics: 2 within, 1 unproven, 1 no data, 1 beyond." in text
    assert "-2.04 to +0.44 pp" in text
    assert "Absence of proof never promotes" not in text
    assert "intake outage of 12 min" in text


def test_a_missing_number_is_never_a_zero_on_the_gate_page(render: Render) -> None:
    page = gate_of(render)
    row = page[page.index("Latency p95 <span") :]

    assert visible_text(row[: row.index("</tr>")]).count("no data") == 7


def test_a_promotion_that_is_not_allowed_says_why_and_has_no_form(render: Render) -> None:
    page = gate_of(render)

    assert 'aria-disabled="true" aria-describedby="why-not"' in page
    assert "Not now. The verdict is beyond, not within." in visible_text(page)
    assert "/promotions" not in page


def test_a_promotion_that_is_allowed_posts_the_digest_that_was_seen(render: Render) -> None:
    page = gate_of(render, replace(samples.GATE_PAGE, offer=samples.OFFER), identity=OPERATOR)

    assert f'name="digest" value="{samples.GATE_PAGE.digest}"' in page
    assert 'name="to" value="enforce"' in page
    assert 'name="share_bps" value="500"' in page
    assert "Type internal to confirm" in visible_text(page)


def test_a_viewer_sees_who_could_promote(render: Render) -> None:
    page = gate_of(
        render,
        replace(samples.GATE_PAGE, offer=samples.OFFER),
        identity=VIEWER,
        can_change=False,
    )

    assert "/promotions" not in page
    refusal = "The token “eyes” has the role viewer; this needs the role operator of internal."
    assert refusal in visible_text(page)


def test_a_check_shows_only_the_numbers_that_its_sentence_leaves_out(render: Render) -> None:
    text = visible_text(gate_of(render))

    assert "99 % is asked. needed share99 %" in text
    assert "7 of 7 complete days. Telemetry coverage" in text


def test_the_exposure_check_shows_its_needed_share(render: Render) -> None:
    sentence = "9 of 20 prompts of warned (45 %) ran in warn; at least 50 % of warned is asked for."
    numbers = {"needed_share": 0.5, "warned_at_mode": 9, "warned_prompts": 20}
    check = CheckView("exposure", Verdict.UNPROVEN, sentence, numbers)
    evaluation = replace(samples.GATE_PAGE.evaluation, checks=(check,))

    text = visible_text(gate_of(render, replace(samples.GATE_PAGE, evaluation=evaluation)))

    assert f"Exposure unproven {sentence} needed share50 %" in text


def test_a_check_that_the_page_does_not_know_shows_all_its_numbers(render: Render) -> None:
    check = CheckView("novelty", Verdict.WITHIN, "All is new.", {"new_owners": 12})
    evaluation = replace(samples.GATE_PAGE.evaluation, checks=(check,))

    text = visible_text(gate_of(render, replace(samples.GATE_PAGE, evaluation=evaluation)))

    assert "Novelty within All is new. new owners12" in text


def test_an_evaluation_of_a_past_step_says_what_has_moved_on(render: Render) -> None:
    moved = PositionChange(LadderPosition(Mode.WARN, 2, 5), LadderPosition(Mode.SHADOW, 4, 9))
    page = gate_of(render, replace(samples.GATE_PAGE, moved_on=moved, offer=None, newest_id=14))
    text = visible_text(page[page.index('id="promotion"') :])

    assert "the rollout has moved on" in text
    assert "When evaluated◑ warn25" in text
    assert "Now◔ shadow49" in text
    assert "See the newest evaluation" in text
    assert "Promote to" not in text


def test_an_older_evaluation_leads_to_the_newest(render: Render) -> None:
    page = gate_of(render, replace(samples.GATE_PAGE, newest_id=14))

    assert "A newer evaluation exists" in visible_text(page)
    assert "/gates/14" in page


@pytest.mark.parametrize(
    ("status", "refusal", "expected"),
    [
        pytest.param(PromotionStatus.PENDING, None, "Reload to see", id="pending"),
        pytest.param(PromotionStatus.DONE, None, "Promotion 3: done.", id="done"),
        pytest.param(PromotionStatus.REFUSED, "latched.", "Refused. Latched.", id="refused"),
    ],
)
def test_a_requested_promotion_shows_its_state(
    render: Render, status: PromotionStatus, refusal: str | None, expected: str
) -> None:
    line = PromotionLine(3, status, samples.NOW, "ops", "looks <b>good</b> to me", refusal)
    page = gate_of(render, replace(samples.GATE_PAGE, promotions=(line,)))

    assert expected in visible_text(page)
    assert "looks &lt;b&gt;good&lt;/b&gt; to me" in page


def test_a_refusal_is_shown_with_its_numbers_and_keeps_what_was_typed(render: Render) -> None:
    form = FormReading(entries={"reason": "seven quiet days"})
    page = gate_of(
        render,
        replace(samples.GATE_PAGE, offer=samples.OFFER),
        form=form,
        problems=(problem_of(StateConflict("gate evaluation 12 is unproven"), "promotion"),),
    )

    assert "Conflict with the present state. Gate evaluation 12 is unproven" in visible_text(page)
    assert page.index("Nothing was changed.") < page.index("<h1>")
    assert "<title>Error: Enforce gate" in page
    assert ">seven quiet days</textarea>" in page


NOT_ANY_MORE = samples.GATE_PAGE
TOP = replace(samples.GATE_PAGE, offer=None)
PAST = replace(
    TOP, moved_on=PositionChange(LadderPosition(Mode.WARN, 2, 5), LadderPosition(Mode.OFF, 4, 9))
)


@pytest.mark.parametrize(
    "gate_page",
    [
        pytest.param(NOT_ANY_MORE, id="not allowed any more"),
        pytest.param(TOP, id="no step above"),
        pytest.param(PAST, id="moved on"),
    ],
)
def test_an_unused_reason_can_be_copied(render: Render, gate_page: GatePage) -> None:
    page = gate_of(
        render,
        gate_page,
        form=FormReading(entries={"reason": "seven quiet days"}),
        problems=(Problem("Conflict. It is unproven.", "promotion"),),
    )

    assert ">seven quiet days</textarea>" in page
    assert visible_text(page).count("It is unproven") == 1
    assert "/promotions" not in page


def test_owners_that_are_not_rostered_yet_are_estimates(render: Render) -> None:
    moves = (
        CohortMove(Cohort.WARNED, 320, Mode.SHADOW, Mode.WARN, is_estimate=True),
        CohortMove(Cohort.HOLDBACK, 80, Mode.SHADOW, Mode.SHADOW, is_estimate=True),
    )
    offer = replace(samples.OFFER, to=Mode.WARN, moves=moves)
    text = visible_text(gate_of(render, replace(samples.GATE_PAGE, offer=offer)))

    assert "warnedabout 320◔ shadow◑ warn" in text
    assert "holdbackabout 80◔ shadowstays in ◔ shadow" in text
    assert "not known" not in text


def test_an_adjusted_estimate_stands_beside_the_unadjusted_one(
    render: Render,
) -> None:
    cuped: dict[str, JsonValue] = {
        "variance_ratio": 0.95,
        "owners_with_baseline": 1200,
        "owners_new": 40,
        "days": 7,
        "estimate": 0.989,
        "interval": samples.interval(0.97, 1.009),
    }
    ratio: dict[str, JsonValue] = {"kind": "ratio", "margin": 1.1, "estimate": 1.008}
    metrics = [samples.metric(name, **ratio, cuped=cuped) for name in ("tokens", "latency_p95")]
    evaluation = samples.evaluation(metrics=metrics)

    page = gate_of(render, replace(samples.GATE_PAGE, evaluation=evaluation))
    text = visible_text(page[page.index("<table") :])

    assert "Estimate, adjusted" in text
    assert "x0.989 x1.008 as counted 95 % of variance left" in text
    assert "x1.008 as counted 95 % of variance left" in text
    assert "Latency p95 has no adjusted estimate" in text
    assert "leaves out what the 7 days before the wave predicted" in text
    assert "without it" not in text


def test_an_adjustment_without_gain_shows_no_share_of_the_variance() -> None:
    gained, lost = (CupedView(ratio, 100, 0, 7) for ratio in (0.82, 1.03))

    assert labels.remaining_variance(gained) == f"82{fmt.GAP}% of variance left"
    assert labels.remaining_variance(lost) == "no variance removed"
