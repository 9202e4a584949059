"""A statement that is too long, nested too deeply, or that grows too large is told so, before it takes long."""

from __future__ import annotations

import pytest

from dovetail.changelog.errors import SqlError
from dovetail.sql.syntax.bounds.statement_bounds import MOST_TEXT
from dovetail.sql.syntax.parse import parse
from tests.sql.planner import Planner

PLANNER = Planner.of("CREATE STREAM s (a int64, b string)")
BOUNDED, STREAMING = "table(s)", "s"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT '" + "x" * MOST_TEXT + "'",
        "SELECT a FROM s WHERE a IN (" + ",".join(map(str, range(30_000))) + ")",
        "SELECT a FROM s WHERE " + " AND ".join(["a=1"] * 20_000),
        "SELECT " + "1+" * 100_000 + "1",
        "SELECT " + "(" * 100_000 + "1" + ")" * 100_000,
        "SELECT 1 " + "/*" * 200_000,
        "SELECT 1 " + "/*" * 20_000 + "*/" * 20_000,
        "INSERT INTO s (b) VALUES ('" + "x" * (1 << 20) + "')",
    ],
)
@pytest.mark.parametrize("before", ["", "EXPLAIN ", "CREATE VIEW v AS ", "WHY v WHERE "])
def test_what_is_too_long_is_refused_as_it_is_read(text: str, before: str) -> None:
    with pytest.raises(SqlError, match=r"no more than|within each other|nested too deeply") as fault:
        parse(before + text)
    assert fault.value.fix


def test_rows_may_be_a_megabyte() -> None:
    rows = ", ".join(f"({row}, '{'x' * 80}')" for row in range(10_000))
    assert 900_000 < len(rows) < 1 << 20
    assert len(parse(f"INSERT INTO s (a, b) VALUES {rows}")) == 1


def test_a_script_may_have_many_statements_of_any_length_together() -> None:
    one = "SELECT '" + "x" * (MOST_TEXT // 2) + "';"
    assert len(parse(one * 4)) == 4


@pytest.mark.parametrize("relation", [BOUNDED, STREAMING])
@pytest.mark.parametrize(
    "select",
    [
        "SELECT " + "tuple(" * 20 + "a" + ")" * 20 + " AS x FROM {}",
        "SELECT " + "tuple(" * 50 + "a" + ")" * 50 + " AS x FROM {}",
        "SELECT " + "replace(" * 12 + "b" + ", 'a', 'b')" * 12 + " AS x FROM {}",
        "SELECT " + "replace(" * 30 + "b" + ", 'a', 'b')" * 30 + " AS x FROM {}",
        "SELECT a AS c0, " + ", ".join(f"c{at} + c{at} AS c{at + 1}" for at in range(40)) + " FROM {}",
        "SELECT a FROM {} WHERE " + "(" * 30 + "a" + " BETWEEN 1 AND 2)" * 30,
        "SELECT " + "CASE " * 20 + "a" + " WHEN 1 THEN 1 WHEN 2 THEN 2 WHEN 3 THEN 3 END" * 20 + " AS x FROM {}",
    ],
)
def test_what_doubles_at_each_level_is_refused_while_it_is_made(select: str, relation: str) -> None:
    with pytest.raises(SqlError) as fault:
        PLANNER.plan(select.format(relation))
    assert fault.value.fix


@pytest.mark.parametrize("combined", ["UNION ALL SELECT a FROM x{}", "JOIN x{} AS r ON x{}.a = r.a"])
def test_what_with_names_again_and_again_is_refused(combined: str) -> None:
    steps = []
    for at in range(30):
        again = combined.format(at, at)
        column = f"x{at}.a" if "JOIN" in combined else "a"
        steps.append(f"x{at + 1} AS (SELECT {column} FROM x{at} {again})")
    with pytest.raises(SqlError, match="relations"):
        PLANNER.plan(f"WITH x0 AS (SELECT a FROM s), {', '.join(steps)} SELECT a FROM x30")


@pytest.mark.parametrize("relation", [BOUNDED, STREAMING])
def test_long_lists_and_many_columns_are_no_harm(relation: str) -> None:
    values = ",".join(map(str, range(2000)))
    columns = ", ".join(f"a + {number} AS c{number}" for number in range(300))
    PLANNER.plan(f"SELECT {columns} FROM {relation} WHERE a IN ({values})")


@pytest.mark.parametrize(
    "place", ["SELECT {} AS a", "SELECT a FROM {{}} LIMIT {}", "SELECT a FROM {{}} WHERE a IN (1, {})"]
)
def test_a_number_is_no_longer_than_any_type(place: str) -> None:
    with pytest.raises(SqlError, match="more than 1000 characters"):
        PLANNER.plan(place.format("9" * 5_000).format(BOUNDED))
