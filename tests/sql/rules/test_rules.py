"""Each rule on one query: the plan before and after it, compared with golden files."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dovetail.sql.plan.explain import explain
from dovetail.sql.plan.nodes import Node, Output
from dovetail.sql.plan.query_plan import QueryPlan
from dovetail.sql.planner import bound_query
from dovetail.sql.query_settings import checked
from dovetail.sql.rules import RULES
from tests.sql.planner import Planner
from tests.sql.world import select

DDL = (
    "CREATE STREAM trades (symbol string, price float64, at datetime64(3))",
    "CREATE STREAM quotes (symbol string, bid float64, at datetime64(3))",
    "CREATE MUTABLE STREAM prices (symbol string, price float64) PRIMARY KEY symbol",
    "CREATE MUTABLE STREAM orders (id int, customer int, symbol string) PRIMARY KEY id",
    """CREATE DICTIONARY names (symbol string, name string) PRIMARY KEY symbol
       SOURCE(MYSQL(HOST 'db' PORT 3306 USER 'u' DB 'shop' TABLE 'names')) LAYOUT(HASHED()) LIFETIME(300)""",
)
QUERIES = {
    "unnest": "SELECT o.id FROM orders AS o WHERE o.id > 7 AND NOT EXISTS (SELECT 1 FROM prices AS p "
    "WHERE p.symbol = o.symbol AND p.price > 10)",
    "strategy": "SELECT t.price, p.price AS known FROM prices AS p RIGHT JOIN trades AS t ON p.symbol = t.symbol",
    "push_down": "SELECT t.price, q.bid FROM trades AS t LEFT JOIN quotes AS q ON t.symbol = q.symbol AND q.bid > 1 "
    "WHERE t.price > 10",
    "top_n": "SELECT id, customer FROM (SELECT *, row_number() OVER (PARTITION BY customer ORDER BY id DESC) AS n FROM "
    "orders) AS o WHERE n BETWEEN 2 AND 3 AND customer > 7 AND id > 1",
    "join_order": "SELECT t.price, o.id, p.price AS known FROM orders AS o JOIN prices AS p ON o.symbol = p.symbol "
    "JOIN changelog(trades, at) AS t ON t.price = p.price WHERE o.id + p.price > t.price "
    "SETTINGS join_order = '(t (p o))'",
    "join_keys": "SELECT t.price, q.bid FROM trades AS t ASOF JOIN quotes AS q ON upper(t.symbol) = q.symbol "
    "AND t.at >= q.at",
    "bands": "SELECT t.price, q.bid FROM trades AS t JOIN quotes AS q ON t.symbol = q.symbol "
    "AND date_diff_within(10s, t.at, q.at)",
    "clock_filters": "SELECT t.price, q.bid FROM trades AS t JOIN quotes AS q ON t.symbol = q.symbol "
    "WHERE q.at > now() - 1h",
    "delta_joins": "SELECT t.price, o.id, p.price AS known FROM orders AS o JOIN prices AS p ON o.symbol = p.symbol "
    "JOIN changelog(trades, at) AS t ON t.price = p.price SETTINGS delta_join = 1",
    "keyed_inputs": "SELECT o.id, p.price FROM orders AS o JOIN prices AS p ON o.symbol = p.symbol",
    "multiway": "SELECT o.id, p.price, q.price AS other, r.customer FROM orders AS o JOIN prices AS p ON "
    "o.symbol = p.symbol AND o.id > 7 JOIN prices AS q ON p.symbol = q.symbol AND o.customer < q.price "
    "LEFT JOIN orders AS r ON q.symbol = r.symbol",
    "row_budgets": "SELECT t.price, q.bid FROM trades AS t LEFT JOIN quotes AS q ON t.symbol = q.symbol "
    "SETTINGS max_fan_out = 1000, max_fan_out_action = 'dead_letter'",
    "window_close": "SELECT t.price, q.bid FROM trades AS t LEFT JOIN quotes AS q ON t.symbol = q.symbol "
    "AND date_diff_within(10s, t.at, q.at) EMIT ON WINDOW CLOSE",
    "split_fragments": "SELECT t.price, n.name FROM trades AS t JOIN quotes AS q ON t.symbol = q.symbol "
    "JOIN names AS n ON t.symbol = n.symbol",
    "sink": "SELECT o.id, p.price FROM orders AS o LEFT JOIN prices AS p ON o.symbol = p.symbol",
    "periods": "SELECT symbol, count() AS n FROM trades GROUP BY symbol EMIT PERIODIC 2s",
    "hybrid": "SELECT t.symbol, count() AS n FROM trades AS t JOIN quotes AS q ON t.symbol = q.symbol "
    "GROUP BY t.symbol SETTINGS default_hash_join = 'hybrid', max_hot_keys = 1000",
    "prune": "SELECT t.price, n.name FROM trades AS t JOIN quotes AS q ON t.symbol = q.symbol "
    "JOIN names AS n ON t.symbol = n.symbol",
    "self_joins": "SELECT a.price, b.at, q.bid FROM trades AS a JOIN trades AS b ON a.symbol = b.symbol "
    "LEFT JOIN quotes AS q ON a.symbol = q.symbol AND q.bid > a.price",
    "subplans": "WITH paid AS (SELECT o.customer AS customer, sum(p.price) AS total FROM orders AS o JOIN prices AS p "
    "ON o.symbol = p.symbol GROUP BY o.customer) SELECT a.customer, b.total, o.id FROM paid AS a JOIN paid AS b "
    "ON a.total = b.customer JOIN orders AS o ON o.customer = b.customer WHERE o.id > 7",
}


def text(plan: QueryPlan) -> str:
    """The fragments, and the tree that is not one yet."""
    trees: tuple[Output | Node, ...] = plan.fragments if plan.output is not None else (*plan.upstream, plan.rows)
    return "\n\n".join(explain(tree) for tree in trees)


@pytest.fixture(scope="module")
def planner() -> Planner:
    return Planner.of(*DDL)


@pytest.mark.parametrize("name", QUERIES)
def test_before_and_after(planner: Planner, name: str, golden: Callable[[str, str], None]) -> None:
    statement = select(QUERIES[name])
    plan = bound_query("q", statement, planner.catalog, checked(statement.settings))
    position = [rule.__name__ for rule in RULES].index(name)
    for rule in RULES[:position]:
        plan = rule(plan)
    before, after = text(plan), text(RULES[position](plan))
    assert before != after
    golden(f"rules/{name}.txt", f"{QUERIES[name]}\n\n-- before\n\n{before}\n\n-- after\n\n{after}\n")


def test_every_rule_has_its_query() -> None:
    assert [rule.__name__ for rule in RULES] == list(QUERIES)
