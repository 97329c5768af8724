"""Browser fixtures: one server and one browser for all page tests of a process."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Page,
    StorageState,
    expect,
    sync_playwright,
)

from tests.browser.live import LiveServer, served
from tests.support.web_workers import PATIENCE_S

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
Open = Callable[..., Page]
PATIENCE_MS = 1000 * PATIENCE_S


@pytest.fixture(scope="session")
def live_server(chromium_path: Path) -> Iterator[LiveServer]:
    """A running server; without a browser to look at it, it is not even built."""
    with tempfile.TemporaryDirectory(prefix="gw-") as directory, served(Path(directory)) as server:
        yield server


@pytest.fixture(scope="session")
def chromium(chromium_path: Path) -> Iterator[Browser]:
    """One browser for all tests of this process."""
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium_path, args=list(FLAGS), timeout=PATIENCE_MS
        )
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def session_state(chromium: Browser, live_server: LiveServer) -> StorageState:
    """The cookies of someone who followed the one-time link."""
    context = chromium.new_context()
    page = context.new_page()
    page.goto(live_server.sign_in_url)
    expect(page.get_by_role("heading", level=1)).to_have_text("All environments")
    state = context.storage_state()
    context.close()
    return state


@pytest.fixture
def console() -> list[str]:
    """What the consoles of the pages that `visit` opened have printed."""
    return []


@pytest.fixture
def visit(
    chromium: Browser, live_server: LiveServer, session_state: StorageState, console: list[str]
) -> Iterator[Open]:
    """Open an address below the server's, signed in, in a browser context of its own."""
    contexts: list[BrowserContext] = []

    def opened(path: str, **options) -> Page:
        context = chromium.new_context(storage_state=session_state, **options)
        contexts.append(context)
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        page.on("console", lambda message: console.append(message.text))
        page.on("pageerror", lambda error: console.append(str(error)))
        page.goto(live_server.url + path)
        return page

    yield opened
    for context in contexts:
        context.close()
