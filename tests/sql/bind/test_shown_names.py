"""Errors speak of what the user wrote, an operator or a word, and name what works in its place."""

from __future__ import annotations

import pytest

from dovetail.changelog.errors import SqlError
from tests.sql.world import World

OPERATORS = [
    ("s + 1", "a + b takes numbers, not text", "CAST(s AS int) + 1"),
    ("s + s", "a + b takes numbers, not text", "s || s"),
    ("s - n", "a - b takes numbers, not text", "CAST(s AS int) - n"),
    ("s * n", "a * b takes numbers, not text", "CAST(s AS int) * n"),
    ("n / s", "a / b takes numbers, not text", "n / CAST(s AS int)"),
    ("n % s", "a % b takes numbers, not text", "n % CAST(s AS int)"),
    ("-s", "-a takes numbers, not text", "-CAST(s AS int)"),
    ("n[1]", "a[n] takes an array, not a number", "tags[1]"),
    ("s[1]", "a[n] takes an array, not a text", "substring(s, 1, 1)"),
    ("s.1", "a.x takes a tuple, not a text", "pair.1"),
    ("s.name", "a.x takes a tuple, not a text", "s:name"),
    ("pair.3", "a.x takes a position from 1 to 2", "pair.2"),
]


@pytest.fixture(scope="module")
def world() -> World:
    return World.of(
        "CREATE STREAM l (n int, s string, tags array(string), pair tuple(int, string), t datetime64(3))",
        "CREATE TABLE a (n INT, s VARCHAR, at TIMESTAMP) APPEND ONLY",
    )


@pytest.mark.parametrize(("text", "what", "mended"), OPERATORS)
def test_an_operator_is_shown_as_it_is_written(world: World, text: str, what: str, mended: str) -> None:
    with pytest.raises(SqlError) as fault:
        world.plan(f"SELECT {text} AS x FROM l")
    assert fault.value.what == what
    assert fault.value.where.startswith("line 1, column")
    assert fault.value.fix
    world.plan(f"SELECT {mended} AS x FROM l")


REFUSED = [
    (
        "SELECT at + INTERVAL 5 MINUTE AS x FROM a",
        "5 MINUTE is no length of time",
        "SELECT at + INTERVAL '5' MINUTE AS x FROM a",
    ),
    ("SELECT n FROM a WHERE n = 1 && n = 2", "there is no integer && integer", "SELECT n FROM a WHERE n = 1 AND n = 2"),
    ("SELECT n FROM l WHERE n = 1 && s = 'a'", "unexpected &&", "SELECT n FROM l WHERE n = 1 AND s = 'a'"),
    (
        "SELECT n FROM table(a) MINUS SELECT n FROM table(a)",
        "unexpected SELECT",
        "SELECT n FROM a EXCEPT SELECT n FROM a",
    ),
    ("SELECT * l", "unexpected L after *", "SELECT * FROM table(l)"),
    ("SELECT CURRENT_USER FROM l", "the user of a session is not supported", "SELECT n FROM l"),
    ("SELECT @@version FROM l", "a variable is not supported", "SELECT '1.0' AS version FROM l"),
    ("SELECT min(n, 2) AS x FROM l", "min of several values is not supported", "SELECT least(n, 2) AS x FROM l"),
    ("SELECT max(n, 2) AS x FROM a", "max of several values is not supported", "SELECT greatest(n, 2) AS x FROM a"),
    (
        "SELECT n FROM l PIVOT (sum(n) FOR s IN ('a'))",
        "PIVOT is not supported",
        "SELECT sum(CASE WHEN s = 'a' THEN n END) AS a FROM l",
    ),
    (
        "SELECT n FROM l LATERAL VIEW explode(tags) t AS x",
        "LATERAL VIEW is not supported",
        "SELECT n, x FROM l ARRAY JOIN tags AS x",
    ),
    ("SELECT n, x FROM l, UNNEST(tags) AS u(x)", "UNNEST is for tables", "SELECT n, x FROM l ARRAY JOIN tags AS x"),
    ("SELECT * FROM numbers(10)", "numbers() names no stream", "SELECT * FROM generate_series(0, 9) AS g(n)"),
    (
        "SELECT n FROM table(l) WHERE sum(n) > 1",
        "an aggregate (sum) is not allowed in WHERE",
        "SELECT s FROM table(l) GROUP BY s HAVING sum(n) > 1",
    ),
    (
        "SELECT n FROM table(l) WHERE row_number() OVER (ORDER BY n) = 1",
        "a window function is not allowed in WHERE",
        "SELECT n FROM table(l) QUALIFY row_number() OVER (ORDER BY n) = 1",
    ),
    ("SELECT interval '1 dya'", "the query has no answer as it is written", "SELECT now() + INTERVAL '1 day' AS x"),
    ("SELECT now", 'there is no column "now"', "SELECT now() AS x"),
    ("SELECT n FROM l FORMAT JSON", "how rows are written is not said in a query", "SELECT n FROM l"),
]


@pytest.mark.parametrize(("text", "what", "mended"), REFUSED)
def test_what_is_refused_names_what_works(world: World, text: str, what: str, mended: str) -> None:
    with pytest.raises(SqlError) as fault:
        world.plan(text)
    assert what in fault.value.what
    assert fault.value.where
    assert fault.value.fix
    world.plan(mended)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT date_trunc(hour, t) AS x FROM l",
        "SELECT date_add(day, 1, t) AS x FROM table(l)",
        "SELECT date_trunc(hour, at) AS x FROM a",
    ],
)
def test_a_unit_has_quotes_or_none(world: World, query: str) -> None:
    world.plan(query)


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("system.tables", "SHOW STREAMS"),
        ("information_schema.tables", "SHOW STREAMS"),
        ("information_schema.columns", "DESCRIBE s"),
        ("pg_catalog.pg_views", "SHOW VIEWS"),
        ("rw_materialized_views", "SHOW VIEWS"),
        ("system.query_log", "SHOW QUERIES"),
        ("system.unheard_of", "SHOW STREAMS"),
    ],
)
def test_tables_of_other_systems_are_statements_here(world: World, name: str, fix: str) -> None:
    with pytest.raises(SqlError) as fault:
        world.plan(f"SELECT * FROM {name}")
    assert fault.value.fix.startswith(fix)
