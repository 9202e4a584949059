"""The frame and the views: figures, charts, pause, resume, drop; who may; what is refused."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from dovetail.services.role import Role
from tests.services.serve.page.conftest import Opened
from tests.services.serve.page.shop import Shop

pytestmark = pytest.mark.services
_DASH = "\N{EN DASH}"


@pytest.fixture
def spare(shop: Shop) -> Iterator[str]:
    """A view that two others are made of, all of which go after the test."""
    shop.sql(
        "CREATE MATERIALIZED VIEW spare AS SELECT product, n FROM sales;"
        "CREATE MATERIALIZED VIEW spare_one AS SELECT n FROM spare; CREATE VIEW spare_two AS SELECT n FROM spare"
    )
    yield "spare"
    shop.sql("DROP VIEW IF EXISTS spare CASCADE WITH DATA")


def row(page: Page, view: str) -> dict[str, str]:
    """The cells of a view, by their labels."""
    cells = page.locator(f'tr[data-view="{view}"] td[data-label]')
    return {one.get_attribute("data-label") or "": one.inner_text().strip() for one in cells.all()}


def test_each_view_with_its_figures(opened: Opened, shop: Shop) -> None:
    page = opened("views")
    expect(page.locator("tbody tr")).to_have_count(3)
    shop.order((10, "tea", 2.0), (11, "cup", 3.0))
    expect(page.locator('tr[data-view="sales"] td[data-label=watermark]')).to_contain_text("ago")
    expect(page.locator('tr[data-view="sales"] polyline')).to_have_attribute("points", re.compile(r"\d,\d"))
    expect(page.locator('tr[data-view="sales"] td[data-label=batch]')).to_have_text(re.compile(r"^[\d.]+ m?s$"))
    cells = row(page, "sales")
    assert cells["state"] == "running"
    assert (cells["late"], cells["restarts"]) == ("0", "0")
    # Other files of this folder send records that are rejected, before or after this one.
    assert re.fullmatch(r"\d+", cells["rejected"])
    page.get_by_label("filter by name").fill("larg")
    assert [one.get_attribute("data-view") for one in page.locator("tbody tr:visible").all()] == ["large"]


def test_a_view_without_input_has_no_delay(opened: Opened, shop: Shop) -> None:
    """Its last batch and the time since then are no measure of it: a dash, and the reason where one points at it."""
    shop.order((12, "tea", 2.0))
    page = opened("views")
    for label in ("latency", "batch", "watermark"):
        cell = page.locator(f'tr[data-view="sales"] td[data-label={label}]')
        expect(cell).to_have_text(_DASH)
        expect(cell).to_have_attribute("title", re.compile("^idle: all input is answered"))
        expect(page.get_by_role("columnheader", name=label)).to_have_attribute("title", re.compile("while it is idle"))
    page.get_by_role("link", name="sales", exact=True).click()
    expect(page.locator("dt:text-is('latency') + dd")).to_contain_text(f"{_DASH} (idle")
    expect(page.locator("dt:text-is('watermark') + dd")).to_have_text(re.compile("UTC, idle$"))


@pytest.fixture
def clicks(shop: Shop) -> Iterator[str]:
    """A stream that makes its own rows."""
    shop.sql("CREATE RANDOM STREAM clicks (a int64) SETTINGS eps = 20")
    yield "clicks"
    shop.sql("DROP STREAM clicks WITH DATA")


def test_what_makes_its_own_rows_is_no_view(opened: Opened, clicks: str) -> None:
    page = opened("views")
    made = page.locator(f'tr[data-generator="{clicks}"]')
    expect(made.locator("[data-label=rate]")).to_have_text(re.compile(r"^[1-9][\d.]*/s of 20/s$"))
    expect(page.locator("tr[data-view]")).to_have_count(3)
    expect(page.get_by_role("button", name=f"Drop {clicks}")).to_have_count(0)
    page.get_by_role("button", name=f"Pause {clicks}").click()
    expect(made.locator(".badge")).to_have_text("paused")
    page.get_by_role("button", name=f"Resume {clicks}").click()
    expect(made.locator(".badge")).to_have_text("running")
    expect(page.locator(".error")).to_have_count(0)
    made.get_by_role("link", name=clicks).click()
    aside = page.locator("aside")
    expect(aside.locator("dt:text-is('generates') + dd")).to_contain_text("of 20/s")
    expect(aside).to_contain_text("a int64")
    expect(aside).not_to_contain_text("EXPLAIN")
    expect(page.locator(f'g.node[data-name="{clicks}"]')).to_contain_text("generator · running")
    page.goto(page.url.split("#")[0] + f"#/views/{clicks}")
    expect(aside.get_by_role("heading", name=clicks)).to_be_visible()


def test_late_and_rejected_rows_are_counted(opened: Opened, shop: Shop) -> None:
    shop.sql(
        "CREATE MATERIALIZED VIEW by_minute AS SELECT window_start, count() AS n FROM tumble(orders, at, 60s)"
        " GROUP BY window_start EMIT ON WINDOW CLOSE"
    )
    try:
        shop.order((20, "tea", 2.0))
        page = opened("views/by_minute")
        expect(page.locator("dl")).to_contain_text("UTC")
        shop.sql("INSERT INTO orders (id, product, amount, at) VALUES (21, 'tea', 1.0, '2001-01-01 00:00:00')")
        expect(page.locator("dt:text-is('late, rejected, restarts') + dd")).to_have_text("1, 0, 0")
    finally:
        shop.sql("DROP VIEW by_minute")


def test_the_hour_of_a_view(opened: Opened) -> None:
    page = opened("views/sales")
    expect(page.locator("figure canvas")).to_have_count(5)
    expect(page.locator("figure[aria-label='rows in state'] strong")).to_have_text(re.compile(r"^\d+$"))
    expect(page.get_by_text("CREATE MATERIALIZED VIEW sales AS SELECT product")).to_be_visible()
    page.get_by_role("link", name="named").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("named")


def test_the_last_error_has_its_fix(opened: Opened, shop: Shop) -> None:
    shop.sql(
        "CREATE MATERIALIZED VIEW heavy AS SELECT orders.id AS id, weight FROM orders"
        " JOIN parcels ON orders.id = parcels.id SETTINGS join_max_buffered_bytes = 1"
    )
    try:
        shop.sql("INSERT INTO parcels VALUES (1, 2.5), (2, 3.5)")
        page = opened("views")
        failed = page.locator('tr[data-view="heavy"]')
        expect(failed.locator(".badge.bad")).to_have_text("failed")
        failed.get_by_role("link", name="heavy").click()
        error = page.get_by_label("last error")
        expect(error).to_contain_text("join_max_buffered_bytes")
        expect(error).to_contain_text("fix:")
    finally:
        shop.sql("DROP VIEW heavy")


def test_pause_and_resume(opened: Opened, spare: str) -> None:
    page = opened("views")
    state = page.locator(f'tr[data-view="{spare}"] .badge')
    expect(state).to_have_text("running")
    page.get_by_role("button", name="Pause spare", exact=True).click()
    expect(state).to_have_text("paused")
    resume = page.get_by_role("button", name="Resume spare", exact=True)
    expect(resume).to_be_focused()
    resume.press("Enter")
    expect(state).to_have_text("running")
    expect(page.get_by_role("button", name="Pause spare", exact=True)).to_be_focused()


def test_while_the_server_is_away_figures_are_told_to_be_old(opened: Opened, shop: Shop) -> None:
    page = opened("views", allowed=("ERR_",))
    expect(page.locator('tr[data-view="sales"]')).to_be_visible()
    trouble = page.locator("#trouble")
    with shop.without_server():
        expect(trouble).to_contain_text("the server does not answer")
        expect(trouble).to_contain_text("What is shown was so at")
        expect(page.locator("main.stale")).to_have_count(1)
    expect(trouble).to_be_hidden()
    expect(page.locator("main.stale")).to_have_count(0)


def test_a_drop_names_what_goes_with_it(opened: Opened, spare: str) -> None:
    page = opened("views")
    drop = page.get_by_role("button", name="Drop spare", exact=True)
    drop.click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator("li")).to_have_text(["spare_one", "spare_two"])
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    drop.click()
    expect(dialog).to_be_visible()
    page.keyboard.press("Enter")  # leaves it: that button has the focus
    expect(dialog).to_have_count(0)
    expect(page.locator(f'tr[data-view="{spare}"]')).to_be_visible()
    drop.click()
    dialog.get_by_role("button", name="Drop all 3").click()
    expect(page.locator(f'tr[data-view="{spare}"]')).to_have_count(0)
    expect(page.locator('tr[data-view="spare_one"]')).to_have_count(0)


def test_a_reader_has_no_buttons_and_is_refused(opened: Opened, shop: Shop) -> None:
    page = opened("views", role=Role.READER)
    expect(page.locator("tbody tr")).to_have_count(3)
    assert page.locator("tbody button").count() == 0
    headers = {"Authorization": f"Bearer {shop.tokens[Role.READER]}", "Content-Type": "text/plain"}
    for statement in ("PAUSE sales", "DROP VIEW sales CASCADE"):
        refused = httpx.post(f"{shop.address}/v1/sql", content=statement, headers=headers)
        assert refused.status_code == 403


def test_a_token_lets_in_and_a_wrong_one_does_not(opened: Opened, shop: Shop) -> None:
    page = opened("views", role=None)
    field = page.get_by_label("token", exact=True).last
    field.fill("dovetail_wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_text("the token is of no user")).to_be_visible()
    field = page.get_by_label("token", exact=True).last
    field.fill(shop.tokens[Role.READER])
    page.keyboard.press("Enter")
    expect(page.locator("tbody tr")).to_have_count(3)
    expect(page.locator("#user")).to_contain_text("rita, reader")
    page.get_by_role("button", name="Leave").click()
    expect(page.get_by_label("token", exact=True).last).to_be_visible()


def test_another_site_gets_nothing(shop: Shop) -> None:
    headers = {"Authorization": f"Bearer {shop.tokens[Role.ADMIN]}"}
    for foreign in ({"Origin": "https://elsewhere.example"}, {"Sec-Fetch-Site": "cross-site"}):
        for path in ("/", "/page/modules/main.js", "/v1/history", "/v1/user"):
            assert httpx.get(f"{shop.address}{path}", headers=headers | foreign).status_code == 403, path


@pytest.fixture
def other_site(tmp_path: Path) -> Iterator[str]:
    """Another site."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}/"
        server.shutdown()


