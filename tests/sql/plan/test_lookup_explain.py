"""EXPLAIN of lookups, compared with golden files."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.sql.lookup_world import DDL, TEMPORAL
from tests.sql.planner import Planner

QUERIES = {
    "lookup_dictionary": "SELECT oid, title, price FROM orders AS o LEFT JOIN goods AS g ON o.pid = g.pid "
    "AND price > qty WHERE qty > 1",
    "lookup_defaults": "SELECT oid, title FROM orders LEFT JOIN goods USING (pid) SETTINGS join_use_nulls = 0",
    "lookup_external": "SELECT oid, n FROM orders JOIN stock ON pid = code AND n > 0",
    "lookup_direct_prefix": "SELECT oid, rate FROM orders JOIN rates ON pid = base SETTINGS join_algorithm = 'direct'",
    "lookup_direct_index": "SELECT oid, v FROM orders AS o LEFT JOIN accounts AS a ON o.customer = a.customer "
    "SETTINGS join_algorithm = 'direct'",
    "temporal_append": f"SELECT c.code, price FROM clicks AS c JOIN products {TEMPORAL} AS p ON c.code = p.code",
    "temporal_updating": f"SELECT s.id, quantity, price FROM sales AS s JOIN products {TEMPORAL} AS p "
    "ON s.product_id = p.id",
    "temporal_changelog": f"SELECT v, price FROM bag, products {TEMPORAL} WHERE k = id AND price < 10",
    "dict_get": "SELECT oid, dict_get('goods', 'title', pid) AS title, dict_get('places', 'city', (oid, pid)) AS city "
    "FROM orders WHERE dict_has('goods', pid)",
    "mixed": "SELECT a.id, p.name, g.title, c.price FROM accounts AS a JOIN profiles AS p ON a.customer = p.id "
    f"LEFT JOIN goods AS g ON a.note = g.pid JOIN cheap {TEMPORAL} AS c ON a.v = c.id WHERE a.v > 3",
    "mixed_chain": "SELECT o.oid, g.title, y.amount, s.n FROM orders AS o JOIN goods AS g ON o.pid = g.pid "
    "JOIN payments AS y ON o.oid = y.oid JOIN stock AS s ON g.title = s.code",
    "dictionary_alone": "SELECT title, count() FROM goods GROUP BY title",
}


@pytest.mark.parametrize("name", QUERIES)
def test_the_plan_of(name: str, golden: Callable[[str, str], None]) -> None:
    text = Planner.of(*DDL).plan(QUERIES[name]).explain()
    assert "hidden word" not in text
    golden(f"explain/{name}.txt", f"{QUERIES[name]}\n\n{text}\n")
