"""Statements: run one after the other, their errors marked, the plan beside, what was run before, completion."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from dovetail.services.role import Role
from tests.services.serve.page.conftest import Opened
from tests.services.serve.page.shop import MARKUP, Shop

pytestmark = pytest.mark.services


def editor(page: Page) -> Locator:
    return page.get_by_label("statements")


def run(page: Page, text: str) -> None:
    editor(page).fill(text)
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("button", name="Run")).to_be_enabled()


def test_several_statements_and_their_results(opened: Opened) -> None:
    page = opened("sql")
    editor(page).fill(
        f"SELECT '{MARKUP}' AS a, 2 AS b; -- a;b\nSHOW VIEWS LIKE 'lar%'; EXPLAIN sales; SELECT NULL AS c"
    )
    page.keyboard.press("Control+Enter")
    results = page.locator("section.result")
    expect(results).to_have_count(4)
    assert results.nth(0).locator("td").all_inner_texts() == [MARKUP, "2"]
    assert results.nth(1).locator("td").first.inner_text() == "large"
    expect(results.nth(2)).to_contain_text("Changelog sales")
    assert results.nth(3).locator("td").all_inner_texts() == ["NULL"]


def test_a_select_over_a_stream_that_is_idle_says_that_it_waited(opened: Opened) -> None:
    page = opened("sql")
    run(page, "SELECT id FROM parcels")
    result = page.locator("section.result")
    expect(result).to_contain_text("0 rows: it waited for changes, and none came.")
    expect(result).to_contain_text("it reads parcels from now on")


def test_a_select_that_goes_on_says_that_it_waits_and_is_stopped(opened: Opened, shop: Shop) -> None:
    page = opened("sql")
    status = page.get_by_role("status").filter(has_text="Stop or Escape ends it.")
    for by_key in (True, False):
        editor(page).fill("SELECT 1 AS a; SELECT id FROM parcels")
        page.get_by_label("until stopped").check()
        page.get_by_role("button", name="Run").click()
        expect(status).to_contain_text("It waits for rows")
        shop.sql("INSERT INTO parcels VALUES (9007199254740993, 1.5)")
        expect(status).to_contain_text("1 row so far")
        expect(page.locator("section.result").nth(1).locator("td")).to_have_text("9007199254740993")
        if by_key:
            page.keyboard.press("Escape")
        else:
            page.get_by_role("button", name="Stop").click()
        expect(page.get_by_text("It was stopped.")).to_be_visible()
        expect(status).to_have_count(0)
        expect(page.locator("section.result").nth(1).locator("td")).to_have_count(1)
        expect(page.get_by_role("button", name="Run")).to_be_enabled()


def test_an_error_is_marked_at_its_place_after_what_went_well(opened: Opened) -> None:
    page = opened("sql")
    run(page, "SELECT 1 AS a")
    expect(page.get_by_role("button", name="Run")).to_be_focused()
    run(page, "SELECT 1 AS a;\nSELECT '𝄞', id\nFROM ordrs")
    expect(page.locator("section.result")).to_have_count(1)
    expect(page.get_by_role("alert")).to_contain_text('did you mean "orders"?')
    expect(page.locator("mark")).to_have_text("ordrs")
    selected = "(field) => field.value.slice(field.selectionStart, field.selectionEnd)"
    assert editor(page).evaluate(selected) == "ordrs"
    page.keyboard.type("orders")
    expect(page.locator("mark")).to_have_count(0)


def test_the_plan_of_the_statement_at_the_cursor(opened: Opened) -> None:
    page = opened("sql")
    editor(page).fill("SELECT product FROM orders;\nSELECT nothing FROM orders")
    plan = page.get_by_label("EXPLAIN")
    expect(plan).to_contain_text("nothing")
    expect(page.locator("mark")).to_have_text("nothing")
    page.keyboard.press("Control+Home")
    expect(plan.locator(".step").last.locator("strong")).to_have_text("scan orders")
    plan.get_by_text("as text").click()
    expect(plan.locator("pre")).to_contain_text("└─ scan orders")


def test_what_was_run_in_this_tab_comes_back(opened: Opened) -> None:
    page = opened("sql")
    run(page, "SELECT 1 AS first")
    run(page, "SELECT 2 AS second")
    page.reload()
    expect(editor(page)).to_have_value("SELECT 2 AS second")
    page.get_by_label("history").select_option("SELECT 1 AS first")
    expect(editor(page)).to_have_value("SELECT 1 AS first")


def test_names_and_keywords_are_completed(opened: Opened) -> None:
    page = opened("sql")
    editor(page).fill("SELECT amo")
    page.keyboard.press("Control+ ")
    expect(page.get_by_role("option")).to_have_text(["amount"])
    page.keyboard.press("Enter")
    page.keyboard.type(" FROM o")
    page.keyboard.press("Control+ ")
    offers = page.get_by_role("listbox", name="completions").get_by_role("option")
    expect(offers.first).to_have_text("orders")
    page.keyboard.press("ArrowDown")
    expect(offers.nth(1)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Tab")
    expect(editor(page)).to_have_value("SELECT amount FROM orders")


def test_a_drop_of_more_is_asked_about(opened: Opened, shop: Shop) -> None:
    shop.sql("CREATE VIEW old AS SELECT id FROM orders; CREATE VIEW older AS SELECT id FROM old")
    page = opened("sql")
    editor(page).fill("SELECT 1 AS a; DROP VIEW old CASCADE; SELECT 3 AS b")
    page.keyboard.press("Control+Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("older")
    dialog.get_by_role("button", name="Drop it").click()
    expect(page.locator("section.result")).to_have_count(3)
    expect(page.locator("section.result").nth(1)).to_contain_text("dropped")


def test_a_reader_may_look_and_no_more(opened: Opened) -> None:
    page = opened("sql", role=Role.READER)
    run(page, "SELECT 1 AS a; PAUSE sales")
    expect(page.get_by_role("alert")).to_contain_text("has the role reader")
    expect(page.locator("section.result")).to_have_count(0)
