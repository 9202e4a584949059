"""``dovetail mcp`` as a program meets it: a process that is spoken to over its standard input, beside a real stack."""

from __future__ import annotations

import os
import sys
from typing import Any

import anyio
import pytest
from mcp import ClientSession, StdioServerParameters, stdio_client

from dovetail.services.session import Session
from dovetail.services.stack import Stack
from tests.services.session.conftest import settle

pytestmark = pytest.mark.services


async def conversation(environment: dict[str, str], calls: list[tuple[str, dict[str, Any]]]) -> list[Any]:
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "dovetail.services.cli.start", "mcp"], env=environment
    )
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        return [await session.call_tool(name, arguments) for name, arguments in calls]


def test_a_program_asks_what_there_is_and_why(running: Stack, session_of_runners: Session) -> None:
    session = session_of_runners
    session.run("CREATE TABLE users (id int PRIMARY KEY, name varchar)")
    session.run("CREATE TABLE orders (id int PRIMARY KEY, user_id int)")
    query = "SELECT o.id AS id, u.name AS name FROM orders AS o JOIN users AS u ON o.user_id = u.id"
    session.run(f"CREATE MATERIALIZED VIEW named AS {query}")
    session.run("INSERT INTO users VALUES (1, 'ann'); INSERT INTO orders VALUES (7, 1), (8, 2)")
    settle(session, "named")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("overview", {}),
        ("query", {"sql": "SELECT * FROM table(named)"}),
        ("query", {"sql": "SELECT * FROM table(orders)", "limit": 1}),
        ("explain", {"sql": "named"}),
        ("why", {"view": "named", "where": "id = 7"}),
        ("why_not", {"view": "named", "where": "id = 8"}),
        ("state", {"view": "named"}),
        ("running_plan", {"view": "named"}),
        ("preview_change", {"view": "named", "query": f"{query} WHERE o.id > 7"}),
        ("query", {"sql": "SELECT * FROM named"}),
        ("query", {"sql": "DROP VIEW named"}),
    ]
    environment = os.environ | {"DOVETAIL_DATA_DIR": str(running.settings.data_dir)}
    answers = anyio.run(conversation, environment, calls)
    *answered, streaming, refused = answers
    assert not [one for one in answered if one.is_error]
    overview, rows, cut, plan, why, why_not, state, nodes, change = (one.structured_content for one in answered)
    assert {("view", "named"), ("stream", "orders"), ("query", "named")} <= {
        (row["object"], row["name"]) for row in overview["rows"]
    }
    assert [{key: row[key] for key in ("id", "name")} for row in rows["rows"]] == [{"id": 7, "name": "ann"}]
    assert (len(cut["rows"]), cut["total"], cut["notes"]) == (1, 2, ["1 of 2 rows are shown"])
    assert "Bidirectional inner" in plan["text"]
    assert "users" in str(why)
    assert "user_id" in str(why_not)
    assert state["rows"]
    assert "Bidirectional inner" in str(nodes)
    assert "would gain 0 rows and lose 1 of its 1" in str(change["notes"])
    assert "this statement goes on with its streams" in streaming.content[0].text
    assert "DROP VIEW needs the role admin" in refused.content[0].text
