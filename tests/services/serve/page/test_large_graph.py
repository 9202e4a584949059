"""A graph of 120 objects: chains, a fan of 60 readers, streams that nobody reads; and the search in it."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import unquote

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from dovetail.runtime.clock import now_ms
from dovetail.sql.catalog import Actual, Catalog, Leadership, Query
from dovetail.sql.engines import Engine
from dovetail.sql.planner import plan_query
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateDictionary, CreateStream, CreateView
from tests.services.serve.page.conftest import WIDE
from tests.services.serve.world import World

pytestmark = pytest.mark.services
_LONG = "wide_" + "W" * 60
_READERS, _CHAINS, _LINKS, _ALONE = 60, 5, 5, 23


def statements() -> list[str]:
    """120 of them, one object each."""
    made = ["CREATE STREAM hub (a int)", f"CREATE STREAM {_LONG} (a int)"]
    made += [view(f"reader_{number}", "hub") for number in range(_READERS)]
    for chain in range(_CHAINS):
        made.append(f"CREATE STREAM chain_{chain}_0 (a int)")
        made += [view(f"chain_{chain}_{link}", f"chain_{chain}_{link - 1}") for link in range(1, _LINKS + 1)]
    made += [f"CREATE STREAM alone_{number} (a int)" for number in range(_ALONE)]
    source = "SOURCE(SQLITE(PATH '/d.db' TABLE 't')) LAYOUT(FLAT())"
    made.append(f"CREATE DICTIONARY names (a int, name string) PRIMARY KEY a {source}")
    many = ("chain_0_5", "chain_1_5", _LONG)
    made.append(f"CREATE MATERIALIZED VIEW many_in AS {' UNION ALL '.join(f'SELECT a FROM {name}' for name in many)}")
    made += [f"CREATE VIEW deep_{number} AS SELECT a FROM reader_{number}" for number in range(3)]
    return made


def view(name: str, read: str) -> str:
    return f"CREATE MATERIALIZED VIEW {name} AS SELECT a FROM {read}"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A service whose catalog has them all; a runner has just been heard of."""
    world = World(tmp_path_factory.mktemp("large"))
    catalog = Catalog.open(world.catalog_url)
    texts = statements()
    assert len(texts) == 120
    for text in texts:
        made = parse_one(text)
        assert isinstance(made, CreateStream | CreateView | CreateDictionary)
        query = Query(made.name, text, "", "", made.name) if text.startswith("CREATE MATERIALIZED") else None
        uses = plan_query(made.name, made, catalog).uses if isinstance(made, CreateView) else ()
        catalog.create(made, now_ms=1, uses=uses, query=query)
    until_ms = now_ms() + 20_000
    catalog.renew_leadership(catalog.take_leadership(Leadership(Engine.SPARK, "host:1", until_ms), now_ms=0), until_ms)
    for query in catalog.queries():
        catalog.report(query.id, now_ms=2, actual=Actual.RUNNING)
    with world.listening() as served:
        yield served
    catalog.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """At its end it has met no error."""
    opened = browser.new_page(viewport={"width": WIDE[0], "height": WIDE[1]})
    complaints: list[str] = []
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    yield opened
    opened.close()
    assert complaints == []


def nodes(page: Page) -> Locator:
    return page.locator("g.node")


def names(page: Page) -> set[str]:
    return {str(one.get_attribute("data-name")) for one in nodes(page).all()}


def sought(page: Page, address: str, text: str, *wide: str) -> Page:
    """The graph, with a text in its search."""
    page.goto(f"{address}/#/graph")
    expect(nodes(page)).to_have_count(120)
    page.get_by_label("find by name").fill(text)
    for side in wide:
        page.get_by_role("button", name=f"all {side}").click()
    return page


@pytest.mark.parametrize("size", [WIDE, (390, 800)])
def test_no_box_lies_on_another_and_no_label_leaves_its_box(page: Page, address: str, size: tuple[int, int]) -> None:
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.goto(f"{address}/#/graph")
    expect(nodes(page)).to_have_count(120)
    expect(page.locator('g.node[data-name="reader_7"] text').nth(1)).to_contain_text("view · ")
    assert page.evaluate(_OVERLAPS) == []
    assert page.evaluate(_LEAVING) == []
    assert page.evaluate(_BEHIND) == []
    title = page.locator(f'g.node[data-name="{_LONG}"] text.title')
    assert (title.text_content() or "").endswith("…")
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]


