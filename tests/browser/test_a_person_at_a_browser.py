"""A person at a browser: signs in, moves by keys, rolls back and watches, on a running server."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Route, StorageState, expect

from guardwave.control_plane.demo.story import GUARD
from tests.browser.conftest import Open
from tests.browser.live import LATCHED, LiveServer
from tests.browser.test_pages_in_a_browser import PAGES, RULES

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

MOST_TABS = 30


def tab_to_button(page: Page, name: str) -> None:
    """Go from the skip link to a button by the tab key alone."""
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    button = page.get_by_role("button", name=name)
    for _ in range(MOST_TABS):
        if button.evaluate("button => button === document.activeElement"):
            break
        page.keyboard.press("Tab")
    expect(button).to_be_focused()
    assert button.evaluate("button => getComputedStyle(button).outlineWidth") == "3px"


@pytest.mark.parametrize(
    ("page", "button"),
    [
        pytest.param("roll back", "Roll back to shadow", id="roll back"),
        pytest.param("acknowledge", "Acknowledge violation 1", id="acknowledge"),
        pytest.param("gate that promotes", "Promote to warn", id="promote"),
    ],
)
def test_the_keyboard_reaches_the_main_button_from_the_skip_link(
    visit: Open, page: str, button: str
) -> None:
    tab_to_button(visit(PAGES[page]), button)


def test_an_unknown_token_is_refused_in_text_that_the_field_points_to(
    chromium: Browser, live_server: LiveServer
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
    chromium: Browser, live_server: LiveServer, session_state: StorageState
) -> None:
    assert session_state.get("cookies")
    context = chromium.new_context()
    page = context.new_page()
    page.goto(live_server.sign_in_url)

    expect(page.get_by_role("alert")).to_contain_text("was already used")
    expect(page.get_by_label("Token")).not_to_have_attribute("aria-invalid", "true")
    context.close()


def test_a_reason_is_asked_for_and_a_rollback_shows_in_front_of_another_viewer(
    visit: Open, live_server: LiveServer
) -> None:
    watching = visit("/")
    page = visit(PAGES["roll back"])
    page.get_by_role("button", name="Roll back to shadow").click()
    expect(page.get_by_label("Reason")).to_be_focused()

    page.get_by_label("Reason").fill("a drill: someone saw stops that were wrong")
    page.get_by_role("button", name="Roll back to shadow").click()
    name = live_server.environments[0]
    expect(page.locator(".banner[role=status]")).to_contain_text(f"{name} is in shadow.")

    section = watching.get_by_role("region", name=name, exact=True)
    for step in section.locator("[aria-current='step']").all():
        expect(step).to_contain_text(re.compile("shadow|off"))


def test_the_banner_of_a_latched_environment_leads_to_its_acknowledgement(visit: Open) -> None:
    page = visit(f"/environments/{LATCHED}")
    page.get_by_role("link", name="Review and acknowledge").click()

    section = page.get_by_role("region", name="Review and acknowledge")
    expect(section).to_contain_text("contract violation")
    expect(section).to_contain_text(GUARD)


def test_a_page_that_stops_being_fresh_shows_it(visit: Open) -> None:
    page = visit("/")
    page.route("**/fragments/**", lambda route: route.abort())

    expect(page.locator("#stale")).to_be_visible()


def test_a_look_is_remembered_without_a_flash(visit: Open) -> None:
    page = visit("/", java_script_enabled=False, color_scheme="light")
    page.get_by_role("button", name="Dark").click()

    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.get_by_role("heading", level=1)).to_have_text("All environments")


def test_a_look_changes_where_the_page_stands_and_keeps_what_was_typed(
    visit: Open, console: list[str]
) -> None:
    page = visit(PAGES["roll back"], color_scheme="light")
    page.get_by_label("Reason").fill("half a reason")
    page.get_by_role("button", name="Dark").click()

    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.get_by_role("button", name="Dark")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_label("Reason")).to_have_value("half a reason")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert console == []


def test_a_refused_form_begins_at_its_summary_and_leads_to_the_field(visit: Open) -> None:
    page = visit(PAGES["acknowledge"])
    # Ten spaces pass the browser's own check of the length.
    page.get_by_label("Reason").first.fill(" " * 12)
    page.get_by_role("button", name="Acknowledge violation 1").click()

    summary = page.get_by_role("alert")
    expect(summary).to_be_in_viewport()
    expect(summary).to_be_focused()
    expect(page).to_have_title(re.compile("^Error: "))
    assert Axe().run(page, options=RULES).violations_count == 0
    summary.get_by_role("link").click()
    expect(page.locator("#acknowledgement-reason")).to_be_focused()


def test_a_page_left_open_shows_that_it_is_old(visit: Open) -> None:
    page = visit(PAGES["acknowledge"])
    changed = page.locator("#now .banner")
    expect(changed).to_have_count(0)

    def of_before(route: Route) -> None:
        route.continue_(url=re.sub("state=[0-9a-f]+", "state=" + "0" * 16, route.request.url))

    page.route("**/fragments/**", of_before)

    expect(changed).to_contain_text("has changed since this page was shown.")
    assert Axe().run(page, options=RULES).violations_count == 0
