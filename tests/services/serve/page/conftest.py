"""A browser without a window, and pages of a shop in it that must not complain."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Error, Page, Playwright, expect, sync_playwright

from dovetail.services.role import Role
from tests.services.serve.page.shop import Shop, opened_shop

Opened = Callable[..., Page]
WIDE = (1280, 900)
_PATIENCE_MS = 60_000
expect.set_options(timeout=_PATIENCE_MS)
_REFUSED = "Failed to load resource: the server responded with a status of 4"
"""What a browser says of an answer that the page shows to its user."""


@pytest.fixture(scope="package")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with opened_shop(tmp_path_factory.mktemp("shop")) as opened:
        yield opened


def launched(playwright: Playwright) -> Browser:
    """The Chromium of the machine."""
    chromium = shutil.which("chromium")
    assert chromium, "it needs chromium"
    return playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        without_window = launched(playwright)
        yield without_window
        without_window.close()


@pytest.fixture
def opened(shop: Shop, browser: Browser) -> Iterator[Opened]:
    """``opened("views", role=.., size=.., dark=..)``: a panel, as a user of the role sees it. ``allowed``: parts of
    complaints that the test brings about.

    At the end no page has met an error of JavaScript or of its policy, or asked any other site.
    """
    complaints: list[str] = []
    allowances: list[str] = []

    def heard(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not message.text.startswith(_REFUSED):
            complaints.append(message.text)

    def failed(error: Error) -> None:
        complaints.append(str(error))

    contexts = []

    def open_panel(
        panel: str = "views",
        role: Role | None = Role.ADMIN,
        size: tuple[int, int] = WIDE,
        *,
        dark: bool = False,
        allowed: tuple[str, ...] = (),
    ) -> Page:
        allowances.extend(allowed)
        context = browser.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme="dark" if dark else "light"
        )
        contexts.append(context)
        context.set_default_timeout(_PATIENCE_MS)
        if role is not None:
            context.add_init_script(f"sessionStorage.setItem('dovetail-token', '{shop.tokens[role]}')")
        page = context.new_page()
        page.on("console", heard)
        page.on("pageerror", failed)
        page.on(
            "request", lambda request: None if request.url.startswith(shop.address) else complaints.append(request.url)
        )
        page.goto(f"{shop.address}/#/{panel}")
        return page

    yield open_panel
    for context in contexts:
        context.close()
    assert [one for one in complaints if not any(part in one for part in allowances)] == []
