"""A roster too small for its share: the pages never say that a share of owners is enforced."""

from dataclasses import replace

from guardwave.dashboards.views.overview import group_by_environment
from guardwave.reducer.vocabulary import Mode
from tests.dashboards import samples
from tests.dashboards.conftest import Render
from tests.dashboards.reading import visible_text
from tests.dashboards.test_gate_page import gate_of
from tests.dashboards.test_guard_page import guard_of

NOBODY = "Nobody is enforced: 19 owners are too few for 5 %."
CARD = replace(samples.CARD, nobody_treated=NOBODY)


def test_the_card_says_that_nobody_is_enforced(render: Render) -> None:
    groups = group_by_environment(
        replace(samples.OVERVIEW, cards=(CARD,)), samples.FRAME.environments
    )
    page = render(
        "overview.html",
        frame=samples.FRAME,
        groups=groups,
        environment=None,
        announcement="",
        seen="digest",
    )

    assert NOBODY in visible_text(page)
    assert "nobody: the roster is too small for 5 %, ceiling 5 %" in visible_text(page)
    assert "of owners, ceiling" not in visible_text(page)


def test_the_guard_page_says_that_nobody_is_enforced(render: Render) -> None:
    text = visible_text(guard_of(render, page=replace(samples.GUARD_PAGE, card=CARD)))

    assert NOBODY in text
    assert "of owners, ceiling" not in text


def test_the_offer_says_that_nobody_would_be_enforced(render: Render) -> None:
    nobody = "Nobody would be enforced: 19 owners are too few for 5 %."
    offer = replace(samples.OFFER, to=Mode.ENFORCE, nobody_treated=nobody)

    assert nobody in visible_text(gate_of(render, page=replace(samples.GATE_PAGE, offer=offer)))
