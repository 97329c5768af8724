"""The pages of a running server in a real Chromium: accessible, quiet, fitting, usable by keyboard.

`live_server` has `url`, `sign_in_url` (one-time, for an admin) and `environments`; the first
environment has a rollout with a gate evaluation.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, StorageState, expect, sync_playwright

pytestmark = pytest.mark.browser

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
RULES = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
}
# How to reach each page from the overview, as a person does: the start of a link's id.
LINKS = {"overview": None, "guard": "guard-", "gate": "gate-", "rollback": "rollback-"}
OVERLAPPING_TEXTS = """() => {
  const boxes = [...document.querySelectorAll("svg.forest text")].map(
    (text) => [text.textContent, text.getBoundingClientRect()]);
  return boxes.flatMap(([one, a], at) => boxes.slice(at + 1)
    .filter(([, b]) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)
    .map(([other]) => `${one} / ${other}`));
}"""

Open = Callable[..., Page]


@pytest.fixture(scope="session")
def chromium(chromium_path: Path) -> Iterator[Browser]:
    """One browser for all tests of this process."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def session_state(chromium: Browser, live_server) -> StorageState:
    """The cookies of someone who followed the one-time link."""
    context = chromium.new_context()
    page = context.new_page()
    page.goto(live_server.sign_in_url)
    expect(page.get_by_role("heading", level=1)).to_have_text("All environments")
    state = context.storage_state()
    context.close()
    return state


@pytest.fixture
def said() -> list[str]:
    """What the consoles of the pages that `visit` opened have printed."""
    return []


@pytest.fixture
def visit(
    chromium: Browser, live_server, session_state: StorageState, said: list[str]
) -> Iterator[Open]:
    """Open a page by its name, signed in, in a context of its own."""
    contexts: list[BrowserContext] = []

    def opened(name: str, **options) -> Page:
        context = chromium.new_context(storage_state=session_state, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        answer = page.goto(live_server.url)
        start = LINKS[name]
        if start is not None:
            link = page.locator(f"a[id^='{start}{live_server.environments[0]}']").first
            answer = page.goto(live_server.url.rstrip("/") + str(link.get_attribute("href")))
        assert answer is not None
        assert answer.ok, f"{answer.url} answered {answer.status}"
        return page

    yield opened
    for context in contexts:
        context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", LINKS)
def test_a_page_has_no_accessibility_violation(visit: Open, name: str, scheme: str) -> None:
    found = Axe().run(visit(name, color_scheme=scheme), options=RULES)

    assert found.violations_count == 0, found.generate_report()


@pytest.mark.parametrize("width", [1280, 1000, 768, 390])
@pytest.mark.parametrize("name", LINKS)
def test_a_page_fits_its_window_and_prints_nothing(
    visit: Open, said: list[str], name: str, width: int
) -> None:
    page = visit(name, viewport={"width": width, "height": 900})

    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert said == []


@pytest.mark.parametrize("width", [1280, 1000, 768])
def test_no_two_texts_of_the_forest_plot_overlap(visit: Open, width: int) -> None:
    page = visit("gate", viewport={"width": width, "height": 900})

    expect(page.locator("svg.forest text").first).to_be_visible()
    assert page.evaluate(OVERLAPPING_TEXTS) == []


def test_the_table_stands_in_for_the_plot_on_a_narrow_screen(visit: Open) -> None:
    page = visit("gate", viewport={"width": 390, "height": 900})

    expect(page.locator("svg.forest")).to_be_hidden()
    expect(page.get_by_role("table").first).to_be_visible()


def test_the_keyboard_reaches_the_roll_back_button_from_the_skip_link(visit: Open) -> None:
    page = visit("rollback")
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    button = page.get_by_role("button", name="Roll back to shadow")
    tabs = 0
    while tabs < 20 and not button.evaluate("button => button === document.activeElement"):
        page.keyboard.press("Tab")
        tabs += 1

    expect(button).to_be_focused()
    outline = button.evaluate("button => getComputedStyle(button).outlineWidth")
    assert outline == "3px"


@pytest.mark.parametrize("name", LINKS)
def test_a_page_works_without_javascript(visit: Open, name: str) -> None:
    page = visit(name, java_script_enabled=False)

    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.locator("#stale")).to_be_hidden()
    if name == "gate":
        expect(page.get_by_role("img", name=re.compile("how much of each margin"))).to_be_visible()


def test_an_unknown_token_is_refused_in_text_that_the_field_points_to(
    chromium: Browser, live_server
) -> None:
    context = chromium.new_context()
    page = context.new_page()
    page.goto(live_server.url)
    page.get_by_label("Token").fill("gw_unknown_secret")
    page.get_by_role("button", name="Sign in").click()

    expect(page.locator("#token-error")).to_contain_text("unknown or revoked")
    expect(page.get_by_label("Token")).to_have_attribute("aria-describedby", re.compile("error"))
    assert Axe().run(page, options=RULES).violations_count == 0
    context.close()


def test_a_one_time_link_works_once(
    chromium: Browser, live_server, session_state: StorageState
) -> None:
    assert session_state["cookies"]
    context = chromium.new_context()
    page = context.new_page()
    page.goto(live_server.sign_in_url)

    expect(page.locator("#token-error")).to_contain_text("was used already")
    context.close()


def test_a_reason_is_asked_for_and_a_rollback_shows_in_front_of_another_viewer(
    visit: Open, live_server
) -> None:
    watching = visit("overview")
    page = visit("rollback")
    page.get_by_role("button", name="Roll back to shadow").click()
    expect(page.get_by_label("Reason")).to_be_focused()

    page.get_by_label("Reason").fill("a drill: someone saw stops that were wrong")
    page.get_by_role("button", name="Roll back to shadow").click()
    name = live_server.environments[0]
    expect(page.get_by_role("status")).to_contain_text(f"{name} is in shadow.")

    section = watching.get_by_role("region", name=name, exact=True)
    for step in section.locator("[aria-current='step']").all():
        expect(step).to_contain_text(re.compile("shadow|off"), timeout=15_000)


def test_a_page_that_stops_being_fresh_says_so(visit: Open) -> None:
    page = visit("overview")
    page.route("**/fragments/**", lambda route: route.abort())

    expect(page.locator("#stale")).to_be_visible(timeout=15_000)


def test_a_look_is_remembered_without_a_flash(visit: Open) -> None:
    page = visit("overview", java_script_enabled=False, color_scheme="light")
    page.get_by_role("button", name="Dark").click()

    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.get_by_role("heading", level=1)).to_have_text("All environments")
