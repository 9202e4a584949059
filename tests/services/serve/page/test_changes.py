"""The changelog as it grows: what comes, in both forms; filters, pause, chart; and a connection that is lost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.services.serve.page.conftest import Opened
from tests.services.serve.page.shop import MARKUP, Shop

pytestmark = pytest.mark.services


def rows(page: Page) -> Locator:
    return page.locator("table.changes tbody tr")


def texts(page: Page) -> list[list[str]]:
    return [one.locator("td").all_inner_texts() for one in rows(page).all()]


@pytest.fixture
def stock_now(shop: Shop) -> Iterator[str]:
    """A view of rows that are replaced; the shop has what it had before afterwards."""
    shop.sql(
        "CREATE MUTABLE STREAM stock (item string, n int64) PRIMARY KEY (item);"
        "CREATE MATERIALIZED VIEW stock_now AS SELECT item, n FROM stock EMIT CHANGELOG"
    )
    yield "stock_now"
    shop.sql("DROP VIEW stock_now WITH DATA; DROP STREAM stock WITH DATA")


def test_insertions_and_retractions_and_what_they_fold_into(opened: Opened, shop: Shop, stock_now: str) -> None:
    page = opened(f"changes/{stock_now}")
    shop.sql(f"INSERT INTO stock VALUES ('cup', 5), ('{MARKUP}', 3)")
    expect(rows(page)).to_have_count(2)
    shop.sql("INSERT INTO stock VALUES ('cup', 4)")
    expect(rows(page)).to_have_count(4)
    assert texts(page)[:2] == [["+1 why", "cup", "4"], ["-1 why", "cup", "5"]]
    classes = [one.get_attribute("class") for one in rows(page).all()]
    assert sorted(map(str, classes)) == ["in", "in", "in", "out"]
    colours = {
        kind: page.locator(f"tr.{kind}").first.evaluate("(row) => getComputedStyle(row).backgroundColor")
        for kind in ("in", "out")
    }
    assert colours["in"] != colours["out"]
    page.get_by_label("form").select_option("table")
    expect(rows(page)).to_have_count(2)
    assert sorted(texts(page)) == [["1 why", MARKUP, "3"], ["1 why", "cup", "4"]]
    page.get_by_label("filter by value").fill("CU")
    expect(rows(page)).to_have_count(1)
    page.get_by_label("column to filter by").select_option("n")
    expect(rows(page)).to_have_count(0)
    page.get_by_label("filter by value").fill("3")
    expect(rows(page)).to_have_text([f"1 why{MARKUP}3"])


def test_while_it_is_paused_changes_wait(opened: Opened, shop: Shop) -> None:
    page = opened("changes/orders")
    expect(rows(page)).not_to_have_count(0)
    pause = page.get_by_role("button", name="Pause")
    pause.click()
    before = texts(page)
    shop.order((70, "tea", 1.0), (71, "tea", 2.0))
    expect(page.get_by_role("status").filter(has_text="2 wait")).to_be_visible()
    assert texts(page) == before
    page.get_by_role("button", name="Continue").click()
    expect(rows(page)).to_have_count(len(before) + 2)
    assert {one[1] for one in texts(page)[:2]} == {"70", "71"}  # of which partition comes first is left open


_EXTREMES = """{"big": 9007199254740993, "wide": 18446744073709551615,
"price": "1234567890123456789012345678901234.5678",
"t": "NULL", "n": null, "at": "1950-01-02 03:04:05.678", "a": [-9007199254740993], "m": {"k": 9007199254740995}}"""


@pytest.fixture
def extremes(shop: Shop) -> Iterator[str]:
    """A stream with a row of values that are easily shown as others."""
    shop.sql(
        "CREATE STREAM extremes (big int64, wide uint64, price decimal(38, 4), t string, n nullable(string),"
        " at datetime64(3), a array(int64), m map(string, int64))"
    )
    shop.spoil("extremes", _EXTREMES.encode())
    yield "extremes"
    shop.sql("DROP STREAM extremes WITH DATA")


def test_values_are_shown_as_they_are(opened: Opened, extremes: str) -> None:
    page = opened(f"changes/{extremes}")
    shown = [
        "+1",
        "9007199254740993",
        "18446744073709551615",
        "1234567890123456789012345678901234.5678",
        "NULL",
        "NULL",
        "1950-01-02 03:04:05.678",
        "[-9007199254740993]",
        '{"k":9007199254740995}',
    ]
    cells = rows(page).locator("td")
    expect(cells).to_have_text(shown)
    assert [one.locator(".null").count() for one in cells.all()] == [0, 0, 0, 0, 0, 1, 0, 0, 0]
    page.get_by_label("filter by value").fill("9007199254740993")
    expect(cells.nth(1)).to_have_text("9007199254740993")
    page.get_by_label("filter by value").fill("9007199254740992")
    expect(rows(page)).to_have_count(0)


def test_numbers_keep_their_digits(opened: Opened) -> None:
    """Each as it was written, or a number that is the same."""
    page = opened("views")
    texts = [
        "0",
        "-0.0",
        "1.10",
        "1e300",
        "1e400",
        "1e-400",
        "0.1",
        "9007199254740992",
        "9007199254740993",
        "-1" + "0" * 30,
    ]
    found = page.evaluate(
        """async (texts) => {
          const { parsed, written } = await import("/page/modules/exact.js");
          const { literal } = await import("/page/modules/quote.js");
          return parsed(`[${texts}]`).map((one) => [written(one), literal(one)]);
        }""",
        texts,
    )
    kept = [None, None, None, None, "1e400", "1e-400", None, None, "9007199254740993", None]
    assert [one for one, _ in found] == kept
    assert found[8][1] == "9007199254740993"


def test_a_chart_of_a_column(opened: Opened) -> None:
    page = opened("changes/sales")
    expect(rows(page)).not_to_have_count(0)
    options = page.get_by_label("chart of").locator("option").all_inner_texts()
    assert options == ["no chart", "n", "total"]
    page.get_by_label("chart of").select_option("total")
    expect(page.locator("figure[aria-label=total] canvas")).to_be_visible()
    expect(page.locator("figure[aria-label=total] strong")).not_to_be_empty()


def test_it_goes_on_after_the_server_was_killed(opened: Opened, shop: Shop) -> None:
    """Nothing is missed, and nothing comes twice."""
    page = opened("changes/orders", allowed=("ERR_",))
    shop.order((79, "tea", 1.0))
    first = {"1", "2", "3", "4", "79"}
    for number in first:
        expect(rows(page).locator(f"td:nth-child(2):text-is('{number}')")).to_have_count(1)
    with shop.without_server():
        expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)
    shop.order((80, "tea", 1.0))
    expect(rows(page).first).to_contain_text("80")
    numbers = [number for _, number, *_ in texts(page)]
    assert len(numbers) == len(set(numbers))
    assert set(numbers) >= first | {"80"}


def test_events_may_be_cut_anywhere(opened: Opened) -> None:
    """Whatever the pieces are in which bytes arrive: the same events."""
    page = opened("views")
    found = page.evaluate(
        """async () => {
          const { events } = await import("/page/modules/sse.js");
          const start = 'retry: 1000\\nid: a/\\nevent: start\\ndata: {"n":"ü€𝄞"}\\n\\n';
          const bytes = new TextEncoder().encode(`${start}: beat\\n\\nid: b\\nevent: rows\\ndata: [1]\\n\\n`);
          const cuts = Array.from(bytes, (_, place) => place + 1);
          const all = new Set();
          for (const size of cuts) {
            const body = new ReadableStream({ start(out) {
              for (let at = 0; at < bytes.length; at += size) out.enqueue(bytes.slice(at, at + size));
              out.close();
            } });
            const heard = [];
            for await (const event of events(body)) heard.push(event);
            all.add(JSON.stringify(heard));
          }
          return [...all];
        }"""
    )
    assert found == ['[{"type":"start","id":"a/","data":{"n":"ü€𝄞"}},{"type":"rows","id":"b","data":[1]}]']
