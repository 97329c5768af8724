"""Pages in Chromium: accessible, quiet, fitting, and whole without JavaScript."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from guardwave.control_plane.demo.story import GUARD
from tests.browser.conftest import Open
from tests.browser.live import LATCHED, LONG

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

RULES = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
}
PAGES = {
    "overview": "/",
    "environment": "/environments/internal",
    "guard": f"/environments/internal/guards/{GUARD}",
    "gate": f"/environments/internal/guards/{GUARD}/gates/2",
    "gate that promotes": f"/environments/public-cloud/guards/{GUARD}/gates/1",
    "roll back": "/environments/internal/rollback",
    "acknowledge": f"/environments/{LATCHED}/rollback",
}
# Chromium itself prints that the answer was 404, so this one is not quiet.
PAGES_AND_ERRORS = PAGES | {"error": "/environments/nowhere"}
LONG_NAMED = {
    "environment": f"/environments/{LONG}",
    "guard": f"/environments/{LONG}/guards/{GUARD}",
    "roll back": f"/environments/{LONG}/rollback",
    "error": f"/environments/{LONG}/guards/{GUARD}/gates/9",
}
PRINTED = {name: PAGES[name] for name in ("overview", "guard", "gate")}
GATES = [PAGES["gate"], PAGES["gate that promotes"]]
OVERLAPPING_TEXTS = """() => {
  const boxes = [...document.querySelectorAll("svg.forest text")].map(
    (text) => [text.textContent, text.getBoundingClientRect()]);
  return boxes.flatMap(([one, a], at) => boxes.slice(at + 1)
    .filter(([, b]) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)
    .map(([other]) => `${one} / ${other}`));
}"""


def page_params(pages: dict[str, str]) -> list[object]:
    return [pytest.param(path, id=name) for name, path in pages.items()]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", page_params(PAGES_AND_ERRORS))
def test_a_page_has_no_accessibility_violation(visit: Open, path: str, scheme: str) -> None:
    found = Axe().run(visit(path, color_scheme=scheme), options=RULES)

    assert found.violations_count == 0, found.generate_report()


@pytest.mark.parametrize("width", [1280, 1000, 768, 390])
@pytest.mark.parametrize("path", page_params(PAGES_AND_ERRORS))
def test_a_page_fits_its_window(visit: Open, path: str, width: int) -> None:
    page = visit(path, viewport={"width": width, "height": 900})

    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [1280, 320])
@pytest.mark.parametrize("path", page_params(LONG_NAMED))
def test_the_longest_name_of_an_environment_fits_a_window(
    visit: Open, path: str, width: int
) -> None:
    page = visit(path, viewport={"width": width, "height": 900})

    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("path", page_params(PRINTED))
def test_a_page_in_the_dark_is_printed_as_dark_on_light(visit: Open, path: str) -> None:
    page = visit(path, color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")

    ink = page.evaluate("getComputedStyle(document.querySelector('h1')).color")
    assert sum(map(int, re.findall(r"\d+", ink)[:3])) < 3 * 96
    for here in page.locator(".ladder .here").all():
        expect(here).to_have_css("background-color", "rgba(0, 0, 0, 0)")
    expect(page.get_by_role("button")).to_have_count(0)
    expect(page.get_by_role("navigation", name="Environments")).to_be_hidden()


@pytest.mark.parametrize("path", page_params(PAGES))
def test_a_page_prints_nothing_to_the_console(visit: Open, console: list[str], path: str) -> None:
    page = visit(path)
    for element in page.locator("details").all():
        element.locator("summary").click()

    assert console == []


@pytest.mark.parametrize("width", [1280, 1000, 768])
def test_no_two_texts_of_the_forest_plot_overlap(visit: Open, width: int) -> None:
    page = visit(PAGES["gate"], viewport={"width": width, "height": 900})

    expect(page.locator("svg.forest text").first).to_be_visible()
    assert page.evaluate(OVERLAPPING_TEXTS) == []


@pytest.mark.parametrize("width", [640, 390])
def test_on_a_narrow_screen_the_plot_scrolls_in_its_place_and_keeps_its_key(
    visit: Open, width: int
) -> None:
    page = visit(PAGES["gate"], viewport={"width": width, "height": 900})
    region = page.get_by_role("region", name="Forest plot")

    expect(region).to_be_visible()
    assert region.evaluate("plot => plot.scrollWidth > plot.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    expect(page.locator("figcaption")).to_be_visible()
    assert page.evaluate(OVERLAPPING_TEXTS) == []


@pytest.mark.parametrize("path", page_params(PAGES))
def test_a_page_works_without_javascript(visit: Open, path: str) -> None:
    page = visit(path, java_script_enabled=False)

    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.locator("#stale")).to_be_hidden()
    if path == PAGES["gate"]:
        expect(page.get_by_role("img", name=re.compile("how much of each margin"))).to_be_visible()
