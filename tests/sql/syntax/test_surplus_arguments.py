"""Each argument of a call is in its tree, or the call is refused: what builds a form passes over others."""

from __future__ import annotations

import pytest
from sqlglot import exp
from sqlglot.errors import ParseError

from dovetail.changelog.errors import SqlError
from dovetail.sql.bind.written.unread import refuse_unread
from dovetail.sql.syntax.grammar.queries import READERS
from dovetail.sql.syntax.rules import Rules
from tests.sql.world import World

MOST = 6


def names(rules: Rules) -> list[str]:
    parser = type(READERS[rules].parser())
    return sorted({*parser.FUNCTIONS, *parser.FUNCTION_PARSERS})


def parsed(rules: Rules, text: str) -> exp.Query | None:
    try:
        (query,) = READERS[rules].parse(text)
    except (ParseError, SqlError):
        return None
    assert isinstance(query, exp.Query)
    try:
        refuse_unread(query)
    except SqlError:
        return None
    return query


@pytest.mark.parametrize(("rules", "name"), [(rules, name) for rules in Rules for name in names(rules)])
def test_no_argument_is_lost(rules: Rules, name: str) -> None:
    for count in range(1, MOST + 1):
        given = {str(1000 + place) for place in range(count)}
        query = parsed(rules, f"SELECT {name}({', '.join(sorted(given))})")
        if query is not None:
            assert given <= {node.name for node in query.walk()}, query.sql()


@pytest.mark.parametrize(
    ("refused", "fix"),
    [
        ("table(s, t)", "FROM table(s)"),
        ("table(s, 3)", "FROM table(s)"),
        ("changelog(s, t.k)", "FROM changelog(s, k)"),
        ("changelog(s, k + 1)", "FROM changelog(s, k)"),
    ],
)
@pytest.mark.parametrize(
    "around", ["SELECT k {}", "WITH c AS (SELECT k {}) SELECT k FROM c", "SELECT k FROM (SELECT k {})"]
)
def test_what_reads_a_relation_takes_no_more(refused: str, fix: str, around: str) -> None:
    world = World.of("CREATE STREAM s (k int)", "CREATE STREAM t (k int)")
    with pytest.raises(SqlError) as fault:
        world.plan(around.format(f"FROM {refused}"))
    assert fault.value.fix == fix
    world.plan(around.format(fix))
