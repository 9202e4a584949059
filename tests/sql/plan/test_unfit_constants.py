"""Conditions with a text that is none of a column's values are refused; and what a missing ON may be."""

from __future__ import annotations

import pytest

from dovetail.changelog.errors import SqlError
from tests.sql.planner import Planner

PLANNER = Planner.of(
    "CREATE STREAM s (k int, n int, x string, at datetime64(3), b bool, p decimal(10, 2), a array(int))",
    "CREATE STREAM r (k int, m int)",
    "CREATE TABLE t (id INT, name VARCHAR, at TIMESTAMP, p NUMERIC, b BOOLEAN, PRIMARY KEY (id))",
)


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ("n = 'abc'", "n is int32, and 'abc' is none"),
        ("'abc' <> n", "n is int32, and 'abc' is none"),
        ("n = 'abc' OR x = 'abc'", "n is int32, and 'abc' is none"),
        ("n IN (1, 2) AND k > '1e'", "k is int32, and '1e' is none"),
        ("NOT (n = 'abc')", "n is int32, and 'abc' is none"),
        ("at = 'yesterday'", "at is datetime64(3, 'UTC'), and 'yesterday' is none"),
        ("at BETWEEN '2026-01-01' AND 'now'", "'now' is none"),
        ("p < 'cheap'", "p is decimal(10, 2), and 'cheap' is none"),
        ("b = 'perhaps'", "b is bool, and 'perhaps' is none"),
    ],
)
def test_a_text_that_is_no_value_is_refused(condition: str, told: str) -> None:
    with pytest.raises(SqlError) as refused:
        PLANNER.plan(f"SELECT k FROM s WHERE {condition}")
    assert told in refused.value.what
    name = told.split(" ", maxsplit=1)[0].strip("'")
    assert name == "now" or f"CAST({name} AS string)" in refused.value.fix


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ("n = 'abc'", "n is int32, and 'abc' is none"),
        ("'abc' <> q.n", "n is int32, and 'abc' is none"),
        ("NOT (q.n = 'abc' OR x = 'abc')", "n is int32, and 'abc' is none"),
        ("at BETWEEN '2026-01-01' AND 'now'", "at is datetime64(3, 'UTC'), and 'now' is none"),
        ("n + 1 = 'abc'", "what stands beside it is int64, and 'abc' is none"),
        ("k IN (SELECT r.k FROM table(r) AS r WHERE r.m = 'abc')", "m is int32, and 'abc' is none"),
    ],
)
def test_so_it_is_over_the_content_of_a_stream(condition: str, told: str) -> None:
    with pytest.raises(SqlError) as refused:
        PLANNER.plan(f"SELECT k FROM table(s) AS q WHERE {condition}")
    assert refused.value.what == told


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k FROM table(s) GROUP BY k HAVING count() > 'many'",
        "SELECT s.k FROM table(s) AS s JOIN table(r) AS r ON s.k = r.k AND r.m > 'many'",
    ],
)
def test_so_it_is_in_other_clauses_of_such_a_query(query: str) -> None:
    with pytest.raises(SqlError, match="'many' is none"):
        PLANNER.plan(query)


@pytest.mark.parametrize("source", ["t", "table(t)"])
@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ("id = 'abc'", "id is integer, and 'abc' is none"),
        ("'1.5' < id", "id is integer, and '1.5' is none"),
        ("id BETWEEN '1' AND 'many'", "id is integer, and 'many' is none"),
        ("at > 'yesterday'", "at is timestamp, and 'yesterday' is none"),
        ("p < 'cheap'", "p is numeric, and 'cheap' is none"),
        ("b = 'perhaps'", "b is boolean, and 'perhaps' is none"),
        ("id IS DISTINCT FROM 'it''s'", "id is integer, and 'it''s' is none"),
        ("id + 1 = 'abc'", "what stands beside it is integer, and 'abc' is none"),
    ],
)
def test_so_it_is_of_tables(source: str, condition: str, told: str) -> None:
    with pytest.raises(SqlError) as refused:
        PLANNER.plan(f"SELECT id FROM {source} WHERE {condition}")
    assert refused.value.what == told


@pytest.mark.parametrize("source", ["t", "table(t)"])
@pytest.mark.parametrize(
    "condition",
    [
        *("id = ' 12 '", "at > '2026-01-01'", "at > '2026-01-01 12:00:00+02'", "p < '1e3'", "b = 't'", "b <> ' OFF '"),
        *("id = NULL", "name = 'abc'", "id = CAST('abc' AS int)", "CAST(id AS varchar) = 'abc'", "id IN (1, 'abc')"),
    ],
)
def test_values_of_tables_are_not(source: str, condition: str) -> None:
    PLANNER.plan(f"SELECT id FROM {source} WHERE {condition}")


@pytest.mark.parametrize("source", ["t", "table(t)"])
def test_what_a_function_has_in_it_is_not_looked_at(source: str) -> None:
    """The engine's form of it compares the argument of a lambda with a text."""
    PLANNER.plan(rf"SELECT id FROM {source} WHERE ('De\123\\x'::bytea) IS NOT NULL")


def test_so_it_is_in_having() -> None:
    with pytest.raises(SqlError, match="'many' is none"):
        PLANNER.plan("SELECT k, count() AS c FROM s GROUP BY k HAVING c > 'many'")
    assert PLANNER.plan("SELECT id FROM t WHERE id = '12'").warnings == ()


def test_one_in_a_list_is_told_of() -> None:
    assert PLANNER.plan("SELECT k FROM s WHERE n IN (1, 'abc')").warnings == (
        "n is int32, and 'abc' is none: it is in no row",
    )
    assert PLANNER.plan("SELECT k FROM s WHERE n = to_int_or_null('abc')").warnings == ()


@pytest.mark.parametrize(
    "condition", ["n = '12'", "x = 'abc'", "at > '2026-01-01'", "n = k", "has(a, 3)", "x IN ('a', 'b')"]
)
def test_a_text_that_is_a_value_is_not(condition: str) -> None:
    assert PLANNER.plan(f"SELECT k FROM s WHERE {condition}").warnings == ()


@pytest.mark.parametrize(
    ("query", "fix"),
    [
        ("SELECT s.n FROM s JOIN r", "JOIN .. ON s.k = r.k"),
        ("SELECT s.n FROM s LEFT JOIN r", "JOIN .. ON s.k = r.k"),
        ("SELECT x.n FROM s AS x CROSS JOIN r AS y", "JOIN .. ON x.k = y.k"),
    ],
)
def test_a_missing_condition_is_offered(query: str, fix: str) -> None:
    with pytest.raises(SqlError) as refused:
        PLANNER.plan(query)
    assert fix in refused.value.fix
