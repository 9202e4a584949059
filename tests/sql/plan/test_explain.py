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
    "CREATE TABLE filings (at TIMESTAMPTZ) APPEND ONLY",
    "CREATE TABLE parts (id INT, order_id BIGINT, PRIMARY KEY (id))",
    "CREATE TABLE filed (id INT, amount INT, at TIMESTAMPTZ, PRIMARY KEY (id))",
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
    "range_left_once": "SELECT t.price, q.bid FROM trades AS t LEFT JOIN quotes AS q ON t.symbol = q.symbol "
    "AND date_diff('second', t.at, q.at) BETWEEN 0 AND 30 AND t.price > q.bid "
    "SETTINGS output = 'append', watermark_delay = '5s', idle_timeout = '1m'",
    "interval_one_sided": "SELECT s.order_id, r.at FROM shipments AS s LEFT JOIN shipments AS r "
    "ON s.order_id = r.order_id AND s.at > r.at",
    "interval_updating": "SELECT s.order_id, f.amount FROM shipments AS s JOIN filed AS f ON s.order_id = f.id "
    "AND s.at BETWEEN f.at AND f.at + INTERVAL '1' DAY",
    "window_tumble": "SELECT s.order_id, r.window_end FROM TUMBLE(shipments, at, INTERVAL '1' HOUR) AS s "
    "FULL JOIN TUMBLE(shipments, at, INTERVAL '1' HOUR) AS r ON s.order_id = r.order_id "
    "AND s.window_start = r.window_start AND s.window_end = r.window_end EMIT ON WINDOW CLOSE",
    "window_hop": "SELECT f.id, g.id AS other FROM HOP(filed, at, INTERVAL '10' MINUTE, INTERVAL '1' HOUR) AS f "
    "JOIN HOP(filed, at, INTERVAL '10' MINUTE, INTERVAL '1' HOUR) AS g ON f.window_start = g.window_start",
    "static": "SELECT t.price, c.name FROM trades AS t LEFT JOIN table(customers) AS c ON t.symbol = c.name",
    "three_way": "SELECT o.id, s.at, p.id AS part FROM orders AS o LEFT JOIN shipments AS s ON o.id = s.order_id "
    "JOIN parts AS p ON p.order_id = o.id",
    "multiway": "SELECT o.id, name, f.amount FROM orders AS o JOIN customers AS c ON o.id = c.id AND symbol < name "
    "LEFT JOIN filed AS f ON c.id = f.id SETTINGS join_use_nulls = 0",
    "multiway_of_appends": "SELECT t.price, q.bid, l.price AS other FROM trades AS t JOIN quotes AS q "
    "ON t.symbol = q.symbol JOIN trades AS l ON q.symbol = l.symbol",
    "delta_join": "SELECT o.id, name, p.id AS part FROM orders AS o JOIN customers AS c ON o.customer = c.id "
    "JOIN parts AS p ON p.order_id = o.id AND p.id < amount SETTINGS delta_join = '(c o p)'",
    "multiway_off": "SELECT o.id, name, f.amount FROM orders AS o JOIN customers AS c ON o.id = c.id "
    "LEFT JOIN filed AS f ON c.id = f.id SETTINGS multiway_join = 0",
    "subplans": "WITH sold AS (SELECT o.customer AS customer, max(amount) AS most, count(*) AS n FROM orders AS o "
    "JOIN parts AS p ON o.id = p.order_id GROUP BY o.customer) SELECT s.customer, t.n, o.id FROM sold AS s "
    "JOIN sold AS t ON s.n = t.customer JOIN orders AS o ON o.customer = t.customer WHERE amount > 10",
    "subplans_off": "SELECT a.id, b.symbol FROM orders AS a JOIN orders AS b ON a.customer = b.amount "
    "SETTINGS share_state = 0",
    "full_using": "SELECT * FROM shipments FULL JOIN (SELECT id AS part, order_id FROM parts) AS p USING (order_id)",
    "subquery": "WITH big AS (SELECT id, amount * 2 AS twice FROM orders WHERE amount > 5) "
    "SELECT b.id, twice FROM big AS b",
    "range_of_two_minutes": "SELECT t.price, q.bid FROM trades AS t JOIN quotes AS q ON t.symbol = q.symbol "
    "AND date_diff_within(2m, t.at, q.at)",
    "grows_distinct": "SELECT DISTINCT symbol FROM trades",
    "grows_window": "SELECT window_start, symbol, max(price) FROM tumble(trades, at, 1m) GROUP BY window_start, symbol",
    "grows_window_of_a_table": "SELECT window_start, count() FROM TUMBLE(filings, at, INTERVAL '1' MINUTE) "
    "GROUP BY window_start",
    "grows_outer": "SELECT r.at, count() FROM parts AS p LEFT JOIN shipments AS r ON p.order_id = r.order_id "
    "GROUP BY r.at",
    "grows_not": "SELECT p.id, count() FROM parts AS p LEFT JOIN shipments AS r ON p.order_id = r.order_id "
    "GROUP BY p.id",
    "grows_values": "SELECT p.id, max(r.at) FROM parts AS p LEFT JOIN shipments AS r ON p.order_id = r.order_id "
    "GROUP BY p.id",
    "values_computed": "SELECT customer, count(DISTINCT amount) FILTER (WHERE symbol = 'A'), max(amount + 1) "
    "FROM orders GROUP BY customer",
    "grows_updating": "SELECT o.id, n FROM orders AS o JOIN (SELECT symbol, count() AS n FROM trades GROUP BY symbol) "
    "AS t ON o.symbol = t.symbol",
    "self_join": "SELECT a.id, b.id AS other FROM orders AS a JOIN orders AS b ON a.symbol = b.symbol",
    "key_partly_hidden": "SELECT s.at, amount FROM shipments AS s JOIN filed AS f ON s.order_id = f.id AND s.at = f.at",
    "array_join": "SELECT o.id, part, place, name FROM orders AS o LEFT ARRAY JOIN split_by_char(',', symbol) AS part, "
    "array_enumerate(split_by_char(',', symbol)) AS place JOIN customers AS c ON c.name = part "
    "WHERE amount > 10 AND place < 3",
    "top_n": "SELECT id, amount FROM (SELECT *, row_number() OVER (PARTITION BY customer ORDER BY amount DESC) AS n "
    "FROM orders) AS x WHERE n <= 3",
    "top_n_of_append": "SELECT symbol, price FROM trades ORDER BY price DESC LIMIT 2 BY symbol",
    "over": "SELECT id, amount - lag(amount) OVER (PARTITION BY customer ORDER BY id) AS step, "
    "sum(amount) OVER (ORDER BY id) AS total FROM orders",
    "intersect": "SELECT symbol, price FROM trades INTERSECT DISTINCT SELECT symbol, bid FROM quotes WHERE bid > 1",
    "except_all": "SELECT id FROM orders EXCEPT ALL SELECT customer FROM orders WHERE amount > 10",
    "set_operations": "SELECT order_id FROM shipments UNION ALL SELECT id FROM parts EXCEPT SELECT id FROM filed "
    "INTERSECT SELECT order_id FROM parts",
    "union_of_watermarks": "WITH u AS (SELECT order_id, at FROM shipments UNION ALL SELECT order_id, at FROM "
    "shipments) SELECT window_start, count(*) FROM TUMBLE(u, at, INTERVAL '1' MINUTE) GROUP BY window_start "
    "EMIT ON WINDOW CLOSE",
    "snapshot": "SELECT city, count() FROM table(customers) GROUP BY city",
}


@pytest.mark.parametrize("name", QUERIES)
def test_the_plan_of(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"explain/{name}.txt", f"{QUERIES[name]}\n\n{World.of(*DDL).explain(QUERIES[name])}\n")
