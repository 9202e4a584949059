"""The page of statements names each, and no other."""

from __future__ import annotations

import re

from dovetail.sql.syntax.grammar.commands import LISTINGS
from dovetail.sql.syntax.parse import STATEMENTS
from tests.docs.pages import DOCS

PAGE = (DOCS / "statements.md").read_text()
_SAME = {"TABLES", "SOURCES", "MATERIALIZED VIEWS", "JOBS"}
"""Other words for STREAMS, VIEWS and QUERIES."""


def test_every_statement_is_on_the_page() -> None:
    named = set(re.findall(r"`([A-Z]+)\b", PAGE))
    assert set(STATEMENTS) <= named


def test_every_listing_is_on_the_page() -> None:
    named = set(re.findall(r"`(?:SHOW )?([A-Z ]+?)(?: \[.*?| [a-z])?`", PAGE))
    assert set(LISTINGS) - _SAME <= named