def test_a_page_of_another_site_has_nothing_done(opened: Opened, shop: Shop, other_site: str) -> None:
    """What a browser sends for it without asking, its user's rights with it, is refused; no frame shows it."""
    page = opened("views", allowed=(other_site, "frame", "NotSameOrigin", "sessionStorage"))
    page.goto(other_site)
    before = refusals(shop)
    refused = page.evaluate(
        """(address) => fetch(`${address}/v1/sql`, { method: "POST", mode: "no-cors", body: "DROP VIEW large",
          headers: { "Content-Type": "text/plain" } }).then(() => false, () => true)""",
        shop.address,
    )
    page.evaluate(
        """(address) => new Promise((resolve) => {
          const frame = document.createElement("iframe");
          frame.onload = resolve;
          frame.src = address;
          document.body.append(frame);
        })""",
        shop.address,
    )
    assert refused
    assert refusals(shop) == before + 2


def refusals(shop: Shop) -> float:
    """Requests so far that whoever sent them may not send."""
    headers = {"Authorization": f"Bearer {shop.tokens[Role.ADMIN]}"}
    page = httpx.get(f"{shop.address}/metrics", headers=headers).text
    found = re.search(r'dovetail_serve_requests_total\{status="403"\} (\S+)', page)
    return float(found[1]) if found else 0.0


