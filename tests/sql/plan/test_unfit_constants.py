"""Conditions with a text that is none of a column's values are refused; and what a missing ON may be."""

from __future__ import annotations

import re

import pytest

from dovetail.changelog.errors import SqlError
from tests.sql.planner import Planner

PLANNER = Planner.of(
    "CREATE STREAM s (k int, n int, x string, at datetime64(3), b bool, p decimal(10, 2), a array(int))",
    "CREATE STREAM r (k int, m int)",
    "CREATE TABLE t (id INT, name VARCHAR, at TIMESTAMP, p NUMERIC, b BOOLEAN, PRIMARY KEY (id))",
)


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("n = 'abc'", "'abc' is not a valid int32, the type of n"),
        ("'abc' <> n", "'abc' is not a valid int32, the type of n"),
        ("n = 'abc' OR x = 'abc'", "'abc' is not a valid int32, the type of n"),
        ("n IN (1, 2) AND k > '1e'", "'1e' is not a valid int32, the type of k"),
        ("NOT (n = 'abc')", "'abc' is not a valid int32, the type of n"),
        ("at = 'yesterday'", "'yesterday' is not a valid datetime64(3, 'UTC'), the type of at"),
        ("at BETWEEN '2026-01-01' AND 'now'", "'now' is not a valid datetime64(3, 'UTC'), the type of at"),
        ("p < 'cheap'", "'cheap' is not a valid decimal(10, 2), the type of p"),
        ("b = 'perhaps'", "'perhaps' is not a valid bool, the type of b"),
    ],
)
def test_a_text_that_is_no_value_is_refused(condition: str, message: str) -> None:
    with pytest.raises(SqlError) as refused:
        PLANNER.plan(f"SELECT k FROM s WHERE {condition}")
    assert message in refused.value.what
    _, _, name = refused.value.what.rpartition("the type of ")
    assert f"CAST({name} AS string)" in refused.value.fix


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("n = 'abc'", "'abc' is not a valid int32, the type of n"),
        ("'abc' <> q.n", "'abc' is not a valid int32, the type of n"),
        ("NOT (q.n = 'abc' OR x = 'abc')", "'abc' is not a valid int32, the type of n"),
        ("at BETWEEN '2026-01-01' AND 'now'", "'now' is not a valid datetime64(3, 'UTC'), the type of at"),
        ("n + 1 = 'abc'", "'abc' is not a valid int64, the type of what it is compared with"),
        ("k IN (SELECT r.k FROM table(r) AS r WHERE r.m = 'abc')", "'abc' is not a valid int32, the type of m"),
    ],
)
def test_so_it_is_over_the_content_of_a_stream(condition: str, message: str) -> None:
    with pytest.raises(SqlError) as refused:
        PLANNER.plan(f"SELECT k FROM table(s) AS q WHERE {condition}")
    assert refused.value.what == message


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            "SELECT k FROM table(s) GROUP BY k HAVING count() > 'many'",
            "'many' is not a valid int64, the type of what it is compared with",
        ),
        (
            "SELECT s.k FROM table(s) AS s JOIN table(r) AS r ON s.k = r.k AND r.m > 'many'",
            "'many' is not a valid int32, the type of m",
        ),
    ],
)
def test_so_it_is_in_other_clauses_of_such_a_query(query: str, message: str) -> None:
    with pytest.raises(SqlError, match=re.escape(message)):
        PLANNER.plan(query)


@pytest.mark.parametrize("source", ["t", "table(t)"])
@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("id = 'abc'", "'abc' is not a valid integer, the type of id"),
        ("'1.5' < id", "'1.5' is not a valid integer, the type of id"),
        ("id BETWEEN '1' AND 'many'", "'many' is not a valid integer, the type of id"),
        ("at > 'yesterday'", "'yesterday' is not a valid timestamp, the type of at"),
        ("p < 'cheap'", "'cheap' is not a valid numeric, the type of p"),
        ("b = 'perhaps'", "'perhaps' is not a valid boolean, the type of b"),
        ("id IS DISTINCT FROM 'it''s'", "'it''s' is not a valid integer, the type of id"),
        ("id + 1 = 'abc'", "'abc' is not a valid integer, the type of what it is compared with"),
    ],
)
def test_so_it_is_of_tables(source: str, condition: str, message: str) -> None:
    with pytest.raises(SqlError) as refused:
        PLANNER.plan(f"SELECT id FROM {source} WHERE {condition}")
    assert refused.value.what == message


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
    with pytest.raises(SqlError, match=r"'many' is not a valid int64, the type of count\(\*\)\n"):
        PLANNER.plan("SELECT k, count() AS c FROM s GROUP BY k HAVING c > 'many'")
    assert PLANNER.plan("SELECT id FROM t WHERE id = '12'").warnings == ()


def test_one_in_a_list_is_told_of() -> None:
    assert PLANNER.plan("SELECT k FROM s WHERE n IN (1, 'abc')").warnings == (
        "'abc' is not a valid int32, the type of n: it is in no row",
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
