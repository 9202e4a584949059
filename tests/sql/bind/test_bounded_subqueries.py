"""Bounded queries with subqueries in all places, against DuckDB over the same rows."""

from __future__ import annotations

import re
from collections import Counter

import duckdb
import pytest

from dovetail.changelog.errors import Unsupported
from tests.sql.compile.changing import TABLES
from tests.sql.world import World

ROWS: dict[str, list[tuple[object, ...]]] = {
    "held": [(0, 1, 1.5), (1, 1, None), (2, 2, 0.0), (3, None, 2.0), (4, 2, 2.0)],
    "seen": [(0, 1, 1.0), (1, 2, 2.0), (2, None, 1.5), (4, 2, None)],
    "marks": [(1, 1.5), (1, 2.0), (2, 0.0), (None, 1.5), (2, 2.0)],
}
COLUMNS = {"held": ("id", "k", "v"), "seen": ("id", "k", "w"), "marks": ("k", "w")}
KINDS = {"id": "int", "k": "int", "v": "double", "w": "double"}
QUERIES = [
    ("SELECT h.id, x.m FROM table(held) AS h, LATERAL (SELECT max(w) AS m FROM table(seen) AS s WHERE s.k = h.k) AS x"),
    (
        "SELECT h.id, x.w FROM table(held) AS h LEFT JOIN LATERAL (SELECT w FROM table(seen) AS s WHERE s.k = h.k "
        "ORDER BY w DESC NULLS LAST LIMIT 1) AS x ON true"
    ),
    (
        "SELECT h.id, s.w FROM table(held) AS h LEFT JOIN table(seen) AS s ON h.k = s.k AND h.v IN (SELECT w FROM "
        "table(marks))"
    ),
    (
        "SELECT h.id, s.w FROM table(held) AS h LEFT JOIN table(seen) AS s ON h.k = s.k AND EXISTS (SELECT 1 FROM "
        "table(marks) AS m WHERE m.k = s.id)"
    ),
    "SELECT sum((SELECT max(w) FROM table(seen))) AS n FROM table(held)",
    "SELECT k, sum(v - (SELECT max(w) FROM table(seen))) AS n FROM table(held) GROUP BY k",
    ("SELECT k, sum(CASE WHEN id IN (SELECT id FROM table(seen)) THEN 1 ELSE 0 END) AS n FROM table(held) GROUP BY k"),
    (
        "SELECT k, count(*) FILTER (WHERE EXISTS (SELECT 1 FROM table(seen) AS s WHERE s.id = held.id)) AS n FROM "
        "table(held) GROUP BY k"
    ),
    (
        "SELECT h.id FROM table(held) AS h WHERE EXISTS (SELECT 1 FROM (SELECT * FROM table(seen) AS s WHERE s.k "
        "= h.k) AS x WHERE x.w > 1)"
    ),
    (
        "SELECT h.id, (SELECT max(w) FROM (SELECT w FROM table(seen) AS s WHERE s.k = h.k) AS x) AS m FROM "
        "table(held) AS h"
    ),
    (
        "SELECT h.id FROM table(held) AS h WHERE EXISTS (SELECT 1 FROM table(seen) AS s WHERE s.k = h.k AND "
        "EXISTS (SELECT 1 FROM table(marks) AS m WHERE m.k = s.k AND m.w = h.v))"
    ),
    (
        "SELECT (SELECT count(*) FROM table(seen) AS s WHERE s.k = held.k) AS c, count(*) AS n FROM table(held) "
        "GROUP BY (SELECT count(*) FROM table(seen) AS s WHERE s.k = held.k)"
    ),
    (
        "SELECT (SELECT count(*) FROM table(seen) AS s WHERE s.k = held.k) AS c, count(*) AS n FROM table(held) "
        "GROUP BY c"
    ),
    (
        "SELECT id, rank() OVER (ORDER BY (SELECT count(*) FROM table(seen) AS s WHERE s.k = held.k)) AS r FROM "
        "table(held)"
    ),
    (
        "WITH x AS (SELECT k, max(w) AS m FROM table(seen) GROUP BY k) SELECT id FROM table(held) WHERE v >= "
        "(SELECT m FROM x WHERE x.k = held.k)"
    ),
    "SELECT id FROM table(held) WHERE (k, v) IN (SELECT k, w FROM table(marks))",
    (
        "SELECT id, CASE WHEN k IN (SELECT k FROM table(marks)) THEN (SELECT max(w) FROM table(seen)) ELSE 0 END "
        "AS c FROM table(held)"
    ),
    "SELECT max((SELECT min(w) FROM table(seen) AS s WHERE s.k = held.k)) AS m FROM table(held)",
    (
        "SELECT id, EXISTS (SELECT 1 FROM table(seen) AS s JOIN table(marks) AS m ON s.k = m.k AND m.w = held.v) "
        "AS e FROM table(held)"
    ),
    "SELECT id FROM table(held) WHERE id IN (SELECT id FROM table(seen) UNION ALL SELECT k FROM table(marks))",
    "SELECT k, bool_or(v IN (SELECT w FROM table(marks))) AS a FROM table(held) GROUP BY k",
    (
        "SELECT k, sum(CASE WHEN EXISTS (SELECT 1 FROM table(seen) AS s WHERE s.id = held.id) THEN v ELSE 0 END) "
        "AS n FROM table(held) GROUP BY k HAVING sum(CASE WHEN v IN (SELECT w FROM table(marks)) THEN 1 ELSE 0 "
        "END) > 0"
    ),
    (
        "SELECT id, sum((SELECT max(w) FROM table(seen) AS s WHERE s.k = held.k)) OVER (PARTITION BY k) AS s FROM "
        "table(held)"
    ),
    (
        "SELECT id FROM table(held) AS h WHERE EXISTS (SELECT 1 FROM (SELECT * FROM table(seen) AS s WHERE s.k = "
        "h.k) AS x(a, b, c) WHERE x.c > 1)"
    ),
    (
        "SELECT h.id, (SELECT count(*) FROM (SELECT DISTINCT w FROM (SELECT w FROM table(seen) AS s WHERE s.k = "
        "h.k) AS y) AS x) AS m FROM table(held) AS h"
    ),
    (
        "SELECT h.id FROM table(held) AS h WHERE h.k IN (SELECT x.k FROM (SELECT s.k, s.w + h.v AS t FROM "
        "table(seen) AS s) AS x JOIN table(marks) AS m ON m.k = x.k WHERE x.t > 2)"
    ),
    (
        "WITH y AS (SELECT k, w FROM table(seen)) SELECT h.id FROM table(held) AS h WHERE EXISTS (SELECT 1 FROM "
        "(SELECT * FROM y WHERE y.k = h.k) AS x)"
    ),
    (
        "SELECT (SELECT max(w) FROM table(seen)) AS m, k IN (SELECT k FROM table(marks)) AS e, count(*) AS n FROM "
        "table(held) GROUP BY (SELECT max(w) FROM table(seen)), k IN (SELECT k FROM table(marks))"
    ),
    "SELECT DISTINCT (SELECT max(w) FROM table(seen) AS s WHERE s.k = held.k) AS m FROM table(held)",
    (
        "SELECT id FROM table(held) AS a WHERE v > (SELECT avg(b.v) FROM table(held) AS b WHERE b.k = a.k AND "
        "EXISTS (SELECT 1 FROM table(seen) AS s WHERE s.k = b.k AND s.id = a.id))"
    ),
    (
        "SELECT a.id, b.id AS other FROM table(held) AS a JOIN (SELECT id, k FROM table(seen) WHERE w > (SELECT "
        "min(w) FROM table(marks))) AS b ON a.k = b.k"
    ),
    (
        "SELECT sum(n) AS t FROM (SELECT count(*) + (SELECT count(*) FROM table(marks)) AS n FROM table(held) "
        "GROUP BY k) AS x"
    ),
    "SELECT array_agg((SELECT max(w) FROM table(seen)) ORDER BY id)[2] AS a FROM table(held)",
]