_OVERLAPS = """() => {
  const boxes = [...document.querySelectorAll("g.node")].map((one) => [one.dataset.name, one.getBoundingClientRect()]);
  return boxes.flatMap(([a, one], place) => boxes.slice(place + 1).filter(([, other]) =>
    one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom
  ).map(([b]) => `${a} and ${b}`));
}"""
_LEAVING = """() => [...document.querySelectorAll("g.node text")].filter((one) => {
  const [text, box] = [one.getBBox(), one.parentElement.querySelector("rect").getBBox()];
  return text.x < box.x || text.y < box.y || text.x + text.width > box.width || text.y + text.height > box.height;
}).map((one) => one.textContent)"""
_BEHIND = """() => {
  const drawing = document.querySelector(".graph svg").getBoundingClientRect();
  return [...document.querySelectorAll("g.node")].filter((one) => {
    const box = one.getBoundingClientRect();
    return box.left < drawing.left || box.top < drawing.top || box.right > drawing.right || box.bottom > drawing.bottom;
  }).map((one) => one.dataset.name);
}"""


def test_what_is_found_stands_with_its_neighbours(page: Page, address: str) -> None:
    sought(page, address, "AIN_2_3")
    expect(nodes(page)).to_have_count(3)
    assert names(page) == {"chain_2_2", "chain_2_3", "chain_2_4"}
    expect(page.locator("g.node.found")).to_have_attribute("aria-label", "view chain_2_3, found")
    expect(page.locator("path.edge")).to_have_count(2)
    expect(page.get_by_role("status").filter(has_text="found")).to_have_text("1 found, 3 of 120 shown")


def test_it_widens_to_all_on_either_side(page: Page, address: str) -> None:
    sought(page, address, "chain_0_3", "upstream")
    expect(nodes(page)).to_have_count(5)
    assert names(page) == {f"chain_0_{link}" for link in range(5)}
    page.get_by_role("button", name="all downstream").press("Enter")
    expect(nodes(page)).to_have_count(7)
    assert names(page) == {*(f"chain_0_{link}" for link in range(6)), "many_in"}
    page.get_by_role("button", name="all upstream").click()
    expect(page.get_by_role("button", name="all upstream")).to_have_attribute("aria-pressed", "false")
    expect(nodes(page)).to_have_count(5)


def test_an_address_shows_the_same(page: Page, address: str, browser: Browser) -> None:
    sought(page, address, "hub", "downstream")
    expect(nodes(page)).to_have_count(64)
    page.locator('g.node[data-name="hub"]').click()
    expect(page.locator("aside")).to_contain_text("a int")
    assert unquote(page.url).endswith("#/graph/hub/hub/downstream")
    other = browser.new_page()
    other.goto(page.url)
    expect(nodes(other)).to_have_count(64)
    expect(other.locator("aside").get_by_role("heading", name="hub")).to_be_visible()
    expect(other.get_by_label("find by name")).to_have_value("hub")
    expect(other.get_by_role("button", name="all downstream")).to_have_attribute("aria-pressed", "true")
    other.close()


def test_that_nothing_was_found_is_said(page: Page, address: str) -> None:
    sought(page, address, "a/b%")
    expect(page.get_by_text('No name has "a/b%" in it.')).to_be_visible()
    expect(nodes(page)).to_have_count(0)
    page.reload()
    expect(page.get_by_label("find by name")).to_have_value("a/b%")
    expect(page.get_by_text('No name has "a/b%" in it.')).to_be_visible()
    page.get_by_label("find by name").press("Escape")
    expect(nodes(page)).to_have_count(120)
    assert page.url.endswith("#/graph")


def test_the_keyboard_searches_and_goes_from_box_to_box(page: Page, address: str) -> None:
    sought(page, address, "chain_4_3")
    expect(nodes(page)).to_have_count(3)
    page.get_by_label("find by name").press("Enter")
    expect(page.locator('g.node[data-name="chain_4_3"]')).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(page.locator('g.node[data-name="chain_4_4"]')).to_be_focused()
    page.keyboard.press("ArrowRight")  # nothing is there
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    expect(page.locator('g.node[data-name="chain_4_2"]')).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("aside").get_by_role("heading", name="chain_4_2")).to_be_visible()
