"""Dictionaries, dead letters and WHY: what an operator asks and does."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime

import httpx
import pytest
from playwright.sync_api import expect

from dovetail.services.role import Role
from tests.services.serve.page.conftest import Opened
from tests.services.serve.page.shop import Shop

pytestmark = pytest.mark.services


def test_dictionaries_are_refreshed_and_forget_keys(opened: Opened, shop: Shop) -> None:
    page = opened("dictionaries")
    row = page.locator('tr[data-dictionary="products"]')
    expect(row.locator("td[data-label=status]")).to_have_text("loaded")
    expect(row.locator("td[data-label=source]")).to_contain_text("sqlite")
    expect(row.locator("td[data-label=lookups]")).not_to_have_text("0")
    expect(row.locator("td[data-label='last refresh']")).to_contain_text(f"{datetime.now(UTC):%Y-%m-%d}")
    with sqlite3.connect(shop.database) as source:
        source.execute("UPDATE products SET name = 'Tea, green' WHERE product = 'tea'")
    source.close()
    row.get_by_label("key of products", exact=True).fill("tea")
    page.keyboard.press("Enter")
    expect(page.get_by_text("the key tea of products was forgotten by 1 worker")).to_be_visible()
    shop.order((90, "tea", 1.0))
    changes = opened("changes/named")
    changes.get_by_label("form").select_option("table")
    expect(changes.locator("table.changes")).to_contain_text("Tea, green")
    row.get_by_role("button", name="Refresh products").click()
    expect(page.get_by_text("products was forgotten by 1 worker").last).to_be_visible()


def test_a_key_is_refused_with_its_fix(shop: Shop) -> None:
    def refused(role: Role, **members: object) -> httpx.Response:
        headers = {"Authorization": f"Bearer {shop.tokens[role]}"}
        return httpx.post(f"{shop.address}/v1/dictionaries/products/refresh", json=members, headers=headers)

    assert refused(Role.READER).status_code == 403
    assert refused(Role.WRITER, keys="tea").json()["error"]["what"] == 'the member "keys" is no array of texts'
    assert refused(Role.WRITER, keys=[]).status_code == 400
    assert refused(Role.WRITER, key=["tea"]).status_code == 400


def test_dead_letters_by_reason_and_putting_them_back(opened: Opened, shop: Shop) -> None:
    shop.spoil("orders", b'{"id": 1, "product": "tea", "amount": "no <b>number</b>"}')
    page = opened("letters")
    reload = page.get_by_role("button", name="Look again")
    row = page.locator("tbody tr").filter(has_text="sales.dead_letter")
    for _ in range(60):
        reload.click()
        page.wait_for_timeout(500)
        if row.count():
            break
    expect(row.locator("td[data-label=letters]")).to_have_text("1")
    expect(row.locator("td[data-label=reason]")).to_contain_text("amount")
    row.get_by_role("button", name="Show").click()
    expect(page.locator("table").last).to_contain_text("no <b>number</b>")
    row.get_by_role("button", name="Replay").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("1")
    dialog.get_by_role("button", name="Replay").click()
    expect(page.locator(".said")).to_be_visible()
    expect(row.locator("td[data-label='put back']").first).to_have_text("1")


def test_a_reader_replays_and_refreshes_nothing(opened: Opened) -> None:
    page = opened("dictionaries", role=Role.READER)
    expect(page.locator('tr[data-dictionary="products"]')).to_be_visible()
    assert page.locator("tbody button").count() == 0
    page = opened("letters", role=Role.READER)
    expect(page.get_by_role("heading", name="Dead letters")).to_be_visible()
    assert page.get_by_role("button", name="Replay").count() == 0


def test_why_a_row_is_there_and_why_one_is_not(opened: Opened, shop: Shop) -> None:
    page = opened("changes/large")
    rows = page.locator("table.changes tbody tr")
    expect(rows).not_to_have_count(0)
    rows.filter(has_text="cup").first.get_by_role("link", name="why is this row there").click()
    answer = page.locator("main table")
    expect(answer).to_contain_text("sales")
    expect(page.get_by_label("condition")).to_have_value("`product` = 'cup'")
    page.get_by_label("question").select_option("WHY NOT")
    page.get_by_label("condition").fill("product = 'odd'")
    page.get_by_role("button", name="Ask").click()
    expect(answer).to_contain_text("is false")
    page.get_by_label("condition").fill("nothing = 1")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("nothing")
