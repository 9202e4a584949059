"""docs/roles.md is what the server does."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import get_args

import httpx
import pytest

from dovetail.services.role import Role
from dovetail.services.serve.roles_page import PAGE, named, page
from dovetail.services.serve.routes import ROUTES
from dovetail.services.session.statement_table import role_of
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import Statement
from tests.docs.pages import Page, code_of
from tests.paths import ROOT
from tests.services.serve.test_security_middleware import STATEMENTS
from tests.services.serve.world import World

HEAD = [f"`{role}`" for role in Role]


def test_the_page_is_made_from_the_code() -> None:
    assert PAGE == ROOT / "docs" / "roles.md"
    assert PAGE.read_text() == page(), "python -m dovetail.services.serve.roles_page writes it"


def test_the_page_has_each_kind_of_statement_once() -> None:
    rows = Page.of("docs/roles.md").rows("statement", *HEAD)
    assert sorted(row[0] for row in rows) == sorted(named(kind) for kind in get_args(Statement))
    written = {row[0]: [cell == "yes" for cell in row[1:]] for row in rows}
    for least, texts in STATEMENTS.items():
        for text in texts:
            kind = type(parse_one(text))
            assert role_of(kind) is least
            assert written[named(kind)] == [role.includes(least) for role in Role]


@pytest.mark.parametrize("role", [None, *Role])
def test_a_path_is_open_to_whom_the_page_says(tmp_path: Path, role: Role | None) -> None:
    """Whatever it then says of the request: it is refused neither for want of a user nor of a role."""
    world = World(tmp_path, serve_statement_s=20, broker_timeout_s=1)
    header = world.token("ann", role or Role.READER)
    rows = Page.of("docs/roles.md").rows("path", "anybody", *HEAD)
    assert [code_of(row[0]) for row in rows] != []
    column = 1 + [None, *Role].index(role)

    async def is_open(client: httpx.AsyncClient, endpoint: str) -> bool:
        method, path = endpoint.split()
        filled = path.replace("{name}", "x").replace("{folder}/{file}", "x/y")
        answer = await client.request(method, filled, headers=header if role else {})
        return answer.status_code not in (401, 403)

    async def ask(client: httpx.AsyncClient) -> dict[str, bool]:
        # Some wait for a broker that is not there: all at once they do not add up.
        paths = [code_of(row[0])[0] for row in rows]
        return dict(zip(paths, await asyncio.gather(*(is_open(client, path) for path in paths)), strict=True))

    assert world.with_client(ask) == {code_of(row[0])[0]: row[column] == "yes" for row in rows}
    assert len(rows) == len(ROUTES)
