"""Next step of a gate evaluation: the line below its verdict, with its link."""

from dataclasses import replace

import pytest

from guardwave.control_plane.queries.decision_models import (
    GatePage,
    LadderPosition,
    PositionChange,
    PromotionOffer,
)
from guardwave.control_plane.queries.evaluation_model import JsonValue
from guardwave.control_plane.queries.page_models import LookLine
from guardwave.dashboards import labels
from guardwave.reducer.vocabulary import Metric, Mode
from tests.dashboards import samples
from tests.dashboards.conftest import Render
from tests.dashboards.reading import visible_text
from tests.dashboards.test_gate_page import gate_of

POWER: dict[str, JsonValue] = {
    "topic": "power",
    "is_warning": False,
    "sentence": "A guard that does no harm is within the margin with a chance of so many.",
    "numbers": {"power_completion": 0.38, "power_turns": 0.99},
}
GUARD_PAGE = f"/environments/internal/guards/{samples.GUARD}"


def step(
    render: Render,
    verdict: str,
    *,
    offer: PromotionOffer | None = None,
    page: GatePage = samples.GATE_PAGE,
    can_change: bool = True,
    **changes: JsonValue,
) -> str:
    """Return the HTML of the next step of an evaluation with this verdict."""
    evaluation = samples.evaluation(verdict=verdict, notes=[POWER], **changes)
    shown = gate_of(
        render, replace(page, evaluation=evaluation, offer=offer), can_change=can_change
    )
    return shown[shown.index("Next step:") :].split("</p>")[0]


def test_within_leads_to_the_promotion(render: Render) -> None:
    shown = step(render, "within", offer=samples.OFFER)

    assert 'href="#promotion"' in shown
    assert "promote to enforce for 5 % of the roster" in visible_text(shown)


def test_within_says_who_may_promote_to_somebody_who_may_not(render: Render) -> None:
    shown = step(render, "within", offer=samples.OFFER, can_change=False)

    assert visible_text(shown).endswith(
        "for 5 % of the roster; this needs an operator of internal."
    )


def test_within_says_why_nothing_can_be_promoted_now(render: Render) -> None:
    why = "public-cloud requires that internal has passed the same step"
    card = replace(samples.CARD, environment="public-cloud")
    offer = replace(samples.OFFER, is_allowed=False, why_not=why)
    shown = step(render, "within", offer=offer, page=replace(samples.GATE_PAGE, card=card))

    assert f"not now. {why}." in visible_text(shown)


def test_at_the_top_of_the_ladder_there_is_no_next_step(render: Render) -> None:
    assert "none. 5 % is the ceiling" in visible_text(step(render, "within"))


def test_beyond_leads_to_setting_lower_and_to_rolling_back(render: Render) -> None:
    shown = step(render, "beyond")

    assert "do not promote" in shown
    assert f'href="{GUARD_PAGE}#cohorts"' in shown
    assert 'href="/environments/internal/rollback"' in shown


def test_unproven_at_its_look_explains_that_waiting_changes_nothing(
    render: Render,
) -> None:
    text = visible_text(step(render, "unproven"))

    assert "Waiting does not change this evaluation: it uses exactly these 7 days." in text
    assert "shown to be within in 38 % of waves (for completion alone)" in text
    assert f"guardwave plan internal {samples.GUARD} computes how many owners are needed." in text


def test_before_the_look_the_days_that_are_left_are_counted(render: Render) -> None:
    days: dict[str, JsonValue] = {
        "declared": 7,
        "complete": 4,
        "used": ["2026-11-20", "2026-11-21", "2026-11-22", "2026-11-23"],
        "not_counted": [],
    }

    assert "wait for 3 more complete days" in visible_text(step(render, "unproven", days=days))


@pytest.mark.parametrize("verdict", ["no_data", "invalid"])
def test_what_is_missing_or_broken_is_among_the_checks(render: Render, verdict: str) -> None:
    assert 'href="#checks"' in step(render, verdict)


def test_an_evaluation_of_the_past_links_to_the_rollout(render: Render) -> None:
    moved = PositionChange(LadderPosition(Mode.WARN, 2, 5), LadderPosition(Mode.SHADOW, 4, 9))
    page = replace(samples.GATE_PAGE, moved_on=moved)

    assert f'href="{GUARD_PAGE}"' in step(render, "within", page=page)


def test_the_least_power_belongs_to_the_metric_that_passes_least() -> None:
    assert labels.least_power(samples.evaluation(notes=[POWER])) == (Metric.COMPLETION, 0.38)
    assert labels.least_power(samples.evaluation()) is None


def test_looks_after_the_evaluation_are_counted_and_left_to_the_guard(render: Render) -> None:
    look = LookLine(3, 7, samples.NOW.date(), False, False, ("No alarm about turns.",))
    page = replace(samples.GATE_PAGE, looks=(look,), later_looks=2)

    text = visible_text(gate_of(render, page))

    assert "2 later looks came after this evaluation: see the guard" in text


def test_unproven_is_explained_where_the_verdict_is_unproven(render: Render) -> None:
    unproven = replace(samples.GATE_PAGE, evaluation=samples.evaluation(verdict="unproven"))

    assert "Absence of proof never promotes" in visible_text(gate_of(render, unproven))
