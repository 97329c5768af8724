"""A roster too small for its share: the pages never say that a share of owners is enforced."""

from dataclasses import replace

from dashboards.views.overview import grouped
from reducer.vocabulary import Mode
from tests.dashboards import samples
from tests.dashboards.conftest import Render
from tests.dashboards.reading import words
from tests.dashboards.test_gate_page import gate_of
from tests.dashboards.test_guard_page import guard_of

NOBODY = "Nobody is enforced: 19 owners are too few for 5 %."
CARD = replace(samples.CARD, nobody_treated=NOBODY)


def test_the_card_says_that_nobody_is_enforced(render: Render) -> None:
    groups = grouped(replace(samples.OVERVIEW, cards=(CARD,)), samples.FRAME.environments)
    page = render(
        "overview.html",
        frame=samples.FRAME,
        groups=groups,
        environment=None,
        announcement="",
        seen="digest",
    )

    assert NOBODY in words(page)
    assert "nobody: the roster is too small for 5 %, ceiling 5 %" in words(page)
    assert "of owners, ceiling" not in words(page)


def test_the_guard_page_says_that_nobody_is_enforced(render: Render) -> None:
    said = words(guard_of(render, page=replace(samples.GUARD_PAGE, card=CARD)))

    assert NOBODY in said
    assert "of owners, ceiling" not in said


def test_the_offer_says_that_nobody_would_be_enforced(render: Render) -> None:
    nobody = "Nobody would be enforced: 19 owners are too few for 5 %."
    offer = replace(samples.OFFER, to=Mode.ENFORCE, nobody_treated=nobody)

    assert nobody in words(gate_of(render, page=replace(samples.GATE_PAGE, offer=offer)))
