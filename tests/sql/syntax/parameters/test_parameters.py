"""``?`` and ``:name``: bound as literals of the tree, whatever they hold; refused where they are none."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.sql.planner import plan_query
from dovetail.sql.syntax.parameters.bound_literals import Arguments
from dovetail.sql.syntax.parse import parse, parse_one
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.statements import Insert, Select, Why
from tests.nasty import DATES, DECIMALS, INTEGERS, TEXTS
from tests.sql.planner import Planner

WORLD = (
    "CREATE STREAM l (k int, n int, s string, t datetime64(3))",
    "CREATE TABLE q (k INT, n INT, s VARCHAR, j JSONB, a INT[], at TIMESTAMP, PRIMARY KEY (k))",
)
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
INJECTIONS = (
    *(
        "' OR 1 = 1 --",
        "x'; DROP STREAM l; --",
        "\\' OR 1=1 --",
        "''",
        "'",
        "\\",
        "\\'",
        "?",
        ":k",
        "$$",
        "$tag$x$tag$",
    ),
    *("/* ", "*/ OR true /*", "`", '"', "\n; SELECT 1", "\u2019 OR 1=1", "%' OR '%' = '", "\0' OR 1=1", "{k:int}"),
)
NASTY = st.one_of(st.sampled_from(INJECTIONS), TEXTS, st.text())
FITTING: Sequence[tuple[str, Arguments]] = [
    ("SELECT k FROM l WHERE k = ? AND s = ? AND t > ?", [1, "x", NOON]),
    ("SELECT k FROM l WHERE k = ?::int AND s = ?", [1, "x"]),
    (
        "SELECT k FROM q WHERE k = :a AND s = :b AND n < :a AND at > :c",
        {"a": 1, "b": "x", "c": datetime.fromisoformat("2026-01-01")},
    ),
    (
        "SELECT k FROM table(l) WHERE n BETWEEN ? AND ? OR s IS NOT DISTINCT FROM ? LIMIT ?",
        [-1, Decimal("2.50"), None, 3],
    ),
    ("SELECT a[:2] AS x, j ? 'k' AS y, a[1:2] AS z FROM q WHERE n = :n", {"n": 1}),
    ("SELECT s:a.b AS x, k > 1 ? 'a' : 'b' AS y FROM l WHERE s:a = :b", {"b": "x"}),
    ("SELECT '?' AS a, ':k' AS b FROM l WHERE k IN (?, ?) -- ?", [True, 2]),
    ("SELECT l.k AS k FROM l JOIN table(q) AS q ON l.k = q.k AND q.n > ?", [1.5]),
]
REFUSED: Sequence[tuple[str, Arguments | None, str]] = [
    ("SELECT k FROM l WHERE k = ?", None, "no arguments"),
    ("SELECT k FROM l WHERE k = ?", [], "fewer arguments than parameters: 0, and 1"),
    ("SELECT k FROM l WHERE k = ?", [1, 2], "more arguments than parameters: 2, and 1"),
    ("SELECT k FROM l", [1], "more arguments than parameters: 1, and 0"),
    ("SELECT k FROM l WHERE k = :key", {"kay": 1}, "there is no argument key"),
    ("SELECT k FROM l WHERE k = :k", {"k": 1, "n": 2}, "there is an argument n"),
    ("SELECT k FROM l WHERE k = :k", [1], ":k has a name"),
    ("SELECT k FROM l WHERE k = ?", {"k": 1}, "has no name"),
    ("SELECT k FROM l WHERE k = ?", [b"x"], "has the type bytes"),
    ("SELECT k FROM l WHERE k = ?", [[1]], "has the type list"),
    ("SELECT k FROM l WHERE k = ?", [float("nan")], "number that cannot be written"),
    ("SELECT k FROM l WHERE k = ?", [2**127], "number that cannot be written"),
    ("SELECT k FROM l WHERE k = ?", [Decimal("1e40")], "number that cannot be written"),
    ("SELECT k FROM l WHERE k = ?", [Decimal("1e-999999999")], "number that cannot be written"),
    ("SELECT k FROM l WHERE k = ?", [datetime.fromisoformat("0001-01-01T00:00+23:59")], "time that cannot be written"),
    ("SELECT k FROM l WHERE k = ?", [datetime.fromisoformat("9999-12-31T23:59-23:59")], "time that cannot be written"),
    ("SELECT k FROM ?", ["l"], "a name is expected"),
    ("SELECT l.? FROM l", ["k"], "a name is expected"),
    ("SELECT k AS ? FROM l", ["x"], "a name is expected"),
    ("SELECT k FROM l ORDER BY ? LIMIT 3", [1], "a name is expected"),
    ("SELECT k FROM l GROUP BY ?", [1], "a name is expected"),
    ("SELECT k FROM l JOIN ? ON true", ["q"], "a name is expected"),
    ("INSERT INTO l (k) VALUES (? + 1)", [1], "stands alone in VALUES"),
    ("CREATE VIEW v AS SELECT k FROM l WHERE k = ?", [1], "CREATE VIEW has no parameters"),
    (
        "CREATE MATERIALIZED VIEW v AS SELECT k FROM l WHERE k = :k",
        {"k": 1},
        "CREATE MATERIALIZED VIEW has no parameters",
    ),
    ("EXPLAIN SELECT k FROM l WHERE k = ?", [1], "EXPLAIN has no parameters"),
    ("UPDATE q SET n = ? WHERE k = 1", [1], "UPDATE has no parameters"),
    ("DELETE FROM q WHERE k = ?", [1], "DELETE FROM has no parameters"),
]


def select(text: str, arguments: Arguments) -> Select:
    statement = parse_one(text, arguments=arguments)
    assert isinstance(statement, Select)
    return statement


@pytest.mark.parametrize(("query", "arguments"), FITTING)
def test_a_query_is_planned_with_its_values(query: str, arguments: Arguments) -> None:
    statement = select(query, arguments)
    assert statement.bound
    assert not list(statement.query.find_all(exp.Placeholder))
    plan_query("q", statement, Planner.of(*WORLD).catalog)


@pytest.mark.parametrize(("text", "arguments", "message"), REFUSED)
def test_what_does_not_fit_is_refused(text: str, arguments: Arguments | None, message: str) -> None:
    with pytest.raises(SqlError) as refused:
        parse(text, arguments=arguments)
    assert message in refused.value.what
    assert refused.value.where
    assert refused.value.fix


@given(NASTY)
def test_a_text_stays_one_literal(text: str) -> None:
    """Nothing of it is read: the tree is the one of another text, but for the literal."""
    query = "SELECT k FROM l WHERE s = ? AND k = 1"
    found, expected = (select(query, [one]).readings for one in (text, "plain"))
    assert found is not None
    assert expected is not None
    for rules in Rules:
        tree = found.of(rules).copy()
        [literal] = [one for one in tree.find_all(exp.Literal) if one.is_string]
        assert literal.this == text
        literal.replace(exp.Literal.string("plain"))
        assert tree == expected.of(rules)


@given(st.lists(st.one_of(NASTY, INTEGERS, DECIMALS, DATES, st.none(), st.booleans()), max_size=5))
def test_values_of_an_insert_are_what_was_given(values: list[Any]) -> None:
    marks = ", ".join("?" * len(values)) or "1"
    script = f"SELECT ? AS x; INSERT INTO l VALUES ({marks}); SELECT ? AS y"
    _, statement, last = parse(script, arguments=["first", *values, "last"])
    assert isinstance(statement, Insert)
    assert isinstance(last, Select)
    expected = tuple(value.isoformat() if isinstance(value, date) else value for value in values)
    assert statement.rows == ((expected if values else (1,)),)
    assert [one.this for one in last.query.find_all(exp.Literal)] == ["last"]


def test_a_condition_of_why_is_bound_in_the_dialect_of_its_view() -> None:
    why = parse_one("WHY v WHERE k = :k AND at > :at", arguments={"k": -1, "at": NOON})
    assert isinstance(why, Why)
    assert not list(why.where.find_all(exp.Placeholder))
    again = parse_one(why.text, Rules.RISINGWAVE, why.arguments)
    assert isinstance(again, Why)
    assert again.where.sql("postgres") == "k = -1 AND at > CAST('2026-01-31 12:00:00.000000+00:00' AS TIMESTAMPTZ)"


@pytest.mark.parametrize(
    "text", ["SELECT s:a FROM l", "SELECT a[:k] FROM q", "SELECT k > 1 ? k : n AS x FROM l", "SELECT j ? 'k' FROM q"]
)
def test_other_signs_are_no_parameters(text: str) -> None:
    assert not select(text, []).bound


def test_a_time_with_a_zone_is_the_same_moment() -> None:
    east = NOON.astimezone(timezone(timedelta(hours=5, minutes=30)))
    one, other = (select("SELECT k FROM l WHERE t = ?", [moment]).query for moment in (NOON, east))
    assert one == other


def test_a_script_counts_its_parameters_over_all_statements() -> None:
    with pytest.raises(Unsupported, match="CREATE VIEW"):
        parse("SELECT ? AS x; CREATE VIEW v AS SELECT ? AS x", arguments=[1, 2])
    first, second = parse("SELECT ? AS x; SELECT ? AS x", arguments=["a", "b"])
    assert isinstance(first, Select)
    assert isinstance(second, Select)
    assert [tree.find(exp.Literal).name for tree in (first.query, second.query)] == ["a", "b"]  # type: ignore[union-attr]