def test_text_never_becomes_markup_and_nothing_leaves(opened: Opened) -> None:
    """The policy of the page holds, whatever a module did."""
    page = opened("views", allowed=("Content Security Policy", "TrustedHTML", "elsewhere"))
    expect(page.locator("tbody tr")).to_have_count(3)
    for attempt in (
        "document.body.innerHTML = '<b>x</b>'",
        "document.body.insertAdjacentHTML('beforeend', '<b>x</b>')",
        "fetch('https://elsewhere.example/')",
    ):
        refused = page.evaluate(
            f"(async () => {{ try {{ await ({attempt}); return false }} catch {{ return true }} }})()"
        )
        assert refused, attempt


@pytest.mark.parametrize("size", [(1280, 800), (390, 800)])
@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_and_can_be_read(opened: Opened, size: tuple[int, int], dark: bool) -> None:
    """Nothing sticks out, and text has a contrast of 4.5 with what is behind it."""
    page = opened("views/sales", size=size, dark=dark)
    expect(page.locator("figure canvas")).to_have_count(5)
    for panel in page.locator("nav a").all():
        panel.click()
        expect(page.locator("h1")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
        assert page.evaluate(_FAINT) == []


_FAINT = """() => {
  const numbers = (colour) => colour.match(/[0-9.]+/g).map(Number);
  const light = (colour) => numbers(colour).slice(0, 3).map((one) => one / 255)
    .map((one) => (one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4))
    .reduce((sum, one, place) => sum + one * [0.2126, 0.7152, 0.0722][place], 0);
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const colour = getComputedStyle(one).backgroundColor;
      if (numbers(colour)[3] !== 0) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const texts = [...document.querySelectorAll("body *")].filter((one) => one.checkVisibility()
    && !one.matches("[disabled], [aria-disabled]")
    && [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim()));
  return texts.filter((one) => {
    const [a, b] = [light(getComputedStyle(one).color), light(behind(one))];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5;
  }).map((one) => one.outerHTML.slice(0, 120));
}"""


def test_the_keyboard_is_enough(opened: Opened) -> None:
    """From the top: the skip link, the panels, and on to the view, each in sight."""
    page = opened("views")
    expect(page.locator("tbody tr")).to_have_count(3)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="to the content")).to_be_focused()
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "sales":
            break
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("sales")
