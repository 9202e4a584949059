"""Delta joins, run in memory: after every batch they have changed what joins of two have, whatever the chain is."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, note, settings
from hypothesis import strategies as st

from dovetail.changelog.errors import StateLimitExceeded, Unsupported
from dovetail.joins.host.in_memory import LocalQuery
from dovetail.sql.plan.nodes import DeltaJoin
from dovetail.sql.plan.properties import walk
from tests.sql.compile.changing import TABLES, assert_adds_up
from tests.sql.compile.test_join_order_run import (
    STREAMS,
    after_every_batch,
    arriving,
    graphs,
)
from tests.sql.planner import Planner
from tests.sql.world import World
from tests.tries import tries


def delta_joins(world: World, query: str) -> int:
    return sum(isinstance(node, DeltaJoin) for one in world.plan(query).fragments for node in walk(one.output))


@settings(max_examples=tries(30), deadline=None)
@given(st.data())
def test_it_gives_the_rows_of_joins_of_two_after_every_batch(data: st.DataObject) -> None:
    graph = data.draw(graphs())
    hybrid = data.draw(st.booleans())
    worlds = [World.of(*STREAMS) for _ in range(2)]
    given: dict[str, str] = {"default_hash_join": "hybrid"} if hybrid else {}
    try:
        worlds[0].start(graph.query, delta_join="1", **given)
    except Unsupported as refused:
        # An equality that stands twice, or one that is computed of several inputs.
        assume("goes by time" not in refused.what)
        assume("an equality compares what is computed" not in refused.what)
        raise
    worlds[1].start(graph.query, delta_join="0", join_reorder=False)
    note(worlds[0].explain(graph.query, delta_join="1"))
    for _ in after_every_batch(data, graph.tables, worlds):
        assert worlds[0].table() == worlds[1].table()
        assert min(worlds[0].net.values(), default=0) >= 0


A, B, C = "held AS a", "seen AS b", "marks AS c"
QUERIES = [
    f"SELECT a.id, a.v, b.w, c.w AS mark FROM {A} JOIN {B} ON a.k = b.id JOIN {C} ON b.k = c.k",
    f"SELECT a.id, a.v, b.w, c.w AS mark FROM {A} JOIN {B} ON a.k = b.k JOIN {C} ON b.w = c.w AND a.v <= c.w",
    # Keys that are computed, of one type and of another.
    f"SELECT a.id, c.w AS mark FROM {A} JOIN {B} ON a.k + 1 = b.id JOIN {C} ON a.v = c.w AND b.k = c.k",
    f"SELECT a.id, c.w AS mark FROM {A} JOIN {B} ON a.k = b.w JOIN {C} ON b.id = c.w",
    # Circles: an equality that is no key of a step, and one of one column with two.
    f"SELECT a.id FROM {A} JOIN {B} ON a.k = b.k JOIN {C} ON b.w = c.w AND a.k = c.k",
    f"SELECT a.id FROM {A} JOIN {B} ON a.id = b.id JOIN {C} ON c.w = a.v AND c.w = b.w",
    # Groups are an input; outer joins and groups stand over it.
    (
        f"SELECT a.id, c.w FROM {A} JOIN {B} ON a.k = b.id JOIN (SELECT k, max(w) AS w FROM marks GROUP BY k) AS c "
        "ON b.k = c.k"
    ),
    f"SELECT a.k, count(*) AS n, sum(c.w) AS w FROM {A} JOIN {B} ON a.k = b.id JOIN {C} ON b.k = c.k GROUP BY a.k",
    f"SELECT a.id, d.w FROM {A} JOIN {B} ON a.k = b.id JOIN {C} ON b.k = c.k LEFT JOIN seen AS d ON d.id = c.k",
    # Four, in a row and as a star.
    f"SELECT a.id, d.v FROM {A} JOIN {B} ON a.k = b.id JOIN {C} ON b.w = c.w JOIN held AS d ON d.k = c.k",
    f"SELECT a.id, d.v FROM {A} JOIN {B} ON a.k = b.id JOIN {C} ON a.v = c.w JOIN held AS d ON d.k = a.id",
    # A stream in several places.
    "SELECT a.id, c.v FROM held AS a JOIN held AS b ON a.k = b.id JOIN held AS c ON b.k = c.v",
    f"SELECT a.id FROM {A} JOIN {B} ON a.k IS NOT DISTINCT FROM b.k JOIN {C} ON b.w IS NOT DISTINCT FROM c.w",
    # One column is a key twice, and NULL is a value of one of the two.
    f"SELECT a.id, c.w FROM {A} JOIN {B} ON a.k IS NOT DISTINCT FROM b.k JOIN {C} ON a.k = c.k",
]


@pytest.mark.parametrize("query", QUERIES)
def test_they_add_up_to_the_batch_result(query: str) -> None:
    stated = f"{query} SETTINGS delta_join = 1"
    assert delta_joins(World.of(*TABLES), stated) == 1
    assert_adds_up(stated, batch=query, rounds=8)


def test_late_rows_are_left_out_once() -> None:
    """Whatever is kept of their input, and in how many copies."""
    clocked = "(k INT, m INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '5 seconds') APPEND ONLY"
    world = World.of(f"CREATE TABLE p {clocked}", f"CREATE TABLE q {clocked}", "CREATE TABLE m (k INT PRIMARY KEY)")
    world.start("SELECT p.at, m.k FROM p JOIN q ON p.k = q.k JOIN m ON q.m = m.k SETTINGS delta_join = 1")
    world.insert("m", {"k": 7})
    for table in ("p", "q"):
        world.insert(table, {"k": 1, "m": 7, "at": "2026-01-01 00:01:00"})
    assert len(world.drain()) == 1
    world.insert("p", {"k": 1, "m": 7, "at": "2026-01-01 00:00:30"})
    assert world.drain() == []
    world.insert("p", {"k": 1, "m": 7, "at": "2026-01-01 00:00:58"})
    assert len(world.drain()) == 1


def test_it_keeps_within_the_limit_of_its_state() -> None:
    world = World.of("CREATE STREAM s (k int, v int)")
    query = "SELECT a.v FROM s AS a JOIN s AS b ON a.k = b.v JOIN s AS c ON b.k = c.v"
    world.start(f"{query} SETTINGS seek_to = 'earliest', delta_join = 1, join_max_buffered_bytes = 20")
    for value in range(4):
        world.insert("s", {"k": 1, "v": value})
    with pytest.raises(StateLimitExceeded, match="join_max_buffered_bytes = 20"):
        world.drain()


GRAPH = (
    "CREATE STREAM posts (author int, topic int)",
    "CREATE STREAM follows (author int, reader int)",
    "CREATE STREAM visits (reader int, page int)",
)
FEED = (
    "SELECT p.topic, v.page FROM posts AS p JOIN follows AS f ON p.author = f.author JOIN visits AS v "
    "ON f.reader = v.reader"
)


@pytest.mark.parametrize(("delta", "count"), [("0", 65_000), ("1", 9_000)])
def test_it_keeps_fewer_rows(delta: str, count: int) -> None:
    """The figures of docs/joins/delta.md."""
    flow = Planner.of(*GRAPH).only(FEED, delta_join=delta, seek_to="earliest").dataflow
    running = LocalQuery(flow)
    rows: dict[str, list[tuple[object, ...]]] = {
        "posts": [(number % 50, number) for number in range(1000)],
        "follows": [(number % 50, number) for number in range(3000)],
        "visits": [(number * 3, number) for number in range(1000)],
    }
    running.feed({place: arriving(rows[scan.topic], scan.columns) for place, scan in enumerate(flow.scans)})
    assert sum(held.rows for buckets in running.activity.held.values() for held in buckets.values()) == count
