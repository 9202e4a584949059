"""An address of the page comes from anybody: it opens a panel and fills fields, and has nothing done."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from playwright.sync_api import Browser, Page, Request, expect

from dovetail.broker.address import BrokerAddress
from dovetail.services.role import Role
from dovetail.services.session.statement_table import role_of
from dovetail.services.stack import Stack
from dovetail.sql.syntax.parse import parse
from tests.services.serve.world import PLAIN, World, rows_of

pytestmark = pytest.mark.services
_QUIET_MS = 300
SECOND = "1=1; CREATE VIEW pwned AS SELECT 'owned by a link' AS a"
TEXTS = (
    SECOND,
    f"v` WHERE {SECOND}",
    f'v" WHERE {SECOND}; --',
    f"v'; {SECOND}; --",
    "v\\` WHERE 1=1; DROP VIEW v",
    "CREATE VIEW pwned AS SELECT 1 AS a",
)


@dataclass
class Visit:
    """A page of a service without users, where whoever opens it may do everything."""

    address: str
    page: Page
    requests: int = 0
    posted: list[dict[str, Any]] = field(default_factory=list)

    def open(self, *parts: str) -> None:
        """Until it asks for nothing more."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.address}/#/{'/'.join(quote(part, safe='') for part in parts)}")
        expect(self.page.locator("main > *").first).to_be_visible()
        before = -1
        while before != self.requests:
            before = self.requests
            self.page.wait_for_timeout(_QUIET_MS)

    @property
    def panels(self) -> list[str]:
        links = self.page.locator("#panels a").all()
        return [str(link.get_attribute("data-path")) for link in links]

    def run(self, text: str) -> httpx.Response:
        """What another client has the service do."""
        response = httpx.post(f"{self.address}/v1/sql", content=text, headers=PLAIN)
        assert response.status_code == 200, response.text
        return response

    @property
    def views(self) -> set[str]:
        return {row["name"] for row in rows_of(self.run("SHOW VIEWS"))}


@pytest.fixture
def visit(tmp_path: Path, browser: Browser, stack: Stack) -> Iterator[Visit]:
    with World(tmp_path, BrokerAddress(stack.endpoint("kafka"))).listening() as address:
        page = browser.new_page()
        made = Visit(address, page)
        made.run("CREATE STREAM linked (a int64); CREATE VIEW v AS SELECT a FROM linked")

        def heard(request: Request) -> None:
            made.requests += 1
            if request.method != "GET":
                made.posted.append(json.loads(request.post_data or ""))

        page.on("request", heard)
        yield made
        page.close()
        made.run("DROP VIEW v; DROP STREAM linked WITH DATA")


def test_no_address_has_anything_done(visit: Visit) -> None:
    visit.open("sql")
    panels = visit.panels
    assert {"views", "graph", "changes", "sql", "why"} <= set(panels)
    for panel in [*panels, "constructor", "view"]:
        for name in ("v", "linked", TEXTS[1]):
            visit.open(panel, name, SECOND)
    assert visit.posted
    for body in visit.posted:
        statements = parse(body["sql"])
        assert [role_of(type(one)) for one in statements] == [Role.READER], body
        assert body["single"] is True
        assert "pwned" not in body["sql"]
        assert "1=1" not in body["sql"]
    assert visit.views == {"v"}


@pytest.mark.parametrize("text", TEXTS)
def test_what_an_address_fills_in_is_one_statement_at_most_when_it_is_asked(visit: Visit, text: str) -> None:
    visit.open("why", "v", text)
    expect(visit.page.get_by_label("condition")).to_have_value(text)
    assert visit.posted == []
    visit.page.get_by_role("button", name="Ask").click()
    expect(visit.page.get_by_role("alert")).to_be_visible()
    assert [body["single"] for body in visit.posted] == [True]
    assert visit.views == {"v"}