@pytest.fixture(scope="module")
def world() -> World:
    world = World.of(*TABLES)
    for table, rows in ROWS.items():
        world.insert(table, *(dict(zip(COLUMNS[table], row, strict=True)) for row in rows))
    return world


@pytest.fixture(scope="module")
def batch() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for table, rows in ROWS.items():
        declared = ", ".join(f"{name} {KINDS[name]}" for name in COLUMNS[table])
        connection.execute(f"CREATE TABLE {table} ({declared})")
        connection.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(COLUMNS[table]))})", rows)
    return connection


@pytest.mark.parametrize("query", QUERIES)
def test_the_answer_is_that_of_duckdb(world: World, batch: duckdb.DuckDBPyConnection, query: str) -> None:
    wanted = batch.execute(re.sub(r"table\((\w+)\)", r"\1", query)).fetchall()
    assert Counter(tuple(row.values()) for row in world.engine.snapshot(query)) == Counter(wanted)


@pytest.mark.parametrize("quantifier", [">= ALL", "> ANY", "<> ANY"])
def test_what_is_not_asked_says_what_to_write(world: World, quantifier: str) -> None:
    with pytest.raises(Unsupported, match="over a subquery") as refused:
        world.engine.snapshot(f"SELECT id FROM table(held) WHERE v {quantifier} (SELECT w FROM table(seen) AS s)")
    assert "SELECT max" in refused.value.fix
