"""The tools for programs: what they take, and what they refuse before anything is opened."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import anyio
import pytest
from mcp.server.mcpserver.exceptions import ToolError

from dovetail.changelog.errors import StackError
from dovetail.changelog.work.interruption import expect_wanted
from dovetail.services.mcp.tools import Tools, server_of
from dovetail.services.role import Role
from dovetail.services.session import Session
from dovetail.services.session.context import Say


def no_stack(_say: Say) -> Session:
    raise StackError("no stack is running", fix="dovetail up")


def called(role: Role, name: str, **arguments: Any) -> Any:
    tools = Tools(no_stack, role, within_s=5)
    return anyio.run(partial(getattr(tools, name), **arguments))


@pytest.mark.parametrize(
    ("role", "name", "arguments", "reason"),
    [
        (Role.READER, "query", {"sql": "INSERT INTO s (id) VALUES (1)"}, "INSERT INTO needs the role writer"),
        (
            Role.READER,
            "query",
            {"sql": "DROP VIEW v"},
            "DROP VIEW needs the role admin, and these tools have",
        ),
        (Role.WRITER, "query", {"sql": "DROP VIEW v"}, "fix:   let a person run it; or start them with that role"),
        (Role.ADMIN, "query", {"sql": "SHOW VIEWS; DROP VIEW v"}, "one statement is taken here"),
        (Role.ADMIN, "why", {"view": "v", "where": "id = 1; DROP VIEW v"}, "one statement is taken here"),
        (Role.ADMIN, "state", {"view": "v; DROP VIEW v"}, "one statement is taken here"),
        (
            Role.ADMIN,
            "preview_change",
            {"view": "v", "query": "SELECT 1; DROP VIEW v"},
            "should end here",
        ),
        (Role.READER, "query", {"sql": "SELEC 1"}, "did you mean SELECT?"),
        (Role.READER, "query", {"sql": "SHOW VIEWS"}, "no stack is running"),
        (Role.READER, "documentation", {"words": "qwertz"}, 'there is no page or word "qwertz"'),
    ],
)
def test_refusals(role: Role, name: str, arguments: dict[str, str], reason: str) -> None:
    with pytest.raises(ToolError) as refused:
        called(role, name, **arguments)
    assert reason in str(refused.value)


def test_what_takes_too_long_is_ended() -> None:
    ended: list[bool] = []

    def opened(_say: Say) -> Session:
        try:
            while True:
                time.sleep(0.01)
                expect_wanted()
        finally:
            ended.append(True)

    with pytest.raises(ToolError, match=r"longer than 0\.1 s"):
        anyio.run(partial(Tools(opened, Role.READER, within_s=0.1).query, "SHOW VIEWS"))
    deadline = time.monotonic() + 10
    while not ended and time.monotonic() < deadline:
        time.sleep(0.01)
    assert ended


def test_the_documentation_is_read_page_by_page_or_by_headings() -> None:
    assert called(Role.READER, "documentation", words="joins/asof").text.startswith("# ASOF joins")
    assert "late" in called(Role.READER, "documentation", words="late rows").text
    pages = called(Role.READER, "documentation")
    assert {"page": "statements", "about": "Statements"} in pages.rows
    assert pages.total == len(pages.rows)


@pytest.mark.parametrize("role", list(Role))
def test_a_program_is_told_which_tools_only_look(role: Role) -> None:
    listed = anyio.run(server_of(Tools(no_stack, role, within_s=5), "1").list_tools)
    looks = {tool.name: tool.annotations.read_only_hint for tool in listed if tool.annotations is not None}
    assert looks.pop("query") is (role is Role.READER)
    assert set(looks.values()) == {True}
    assert all(tool.description for tool in listed)
