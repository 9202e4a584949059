"""EXPLAIN, compared with golden files."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.sql.world import World

DDL = (
    "CREATE MUTABLE STREAM orders (id int, customer int, symbol string, amount decimal(10, 2)) PRIMARY KEY id",
    "CREATE STREAM customers (id int, name string, city string) PRIMARY KEY id SETTINGS mode='versioned_kv'",
    "CREATE STREAM trades (symbol string, price float64, at datetime64(3))",
    "CREATE STREAM quotes (symbol string, bid float64, at datetime64(3))",
    "CREATE TABLE shipments (order_id INT, at TIMESTAMPTZ, WATERMARK FOR at AS at - INTERVAL '5 seconds') APPEND ONLY",
    "CREATE TABLE parts (id INT, order_id BIGINT, PRIMARY KEY (id))",
)
QUERIES = {
    "keyed_inner": "SELECT o.id, amount, name FROM orders AS o JOIN customers AS c ON o.customer = c.id "
    "WHERE amount > 10 EMIT CHANGELOG",
    "keyed_left_defaults": "SELECT o.id, name FROM orders AS o LEFT JOIN customers AS c ON o.id = c.id "
    "AND city = 'Oslo' SETTINGS join_use_nulls = 0",
    "enrichment": "SELECT t.price, o.amount FROM trades AS t JOIN orders AS o ON t.symbol = o.symbol",
    "asof": "SELECT t.price, q.bid FROM trades AS t LEFT ASOF JOIN quotes AS q ON t.symbol = q.symbol AND t.at >= q.at",
    "range": "SELECT t.price, q.bid FROM trades AS t JOIN quotes AS q ON t.symbol = q.symbol "
    "AND date_diff_within(10s, t.at, q.at)",
    "static": "SELECT t.price, c.name FROM trades AS t LEFT JOIN table(customers) AS c ON t.symbol = c.name",
    "three_way": "SELECT o.id, s.at, p.id AS part FROM orders AS o LEFT JOIN shipments AS s ON o.id = s.order_id "
    "JOIN parts AS p ON p.order_id = o.id",
    "full_using": "SELECT * FROM shipments FULL JOIN (SELECT id AS part, order_id FROM parts) AS p USING (order_id)",
    "subquery": "WITH big AS (SELECT id, amount * 2 AS twice FROM orders WHERE amount > 5) "
    "SELECT b.id, twice FROM big AS b",
    "snapshot": "SELECT city, count() FROM table(customers) GROUP BY city",
}


@pytest.mark.parametrize("name", QUERIES)
def test_the_plan_of(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"explain/{name}.txt", f"{QUERIES[name]}\n\n{World.of(*DDL).explain(QUERIES[name])}\n")
