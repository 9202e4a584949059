"""The graph: every kind of node with what feeds it, as it is, and what a click tells."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from playwright.sync_api import Page, expect

from tests.services.serve.page.conftest import Opened
from tests.services.serve.page.shop import MARKUP, Shop

pytestmark = pytest.mark.services


def node(page: Page, name: str) -> str:
    """Where the node of a name is found."""
    return f'g.node[data-name="{name}"]'


def test_what_there_is_and_how_it_flows(opened: Opened, shop: Shop) -> None:
    shop.sql("CREATE STREAM visits (id int64) SETTINGS topic = 'visits_raw'")
    try:
        page = opened("graph")
        for name, kind in (
            ("orders", "stream"),
            ("visits", "stream"),
            ("visits_raw", "topic"),
            ("products", "dictionary"),
            ("sales", "view"),
            (MARKUP, "view"),
        ):
            box = page.locator(node(page, name))
            expect(box).to_have_attribute("aria-label", f"{kind} {name}")
            expect(box.locator("text.title")).to_have_text(name)
        expect(page.locator(node(page, "sales"))).to_contain_text("running · spark")
        expect(page.locator(node(page, "named"))).to_contain_text("running · faust")
        edges = page.locator("path.edge")
        expect(edges).to_have_count(6)  # orders, sales twice, products, visits_raw; and to the plain view
        shop.order(*((number, "tea", 1.0) for number in range(30, 60)))
        expect(page.locator(node(page, "orders")).locator("text.figures")).to_have_text(re.compile(r"^[1-9][\d.]*/s"))
    finally:
        shop.sql("DROP STREAM visits")


def test_a_view_that_is_cut_into_fragments(opened: Opened, shop: Shop) -> None:
    shop.sql(
        "CREATE MATERIALIZED VIEW by_name AS SELECT p.name AS name, count() AS n FROM orders AS o"
        " LEFT JOIN products AS p ON o.product = p.product GROUP BY p.name"
    )
    try:
        page = opened("graph")
        fragment = page.locator("g.node.fragment")
        expect(fragment).to_have_count(1)
        expect(fragment).to_contain_text("running · faust")
        fragment.click()
        expect(page.locator("aside")).to_contain_text("state bound")
        expect(page.locator("aside")).to_contain_text("└─")
    finally:
        shop.sql("DROP VIEW by_name")


def test_a_click_and_a_key_tell_more(opened: Opened) -> None:
    page = opened("graph")
    page.locator(node(page, "sales")).click()
    aside = page.locator("aside")
    expect(aside.locator("dt:text-is('state bound') + dd")).to_contain_text("Aggregate")
    expect(aside.locator("dt:text-is('watermark') + dd")).to_contain_text("UTC")
    expect(aside).to_contain_text("scan orders")
    expect(aside.locator("pre").last).to_contain_text("batches")
    steps = aside.locator(".drawn .step")
    expect(steps.first).to_contain_text("Changelog")
    expect(steps.filter(has_text="state: ").locator("strong")).to_have_text("Aggregate")
    expect(steps.filter(has_text="state: ").locator(".told")).to_have_text(
        re.compile(r"^[\d,]+ in · [\d,]+ out · [\d,]+ kept")
    )
    expect(steps.last.locator("strong")).to_have_text("scan orders")
    # What feeds a node stands below it and further in.
    boxes = [found.bounding_box() for found in steps.all()]
    assert all(a and b and a["y"] < b["y"] and a["x"] < b["x"] for a, b in pairwise(boxes))
    page.locator(node(page, "orders")).focus()
    page.keyboard.press("Enter")
    expect(aside).to_contain_text("amount float64")
    page.locator(node(page, MARKUP)).focus()
    page.keyboard.press(" ")
    expect(aside.get_by_role("heading", name=MARKUP)).to_be_visible()
    aside.get_by_role("button", name="Close").click()
    expect(aside).to_be_hidden()
    page.keyboard.press("Enter")  # the node has the focus again
    expect(aside).to_be_visible()
    aside.get_by_role("button", name="Close").press("Escape")
    expect(aside).to_be_hidden()
    expect(page.locator(node(page, MARKUP))).to_be_focused()


def test_one_is_opened_by_its_address(opened: Opened) -> None:
    page = opened("graph/products")
    expect(page.locator("aside")).to_contain_text("HYBRID_HASH_CACHE")
