"""Self joins that keep their rows once, run in memory: they emit what two sides do, and add up to the batch result."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.changelog.changes import DELTA
from dovetail.changelog.schema import ARRIVAL
from dovetail.joins.host.in_memory import LocalQuery
from dovetail.sql.plan.nodes import Scan
from dovetail.sql.plan.properties import walk
from tests.sql.compile.changing import TABLES, assert_adds_up, assert_alike
from tests.sql.planner import Planner
from tests.sql.world import World
from tests.tries import tries

TWICE = {"share_state": False}
MINE = "SELECT a.id, a.v, b.id AS other, b.k AS by FROM held AS a"
SUMS = "(SELECT k, sum(v) AS total FROM held GROUP BY k)"
COUNTS = "(SELECT k, count(*) AS n, max(id) AS id FROM held GROUP BY k)"
QUERIES = [
    f"{MINE} JOIN held AS b ON a.k = b.k",
    f"{MINE} JOIN held AS b ON a.id = b.id",
    f"{MINE} JOIN held AS b ON a.k = b.k AND a.id < b.id",
    f"{MINE} JOIN held AS b ON a.k IS NOT DISTINCT FROM b.k AND a.id <> b.id",
    f"{MINE} LEFT JOIN held AS b ON a.k = b.k AND a.v < b.v",
    f"{MINE} RIGHT JOIN held AS b ON a.k = b.k AND a.v < b.v",
    f"{MINE} FULL JOIN held AS b ON a.k = b.k AND a.v < b.v",
    f"{MINE} FULL JOIN held AS b ON a.k = b.k",
    f"{MINE} JOIN held AS b ON a.k = b.k WHERE a.v > 0 AND b.v > 0",
    f"{MINE} JOIN held AS b ON a.k = b.k JOIN held AS c ON a.k = c.k AND c.id <> b.id",
    f"{MINE} LEFT JOIN held AS b ON a.k = b.k LEFT JOIN held AS c ON a.k = c.k",
    f"{MINE} JOIN seen AS s ON a.k = s.k JOIN held AS b ON s.k = b.k LEFT JOIN seen AS t ON t.k = b.k",
    f"{MINE} JOIN held AS b ON a.k = b.k JOIN marks AS m ON b.v = m.w",
    "SELECT a.id, a.k FROM held AS a WHERE EXISTS (SELECT 1 FROM held AS b WHERE b.k = a.k AND b.id <> a.id)",
    "SELECT a.id, a.k FROM held AS a WHERE NOT EXISTS (SELECT 1 FROM held AS b WHERE b.k = a.k AND b.v > a.v)",
    "SELECT a.w, b.k FROM marks AS a JOIN marks AS b ON a.k = b.k AND a.w < b.w",
    f"SELECT a.k, a.total, b.n FROM {SUMS} AS a JOIN {COUNTS} AS b ON a.k = b.k",
    f"SELECT a.id, a.n, b.n AS again FROM {COUNTS} AS a LEFT JOIN {COUNTS} AS b ON a.k = b.k AND a.n < b.n + 1",
]


def sharing_scans(world: World, query: str, **chosen: bool) -> int:
    scans = [node for one in world.plan(query, **chosen).fragments for node in walk(one.output)]
    return sum(isinstance(node, Scan) and bool(node.shared_with) for node in scans)


@pytest.mark.parametrize("query", QUERIES)
def test_they_add_up_to_the_batch_result(query: str) -> None:
    assert sharing_scans(World.of(*TABLES), query) > 0
    assert_adds_up(query, rounds=5)


@settings(max_examples=tries(10))
@given(query=st.sampled_from(QUERIES), seed=st.integers(0, 1000), limit=st.sampled_from([1, 2, 5, None]))
def test_after_every_batch_they_have_changed_what_two_sides_have(query: str, seed: int, limit: int | None) -> None:
    assert_alike(query, seed, limit, 4, **TWICE)


ORDERS = (
    "CREATE MUTABLE STREAM orders (id int, customer int, amount int) PRIMARY KEY id",
    "CREATE STREAM clicks (id int, customer int)",
)


def rows_held(query: str, count: int, **chosen: bool) -> int:
    """How many rows a view keeps of so many records, each of a key of its own."""
    flow = Planner.of(*ORDERS).only(query, **chosen).dataflow
    running = LocalQuery(flow)
    numbers = pa.array(range(count), pa.int32())
    running.feed(
        {
            place: pa.table(
                [numbers] * len(scan.columns) + [numbers.cast(pa.int64()), pa.array([1] * count, pa.int64())],
                [*scan.columns, ARRIVAL, DELTA],
            )
            for place, scan in enumerate(flow.scans)
        }
    )
    return sum(held.rows for buckets in running.activity.held.values() for held in buckets.values())


@pytest.mark.parametrize(
    ("query", "once", "twice"),
    [
        # Rows by their primary key, and by the key of the join; each for both sides.
        ("SELECT a.id, b.amount FROM orders AS a JOIN orders AS b ON a.customer = b.customer", 6_000, 12_000),
        ("SELECT a.id, b.amount FROM orders AS a JOIN orders AS b ON a.id = b.id", 3_000, 6_000),
        ("SELECT a.id, b.id AS other FROM clicks AS a JOIN clicks AS b ON a.customer = b.customer", 3_000, 6_000),
        (
            "SELECT a.id FROM clicks AS a JOIN clicks AS b USING (customer) JOIN clicks AS c USING (customer)",
            3_000,
            9_000,
        ),
    ],
)
def test_the_rows_of_both_sides_are_held_once(query: str, once: int, twice: int) -> None:
    """The figures of docs/state.md."""
    assert rows_held(query, 3_000) == once
    assert rows_held(query, 3_000, **TWICE) == twice
