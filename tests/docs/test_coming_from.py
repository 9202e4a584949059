"""docs/coming-from.md: each statement that stands there for Dovetail is one."""

from __future__ import annotations

import pytest

from dovetail.sql.syntax.parse import parse_one
from tests.docs.pages import Page, code_of

PAGE = Page.of("docs/coming-from.md")
VERBS = ("CREATE ", "SELECT ", "ALTER ", "EXPLAIN ", "PAUSE ", "RESUME ")
STATEMENTS = [
    code
    for row in PAGE.rows("there", "here")
    for code in code_of(row[1])
    if code.startswith(VERBS) and ".." not in code
]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_it_is_read(statement: str) -> None:
    parse_one(statement)


def test_there_are_some_of_each_peer() -> None:
    assert len(STATEMENTS) > 20
    assert PAGE.text.count("| there | here |") == 4
