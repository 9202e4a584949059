"""A statement that lacks a word or a sign, or has one too many, is told the edit that makes it readable."""

from __future__ import annotations

import re
from functools import cache

import pytest

from dovetail.changelog.errors import SqlError, SyntaxFault
from dovetail.sql.syntax.grammar.hints.trial import applied, repair
from dovetail.sql.syntax.parse import parse
from tests.conformance.load import read_yaml
from tests.paths import ROOT

OWN = (
    "SELECT CASE WHEN a > 1 THEN 'x' ELSE 'y' END AS c FROM o",
    "SELECT sum(CASE WHEN a > 1 THEN b END) AS c, count() FROM o GROUP BY d",
    "SELECT a FROM o WHERE CASE WHEN a THEN b ELSE c END = 1",
    "SELECT CASE WHEN a = 1 THEN 1 END, CASE WHEN a = 2 THEN 2 END FROM o ORDER BY a",
    "CREATE MATERIALIZED VIEW v AS SELECT a FROM o",
    "CREATE MATERIALIZED VIEW IF NOT EXISTS v AS SELECT a FROM o JOIN u ON o.a = u.a",
    "CREATE VIEW v AS SELECT a, count() AS n FROM o GROUP BY a",
    "CREATE MATERIALIZED VIEW v INTO t AS SELECT a FROM o",
    "SELECT a FROM o LEFT JOIN u ON o.a = u.a WHERE a > 1",
    "SELECT a FROM o WHERE a > now() - INTERVAL 5 MINUTE",
    "INSERT INTO o (a, b) VALUES (1, 'x'), (2, 'y')",
)
MOST = 120
BREAKS = {
    "no )": (r"\)", ""),
    "no BY": (r"(?<=GROUP) BY|(?<=ORDER) BY", ""),
    "no END": (r" END\b", ""),
    "no WHEN": (r"(?<=CASE) WHEN\b", ""),
    "no AS before a query": (r" AS(?= SELECT)", ""),
    "a comma before FROM": (r" FROM\b", ", FROM"),
    "a comma before )": (r"(?<=[a-z])\)", ",)"),
    "two commas": (r",", ",,"),
    "= =": (r" = ", " = = "),
    "two WHERE": (r"(?<=\d) AND (?=\w+\.?\w* )", " WHERE "),
}
"""What a slip of the finger does to a statement, wherever the pattern stands."""


@cache
def statements() -> list[str]:
    """Those of the conformance cases that can be read, and some more, without functions of Python."""
    found = dict.fromkeys(OWN)
    for path in sorted((ROOT / "tests" / "cases").rglob("*.yaml")):
        for case in read_yaml(path):
            found |= dict.fromkeys([*case.get("ddl", []), case.get("query", "")])
    return [text for text in found if text and "$$" not in text and not fault_of(text)]


def fault_of(text: str) -> SqlError | None:
    try:
        parse(text)
    except SqlError as fault:
        return fault
    return None


def words(text: str) -> list[str]:
    return re.findall(r"\w+|[^\w\s]", text)


@pytest.mark.parametrize("kind", BREAKS)
def test_a_slip_is_told_the_edit_that_undoes_it(kind: str) -> None:
    pattern, word = BREAKS[kind]
    places = [(whole, found.span()) for whole in statements() for found in re.finditer(pattern, whole)]
    slips, hinted, undone = 0, 0, 0
    for whole, (start, end) in places[:: -(-len(places) // MOST)]:
        text = whole[:start] + word + whole[end:]
        fault = fault_of(text)
        if isinstance(fault, SyntaxFault):
            guess = repair(text, fault, parse)
            slips, hinted = slips + 1, hinted + bool(fault.fix)
            undone += guess is not None and words(applied(text, guess)) == words(whole)
    assert hinted >= 0.9 * slips > 0
    assert undone >= 0.6 * slips, (slips, hinted, undone)


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("SELECT a, FROM o", "take the comma away"),
        ("SELECT count() FROM o GROUP a", "did you mean GROUP BY?"),
        ("SELECT TOP 5 a FROM o", "LIMIT 5 at the end, in place of TOP 5"),
        ("SELECT a FROM o WHERE (a > 1 AND (b < 2", "put )) at the end"),
        ("SELECT sum(a FROM o", "put ) before FROM"),
        ("SELECT a FROM o LEFT u ON o.a = u.a", "did you mean LEFT JOIN?"),
        ("SELECT FROM o", "for all columns: SELECT *"),
        ("SELECT a b c FROM o", "put a comma before c"),
        ("SELECT a FROM o WHERE a BETWEEN 1 TO 2", "AND in place of TO"),
        ("SELECT a FROM o WHERE a > 1 WHERE b > 2", "AND in place of WHERE"),
        ("SELECT a FROM o AND b = 1", "WHERE in place of AND"),
        ("SELECT a FROM o WHERE a > now() - 5 minutes", "INTERVAL '5' MINUTES"),
        ("SELECT a FROM o WHERE a IN 1, 2", "put the list in brackets: (1, 2)"),
        ("INSERT INTO o VALUES 1, 2", "put the list in brackets: (1, 2)"),
        ("CREATE STREAM o a int, b string", "put the list in brackets: (a int, b string)"),
        ("CREATE STREAM o (a int b string)", "put a comma before b"),
        ("CREATE MATERIALIZED VIEW v SELECT a FROM o", "put AS before SELECT"),
        ("CREATE MATERIALIZED VIEW AS SELECT a FROM o", "put a name before AS"),
        ("SELECT a AS select FROM o", 'SELECT is a word of SQL; as a name: "select"'),
        ("SELECT a FROM o WHERE a = = 1", "= once"),
        ("SELECT 1; SELECT a, FROM o; SELECT b,, c FROM", "take the comma away"),
    ],
)
def test_the_edit_is_told_in_words(text: str, fix: str) -> None:
    with pytest.raises(SyntaxFault) as fault:
        parse(text)
    assert fault.value.fix == fix


@pytest.mark.parametrize(
    "text", ["SELECT a FROM o WHERE", "SELECT a FROM o WHERE a = 1 OR", "SELECT a FROM o WHERE not"]
)
def test_what_is_missing_is_not_made_up(text: str) -> None:
    with pytest.raises(SyntaxFault) as fault:
        parse(text)
    assert fault.value.fix.startswith("the form is SELECT")
