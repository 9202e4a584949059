"""Orders, each with its product as an SQLite file holds it: through the hybrid cache, and refreshed on command."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa

from dovetail.changelog.changes import Changes
from dovetail.changelog.encode import records_of
from dovetail.services.cli.demo.clickthrough import answered
from dovetail.services.cli.dictionaries.dictionary_commands import upright
from dovetail.services.cli.show import Screen
from dovetail.services.session import Rows, Session
from dovetail.services.session.dictionaries.system_dictionaries import statistics
from dovetail.services.session.input_progress import reading
from dovetail.sql.planner import Plan, plan_query, stream_of
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateView

ORDERS = 40_000
_PRODUCTS = 2_000
_HOT = 500
_SEED = 20_260_131
_PER_STEP = 10_000
_FIGURES = ("name", "status", "query_count", "hit_rate", "found_rate", "hot_hits", "cold_hits", "source_statements")

STREAM = "CREATE STREAM orders (id int64, product_id string, quantity int64)"
DICTIONARY = """\
CREATE DICTIONARY products (id string, name string, price float64) PRIMARY KEY id
SOURCE(SQLITE(PATH 'shop.db' TABLE 'products'))
LAYOUT(HYBRID_HASH_CACHE(TTL 3600 PATH 'products' MAX_HOT_KEY_COUNT {hot}))"""
VIEW = """\
CREATE MATERIALIZED VIEW named_orders AS
SELECT orders.id AS id, product_id, name, quantity, quantity * price AS amount
FROM orders LEFT JOIN products ON orders.product_id = products.id
SETTINGS join_algorithm = 'direct'"""
BEST = """\
SELECT name, count() AS orders, sum(quantity) AS pieces, round(sum(amount), 2) AS amount
FROM table(named_orders) GROUP BY name ORDER BY amount DESC LIMIT 5"""
LAST = "SELECT id, product_id, name FROM table(named_orders) WHERE id >= {first} ORDER BY id"


def run(session: Session, screen: Screen, folder: Path) -> bool:
    """Whether each order has the product that it must have, before and after the refresh."""
    screen.title("Orders, looked up in a dictionary over SQLite")
    file = folder / "shop.db"
    _make_products(file)
    for statement in (STREAM, DICTIONARY.format(hot=_HOT), VIEW):
        screen.note(f"> {statement}")
        session.run(statement)
    plan = plan_query("named_orders", _definition(), session.context.catalog)
    _pump(session, screen, plan)
    screen.note(f"> {BEST}")
    answer = session.execute(parse_one(BEST))
    assert isinstance(answer, Rows)
    screen.rows(answer.table)
    holds = _refreshed(session, screen, plan, file)
    figures = statistics(session.context, "products")
    screen.rows(upright(figures.select([name for name in _FIGURES if name in figures.column_names])))
    return holds


def _make_products(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    rows = [(f"p{number}", f"product {number}", round(1 + number % 97 / 10, 2)) for number in range(_PRODUCTS)]
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("CREATE TABLE products (id text PRIMARY KEY, name text, price real)")
        database.executemany("INSERT INTO products VALUES (?, ?, ?)", rows)


def _definition() -> CreateView:
    definition = parse_one(VIEW)
    assert isinstance(definition, CreateView)
    return definition


def _steps() -> Iterator[pa.Table]:
    """Orders of which most are for few products; some name one that there is not."""
    rng = np.random.default_rng(_SEED)
    for first in range(0, ORDERS, _PER_STEP):
        products = (_PRODUCTS * 1.02 * rng.random(_PER_STEP) ** 4).astype(np.int64)
        yield _orders(first, [f"p{product}" for product in products], rng.integers(1, 10, _PER_STEP))


def _orders(first: int, products: list[str], quantities: np.ndarray) -> pa.Table:
    ids = np.arange(first, first + len(products))
    return Changes.of(pa.table({"id": ids, "product_id": products, "quantity": quantities})).table


def _produce(session: Session, rows: pa.Table) -> None:
    stream = stream_of(session.context.catalog, "orders")
    session.context.writer.write(stream.topic, records_of(stream.schema, rows))


def _pump(session: Session, screen: Screen, plan: Plan) -> None:
    """Produce all orders while the query runs, and wait until it has answered them."""
    with screen.progress("orders", ORDERS) as shown:
        started = time.monotonic()
        for rows in _steps():
            _produce(session, rows)
            shown(reading(session.context, plan.name).rows_in)
        answered(session, plan, shown)
    taken_s = time.monotonic() - started
    screen.note(
        f"{ORDERS:,} orders in {taken_s:.1f} s from the first event to the last result, an empty cache at the start: "
        f"{ORDERS / taken_s:,.0f} per second",
        style="bold",
    )


def _refreshed(session: Session, screen: Screen, plan: Plan, file: Path) -> bool:
    """The name of a product changes at the source: the cache serves the old one until it is refreshed."""
    change = "UPDATE products SET name = 'renamed' WHERE id = 'p1'"
    screen.note(f"> {change}   (in SQLite)")
    with closing(sqlite3.connect(file)) as database, database:
        database.execute(change)
    _order_once(session, plan, ORDERS)
    screen.note("> SYSTEM RELOAD DICTIONARY products")
    session.run("SYSTEM RELOAD DICTIONARY products")
    _order_once(session, plan, ORDERS + 1)
    answer = session.execute(parse_one(LAST.format(first=ORDERS)))
    assert isinstance(answer, Rows)
    screen.rows(answer.table)
    names = answer.table.column("name").to_pylist()
    return screen.verdict(names == ["product 1", "renamed"], "the cached name, and after the refresh the new one")


def _order_once(session: Session, plan: Plan, number: int) -> None:
    _produce(session, _orders(number, ["p1"], np.array([1])))
    answered(session, plan, lambda count: None)
