"""``make screenshots``: the pictures of the page in the documentation, of a shop that has sold for a while."""

from __future__ import annotations

import random
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from dovetail.services.role import Role
from tests.paths import ROOT
from tests.services.serve.page.conftest import launched
from tests.services.serve.page.shop import MARKUP, Shop, opened_shop

FOLDER = ROOT / "docs" / "pictures"
_SOLD_S = 90
_SETTLES_MS = 4000
_QUERY = """SELECT p.name AS name, count() AS n, sum(amount) AS total
FROM orders AS o LEFT JOIN products AS p ON o.product = p.product
GROUP BY p.name"""


def main() -> int:
    FOLDER.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        opened_shop(Path(folder), serve_watch_s=1, files_dir=Path(folder)) as shop,
        sync_playwright() as playwright,
    ):
        shop.sql(f"DROP VIEW `{MARKUP}`; DROP STREAM parcels; CREATE MATERIALIZED VIEW by_name AS {_QUERY}")
        closed = threading.Event()
        selling = threading.Thread(target=sell, args=(shop, closed))
        selling.start()
        closed.wait(_SOLD_S)
        browser = launched(playwright)
        for name, page in panels(browser, shop):
            page.screenshot(path=FOLDER / f"{name}.png")
            print(FOLDER / f"{name}.png")
        closed.set()
        selling.join()
        browser.close()
    return 0


def sell(shop: Shop, closed: threading.Event) -> None:
    """Orders of one seed, more and fewer of them, until the shop is closed."""
    chance = random.Random(7)
    number = 100
    while not closed.is_set():
        many = chance.randint(2, 30)
        products = chance.choices(("tea", "cup", "pot"), (5, 3, 1), k=many)
        orders = [(number + at, one, round(chance.uniform(1, 20), 2)) for at, one in enumerate(products)]
        shop.order(*orders)
        number += many
        closed.wait(0.5)


def panels(browser: Browser, shop: Shop) -> Iterator[tuple[str, Page]]:
    yield "views", shown(browser, shop, "views", (1280, 330))
    yield "view", shown(browser, shop, "views/sales", (1280, 720))
    yield "graph", shown(browser, shop, "graph/by_name", (1280, 620), dark=True)
    changes = shown(browser, shop, "changes/sales", (1280, 620))
    changes.get_by_label("chart of").select_option("total")
    changes.wait_for_timeout(_SETTLES_MS)
    yield "changes", changes
    editor = shown(browser, shop, "sql", (1280, 560), dark=True)
    editor.get_by_label("statements").fill(_QUERY)
    editor.wait_for_timeout(_SETTLES_MS)
    yield "sql", editor
    yield "narrow", shown(browser, shop, "views", (390, 700), dark=True)


def shown(browser: Browser, shop: Shop, panel: str, size: tuple[int, int], *, dark: bool = False) -> Page:
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]}, color_scheme="dark" if dark else "light"
    )
    context.add_init_script(f"sessionStorage.setItem('dovetail-token', '{shop.tokens[Role.ADMIN]}')")
    page = context.new_page()
    page.goto(f"{shop.address}/#/{panel}")
    page.wait_for_timeout(_SETTLES_MS)
    return page


if __name__ == "__main__":
    sys.exit(main())
