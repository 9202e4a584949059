"""Chains of joins in other orders than that of the text, run in memory: what changes is the order, and no row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st

from dovetail.changelog.changes import DELTA
from dovetail.changelog.errors import Unsupported
from dovetail.changelog.schema import ARRIVAL
from dovetail.joins.host.in_memory import LocalQuery
from dovetail.sql.plan.join_order import JoinPair, JoinTree, inputs_of_tree, orders_text
from dovetail.sql.planner import plan_query
from tests.sql.compile.changing import assert_adds_up
from tests.sql.planner import Planner
from tests.sql.world import Row, World, select
from tests.tries import tries

STREAMS = (
    "CREATE TABLE t0 (id INT, x INT, y INT, v DOUBLE, PRIMARY KEY (id))",
    "CREATE TABLE t1 (id INT, x INT, y INT, v DOUBLE)",
    "CREATE STREAM t2 (id int, x int, y int, v float64) PRIMARY KEY id SETTINGS mode = 'changelog_kv'",
    "CREATE MUTABLE STREAM t3 (id int, x int, y int, v float64) PRIMARY KEY id",
    "CREATE STREAM t4 (id int, x int, y int, v float64) SETTINGS mode = 'changelog'",
)
"""Keyed and not, upserts and changelogs: every pair of them makes a bidirectional join."""
MULTISETS = (1, 4)
KEYS = st.sampled_from(["x", "y", "v", "id"])


@dataclass(frozen=True)
class Graph:
    """A join of ``tables``, each read as ``a<n>``: the condition of the n-th is with inputs before it."""

    tables: tuple[int, ...]
    conditions: tuple[str, ...]
    rest: str

    @property
    def query(self) -> str:
        joined = "".join(
            f" JOIN t{table} AS a{place} ON {condition}"
            for place, (table, condition) in enumerate(zip(self.tables[1:], self.conditions, strict=True), start=1)
        )
        columns = ", ".join(f"a{place}.{name} AS {name}{place}" for place in range(len(self.tables)) for name in "iv")
        columns = columns.replace(".i ", ".id ")
        return f"SELECT {columns} FROM t{self.tables[0]} AS a0{joined}{self.rest}"


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    tables = tuple(draw(st.lists(st.integers(0, 4), min_size=3, max_size=5)))
    conditions = []
    for place in range(1, len(tables)):
        operator = draw(st.sampled_from(["=", "=", "=", "IS NOT DISTINCT FROM"]))
        key = draw(KEYS)
        other = key if key == "v" else draw(st.sampled_from(["x", "y", "id"]))
        terms = [f"a{place}.{key} {operator} a{draw(st.integers(0, place - 1))}.{other}"]
        if draw(st.booleans()):
            terms.append(
                draw(st.sampled_from([f"a{place}.v <= a0.v", f"a{place}.x = a0.y", f"a{place}.x IS NOT NULL"]))
            )
        conditions.append(" AND ".join(terms))
    last = len(tables) - 1
    rest = draw(st.sampled_from(["", f" WHERE a0.x + a1.x >= a{last}.y", f" WHERE a{last}.x = a0.x AND a1.x = 1"]))
    return Graph(tables, tuple(conditions), rest)


@st.composite
def trees(draw: st.DrawFn, count: int) -> JoinTree:
    parts: list[JoinTree] = [f"a{place}" for place in range(count)]
    while len(parts) > 1:
        left = parts.pop(draw(st.integers(0, len(parts) - 1)))
        right = parts.pop(draw(st.integers(0, len(parts) - 1)))
        parts.append(JoinPair(left, right))
    return parts[0]


VALUES = st.sampled_from([None, 0, 1, 1])
NUMBERS = st.sampled_from([None, 0.0, -0.0, 1.5, 5e-324, -1.7e308])


def rows(table: int) -> st.SearchStrategy[Row]:
    return st.fixed_dictionaries(
        {"id": st.integers(0, 2), "x": VALUES, "y": VALUES, "v": NUMBERS}
        | ({"_tp_time": st.just("2026-01-01 00:00:00")} if table in MULTISETS else {})
    )


def changes(tables: tuple[int, ...]) -> st.SearchStrategy[list[list[tuple[int, Row]]]]:
    """By batch, rows to insert; one that stands already is deleted instead."""
    row = st.sampled_from(tables).flatmap(lambda table: st.tuples(st.just(table), rows(table)))
    return st.lists(st.lists(row, min_size=3, max_size=12), min_size=1, max_size=4)


@settings(max_examples=tries(20), deadline=None)
@given(st.data())
def test_any_order_gives_the_same_rows_after_every_batch(data: st.DataObject) -> None:
    graph = data.draw(graphs())
    tree = data.draw(trees(len(graph.tables)))
    assert isinstance(tree, JoinPair)
    order = str(tree)
    worlds = [World.of(*STREAMS) for _ in range(2)]
    try:
        worlds[0].start(graph.query, join_order=order)
    except Unsupported as refused:
        # Two inputs without an equality, or rows that would be told apart by other columns.
        assume("which no equality compares" not in refused.what)
        assume("have to stay in the order of the text" not in refused.what)
        raise
    worlds[1].start(graph.query, join_reorder=False)
    note(worlds[0].explain(graph.query, join_order=order))
    for _ in after_every_batch(data, graph.tables, worlds):
        assert worlds[0].table() == worlds[1].table()
        assert min(worlds[0].net.values(), default=0) >= 0


def after_every_batch(data: st.DataObject, tables: tuple[int, ...], worlds: Sequence[World]) -> Iterator[None]:
    """Draws changes of the tables, and hands over to its caller when all worlds have answered a batch of them; after
    the second one they start again.
    """
    present: dict[int, list[Row]] = {table: [] for table in range(5)}
    for number, batch in enumerate(data.draw(changes(tables))):
        for table, row in batch:
            for world in worlds:
                change(world, table, row, present[table])
            remember(table, row, present[table])
        for world in worlds:
            world.drain()
            if number == 1:
                world.engine.restart()
        yield


def change(world: World, table: int, row: Row, present: list[Row]) -> None:
    if row in present:
        world.delete(f"t{table}", row)
    elif table == 2 and (old := [one for one in present if one["id"] == row["id"]]):
        world.delete(f"t{table}", *old)
        world.insert(f"t{table}", row)
    else:
        world.insert(f"t{table}", row)


def remember(table: int, row: Row, present: list[Row]) -> None:
    if row in present:
        present.remove(row)
        return
    if table not in MULTISETS:
        present[:] = [one for one in present if one["id"] != row["id"]]
    present.append(row)


SIZES = st.lists(st.integers(0, 7).map(lambda power: 10**power), min_size=5, max_size=5)


@settings(max_examples=tries(20), deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(graphs(), SIZES)
def test_an_order_that_statistics_choose_can_be_set(graph: Graph, sizes: list[int]) -> None:
    """And has the plan that was chosen: so a view goes on under it."""
    catalog = World.of(*STREAMS).engine.catalog
    chosen = plan_query("q", select(graph.query), catalog, sizes=lambda topic: sizes[int(topic[1:])])
    assume(chosen.orders)
    trees = tuple(order.tree for order in chosen.orders)
    assert all(sorted(inputs_of_tree(tree)) == [f"a{n}" for n in range(len(graph.tables))] for tree in trees)
    again = plan_query("q", select(graph.query), catalog, {"join_order": orders_text(trees)})
    written = plan_query("q", select(graph.query), catalog, {"join_reorder": False})
    assert again.fingerprint == chosen.fingerprint != written.fingerprint
    assert again.schema == written.schema
    assert again.updating == written.updating


@pytest.mark.parametrize("order", ["(a (b c))", "((c b) a)", "(a (c b))"])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.id, a.v, b.w, c.w AS mark FROM held AS a JOIN seen AS b ON a.k = b.id JOIN marks AS c ON b.k = c.k",
        (
            "SELECT a.k, count(*) AS n, sum(c.w) AS w FROM held AS a JOIN seen AS b ON a.k = b.id "
            "JOIN marks AS c ON b.k = c.k GROUP BY a.k"
        ),
        (
            "SELECT a.id, d.w FROM held AS a JOIN seen AS b ON a.k = b.id JOIN marks AS c ON b.k = c.k "
            "LEFT JOIN seen AS d ON d.id = c.k"
        ),
        (
            "SELECT a.id FROM held AS a, seen AS b, marks AS c WHERE a.k = b.id AND b.k = c.k AND a.v < c.w "
            "AND EXISTS (SELECT 1 FROM seen AS e WHERE e.k = a.id)"
        ),
    ],
)
def test_they_add_up_to_the_batch_result(query: str, order: str) -> None:
    assert_adds_up(f"{query} SETTINGS join_order = '{order}'", batch=query, rounds=14)


SHOP = (
    "CREATE TABLE lines (id INT PRIMARY KEY, order_id INT, part INT)",
    "CREATE TABLE orders (id INT PRIMARY KEY, customer INT, day INT)",
    "CREATE TABLE customers (id INT PRIMARY KEY, name VARCHAR)",
)
LINES_OF_ANN = (
    "SELECT l.id, l.part, o.day FROM lines AS l JOIN orders AS o ON l.order_id = o.id "
    "JOIN customers AS c ON o.customer = c.id WHERE c.name = 'ann'"
)


PARTS_OF_ANN = (
    "SELECT l.id, l.part, o.customer, o.day FROM lines AS l LEFT JOIN orders AS o ON l.order_id = o.id "
    "JOIN customers AS c ON l.part = c.id WHERE c.name = 'ann'"
)


@pytest.mark.parametrize(
    ("query", "order", "count"),
    [
        (LINES_OF_ANN, "((l o) c)", 10_010),
        (LINES_OF_ANN, "(l (o c))", 8_110),
        (PARTS_OF_ANN, "((l o) c)", 10_010),
        (PARTS_OF_ANN, "((l c) o)", 7_020),
    ],
)
def test_it_keeps_fewer_rows(query: str, order: str, count: int) -> None:
    """The figures of docs/joins/order.md."""
    flow = Planner.of(*SHOP).only(query, join_order=order).dataflow
    running = LocalQuery(flow)
    rows: dict[str, list[tuple[object, ...]]] = {
        "lines": [(number, number % 1000, number) for number in range(3000)],
        "orders": [(number, number % 100, number) for number in range(1000)],
        "customers": [(number, "ann" if number < 10 else "bob") for number in range(100)],
    }
    running.feed({place: arriving(rows[scan.topic], scan.columns) for place, scan in enumerate(flow.scans)})
    assert sum(held.rows for buckets in running.activity.held.values() for held in buckets.values()) == count


def arriving(rows: list[tuple[object, ...]], columns: tuple[str, ...]) -> pa.Table:
    arrays = [pa.array(values, pa.string() if name == "name" else pa.int32())
              for name, values in zip(columns, zip(*rows, strict=True), strict=True)]  # fmt: skip
    numbers, ones = pa.array(range(len(rows)), pa.int64()), pa.array([1] * len(rows), pa.int64())
    return pa.table([*arrays, numbers, ones], [*columns, ARRIVAL, DELTA])
