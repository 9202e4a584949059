"""The examples of the page on HTTP give what stands below them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

from dovetail.broker.address import BrokerAddress
from dovetail.services.role import Role
from dovetail.services.session.context import silent, unasked
from dovetail.services.session.statement_table import role_of
from dovetail.services.stack import Stack
from dovetail.sql.syntax.parse import STATEMENTS, parse_one
from tests.docs.pages import Page, code_of
from tests.services.conftest import leave_nothing
from tests.services.serve.test_security_middleware import STATEMENTS as BY_ROLE
from tests.services.serve.world import World

PAGE = Page.of("docs/serve.md")
EXAMPLES = re.findall(r"```sh\n(.*?)```(?:\n\n```\n(.*?)```)?", PAGE.text, re.DOTALL)


@pytest.fixture
def world(stack: Stack, tmp_path: Path) -> Iterator[World]:
    """With the stream that the page follows."""
    made = World(tmp_path, BrokerAddress(stack.endpoint("kafka")))
    with made.open_session(silent, unasked) as session:
        session.run("CREATE STREAM readings (n int64, t string) SETTINGS shards = 1")
        session.run("INSERT INTO readings VALUES (1, 'one'), (2, 'two')")
        yield made
        leave_nothing(session)


def without_ids(text: str) -> str:
    """Of topics, which another one has each time."""
    return re.sub(r"(?m)^id: .{22}/", "id: ", text)


@pytest.mark.services
def test_the_examples_give_what_the_page_shows(world: World) -> None:
    token = world.token("ann", Role.ADMIN)["Authorization"].removeprefix("Bearer ")
    assert len(EXAMPLES) == 4
    with world.listening() as address:
        for command, shown in EXAMPLES:
            given = command.replace("--silent", f'--silent --header "Authorization: Bearer {token}"')
            run = subprocess.run(
                ["bash", "-c", given if "$TOKEN" not in command else command],
                env={"PATH": "/usr/bin:/bin", "DOVETAIL": address, "TOKEN": token},
                capture_output=True,
                text=True,
                check="timeout" not in command,
                timeout=60,
            )
            assert without_ids(run.stdout) == without_ids(shown) or not shown
            assert '"error"' not in run.stdout or '"error"' in shown
        [python] = PAGE.blocks("python")
        names: dict[str, Any] = {"httpx": Client(token), "pyarrow": pa, "DOVETAIL": address}
        exec(python, names)
        assert names["table"].to_pylist() == [{"a": 1, "b": "one"}, {"a": 2, "b": "two"}]


class Client:
    """The library, for a user with a token."""

    def __init__(self, token: str) -> None:
        self._own = {"Authorization": f"Bearer {token}"}

    def post(self, url: str, *, content: str, headers: dict[str, str]) -> httpx.Response:
        return httpx.post(url, content=content, headers=headers | self._own)


@pytest.mark.parametrize("role", Role)
def test_the_page_has_the_statements_of_each_role(role: Role) -> None:
    [permitted] = [row[1] for row in PAGE.rows("role", "may") if code_of(row[0]) == [role.value]]
    words = {text.split()[0] for text in BY_ROLE[role]}
    assert words <= set(STATEMENTS)
    assert words == {word for word in re.findall(r"[A-Z]+", permitted) if word in STATEMENTS}
    assert all(role_of(type(parse_one(text))) is role for text in BY_ROLE[role])
