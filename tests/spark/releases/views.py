"""The views whose checkpoints are kept, and the records of their inputs.

Neither is ever changed: a checkpoint fits only the plan that wrote it. What is new becomes a further view.
"""

from __future__ import annotations

from dovetail.runtime.query_plan import plan_of
from dovetail.sql.catalog import Query
from dovetail.sql.fragments import Fragment
from tests.sql.planner import Planner

DDL = (
    "CREATE TABLE customers (id BIGINT, name VARCHAR, PRIMARY KEY (id)) WITH (topic = 'release-customers')",
    "CREATE TABLE orders (id BIGINT, customer BIGINT, item VARCHAR, PRIMARY KEY (id)) WITH (topic = 'release-orders')",
    """CREATE TABLE trades (symbol VARCHAR, price BIGINT, at TIMESTAMPTZ, WATERMARK FOR at AS at - INTERVAL '5 seconds')
       APPEND ONLY WITH (topic = 'release-trades')""",
    """CREATE TABLE quotes (symbol VARCHAR, bid BIGINT, at TIMESTAMPTZ, WATERMARK FOR at AS at - INTERVAL '5 seconds')
       APPEND ONLY WITH (topic = 'release-quotes')""",
)
OWN = "SELECT a.id, b.id AS other, b.item FROM orders AS a JOIN orders AS b ON a.customer = b.customer"
VIEWS = {
    "release_pairs": "SELECT o.id, o.item, c.name FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.id",
    "release_spans": "SELECT t.symbol, t.price, q.bid FROM trades AS t LEFT JOIN quotes AS q "
    "ON t.symbol = q.symbol AND t.at BETWEEN q.at AND q.at + INTERVAL '20 seconds'",
    "release_nearest": "SELECT t.symbol, t.price, q.bid FROM trades AS t ASOF LEFT JOIN quotes AS q "
    "ON t.symbol = q.symbol AND t.at >= q.at",
    "release_totals": "SELECT symbol, count(*) AS n, sum(price) AS total, max(price) AS highest FROM trades "
    "GROUP BY symbol",
    "release_wide": "SELECT o.id, c.name, p.item AS first FROM orders AS o JOIN customers AS c ON o.customer = c.id "
    "JOIN orders AS p ON c.id = p.id",
    # Of a stream with itself: each side with rows of its own, and one for both.
    "release_both": f"{OWN} AND a.id <= b.id SETTINGS share_state = 0",
    "release_own": f"{OWN} AND a.id < b.id",
}
Row = dict[str, object]
KEYS = {"customers": "id", "orders": "id"}
_SYMBOLS = ("dove", "tail", "saw")


def rows(table: str, half: int) -> list[Row]:
    """The rows that the releases have read before (``half`` 0), and those that come after (1)."""
    numbers = range(12 * half, 12 * (half + 1))
    match table:
        case "customers":
            return [{"id": n % 8, "name": f"customer {n}"} for n in numbers]
        case "orders":
            return [{"id": n % 10, "customer": n % 5, "item": f"item {n}"} for n in numbers]
        case "trades":
            return [{"symbol": _SYMBOLS[n % 3], "price": 100 + n * 7 % 20, "at": _at(4 * n + 1)} for n in numbers]
        case _:
            return [{"symbol": _SYMBOLS[n % 2], "bid": 100 + n, "at": _at(4 * n)} for n in numbers]


def _at(second: int) -> str:
    return f"2026-01-01T00:{second // 60:02}:{second % 60:02}Z"


TABLES = ("customers", "orders", "trades", "quotes")


def topic(table: str) -> str:
    return f"release-{table}"


def fragment(view: str) -> Fragment:
    """As the runner has it of a query in the catalog."""
    text = f"CREATE MATERIALIZED VIEW {view} AS {VIEWS[view]}"
    query = Query(view, text, plan="", fingerprint="", topic=view, view=view)
    return plan_of(query, Planner.of(*DDL).catalog).fragment(view)
