"""What the page writes as a literal is read as the same value, in both dialects."""

from __future__ import annotations

import pytest
from sqlglot import exp

from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.statements import Why
from tests.services.serve.page.conftest import Opened

pytestmark = pytest.mark.services
WRITTEN = """async ([text, dialect]) => {
  const { literal, name } = await import("/page/modules/quote.js");
  return `${name("a b", dialect)} = ${literal(text, dialect)}`;
}"""
TEXTS = [
    "it's",
    "\\",
    "a\\b",
    "ends\\",
    "\\'",
    "'; DROP VIEW v; --",
    "C:\\new\\table",
    "line\nbreak",
    "\u00e9\t",
    "''",
    '"',
]


def test_a_literal_of_a_dialect_is_the_text(opened: Opened) -> None:
    page = opened("views")
    for rules in Rules:
        for text in TEXTS:
            written = page.evaluate(WRITTEN, [text, rules.value])
            # The view of the statement may be of either dialect, so it is read by Timeplus first.
            parse_one(f"WHY v WHERE {written}")
            why = parse_one(f"WHY v WHERE {written}", rules)
            assert isinstance(why, Why)
            assert isinstance(why.where, exp.EQ)
            assert (why.where.this.name, why.where.expression.name) == ("a b", text), written
