"""Compiled queries, run in memory over random changes: what they emit adds up to the same query over the content."""

from __future__ import annotations

import pickle
import random
import re

import pytest

from dovetail.joins.dataflow.ports import Ingest
from dovetail.joins.operators.asof_once import AsofOnceSpec
from dovetail.joins.operators.bidirectional import BidirectionalSpec
from dovetail.joins.operators.enrichment import EnrichmentSpec
from dovetail.joins.operators.keyed import KeyedSpec
from tests.sql.world import Row, World

DDL = (
    "CREATE MUTABLE STREAM a (k int, m int, v int) PRIMARY KEY (k, m)",
    "CREATE STREAM b (k int, m int, w string) PRIMARY KEY m SETTINGS mode='versioned_kv'",
    "CREATE STREAM c (k int, m bigint, x float64) PRIMARY KEY m SETTINGS mode='changelog_kv'",
    "CREATE TABLE t (k int, m int, y int)",
    "CREATE TABLE u (k int, m int, z int) APPEND ONLY",
    "CREATE STREAM s (k int, m int, n int)",
)
KEYS = {"a": ("k", "m"), "b": ("m",), "c": ("m",)}
VALUE = {"a": "v", "b": "w", "c": "x", "t": "y", "u": "z", "s": "n"}

QUERIES = (
    "SELECT a.k, a.m, v FROM a WHERE v > 1",
    "SELECT c.k + 1 AS k1, x FROM c WHERE x < 3",
    "SELECT k, count_ FROM (SELECT k, y * 2 AS count_ FROM t WHERE y <> 2) AS d",
    "SELECT a.k, a.m, b.m AS bm, v, w FROM a JOIN b ON a.k = b.k",
    "SELECT a.k, a.m, b.m AS bm, v, w FROM a LEFT JOIN b ON a.m = b.m AND v > 1",
    "SELECT a.k, b.m AS bm, v, w FROM a RIGHT JOIN b ON a.m = b.m AND a.k < b.k",
    "SELECT a.k, b.k AS bk, v, w FROM a FULL JOIN b ON a.k = b.k WHERE v IS NULL OR v > 0",
    "SELECT a.k, c.m AS cm, x FROM a JOIN c ON a.m = c.m WHERE x > 1 AND v < 4",
    "SELECT a.k, c.k AS ck, x FROM a LEFT JOIN c ON a.k = c.k AND c.x > 1",
    "SELECT t.k, y, u.z FROM t, u WHERE t.k = u.k AND y < z",
    "SELECT * FROM t FULL JOIN u USING (k, m)",
    "SELECT * FROM t NATURAL LEFT JOIN u",
    "SELECT t.k, u.k AS uk, y, z FROM t JOIN u ON t.k IS NOT DISTINCT FROM u.k WHERE y = 1 OR z = 1",
    "SELECT t.m, u.m AS um FROM t JOIN u ON (t.k = u.k AND y = 1) OR (t.k = u.k AND z = 2)",
    "SELECT t.m, u.m AS um FROM t LEFT JOIN u ON t.k + 1 = u.k AND 1 = 1",
    "SELECT t.m, c.k FROM t FULL JOIN c ON t.m = c.m",
    (
        "SELECT d.f, e.g FROM (SELECT k, coalesce(y, 0) AS f FROM t) AS d "
        "LEFT JOIN (SELECT k, coalesce(z, 9) AS g FROM u) AS e ON d.k = e.k"
    ),
    (
        "WITH d AS (SELECT a.k AS k, a.v AS v, b.w AS w FROM a JOIN b ON a.m = b.m) "
        "SELECT d.k, v, w, y FROM d LEFT JOIN t ON d.k = t.k"
    ),
    "SELECT a.k, v, w, x FROM a JOIN b ON a.k = b.k JOIN c ON b.m = c.m",
    "SELECT a.k, v, y, z FROM a LEFT JOIN t ON a.k = t.k LEFT JOIN u ON a.m = u.m AND t.y = u.z",
    "SELECT x1.v AS v1, x2.v AS v2 FROM a AS x1 JOIN a AS x2 ON x1.k = x2.m",
    "SELECT p.v, q.w FROM changelog(s, m) AS p2 JOIN (SELECT m, v FROM a) AS p ON p2.m = p.m JOIN b AS q ON q.m = p2.m",
    "SELECT s.n, u.z FROM s LEFT JOIN u ON s.k = u.k",
)


def _row(chance: random.Random, table: str) -> Row:
    value: object = chance.choice([None, 0, 1, 2, 3, 4])
    if table == "b" and value is not None:
        value = f"w{value}"
    # One time for all: a retraction of a row without a key has to equal its insertion.
    row: Row = {"_tp_time": "2026-01-01 00:00:00", "k": chance.choice([None, 1, 2, 3]), "m": chance.randrange(4)}
    row[VALUE[table]] = value
    if "k" in KEYS.get(table, ()):
        row["k"] = chance.randrange(1, 4)
    return row


class _Changer:
    """Random insertions, updates and deletes that keep each stream consistent; in the tables that ``query`` names."""

    def __init__(self, world: World, query: str, seed: int) -> None:
        self.world = world
        self.chance = random.Random(seed)
        self.tables = [table for table in VALUE if re.search(rf"(FROM|JOIN|,|\() ?{table}\b", query)]
        self.rows: dict[str, list[Row]] = {table: [] for table in VALUE}

    def step(self) -> None:
        for _ in range(self.chance.randrange(1, 9)):
            self._change(self.chance.choice(self.tables))

    def _change(self, table: str) -> None:
        present = self.rows[table]
        if present and table in ("a", "c", "t") and self.chance.random() < 0.35:
            gone = present.pop(self.chance.randrange(len(present)))
            self.world.delete(table, gone)
            return
        row = _row(self.chance, table)
        if table == "c":
            for old in [old for old in present if old["m"] == row["m"]]:
                present.remove(old)
                self.world.delete(table, old)
        if table in KEYS:
            present[:] = [old for old in present if any(old[key] != row[key] for key in KEYS[table])]
        present.append(row)
        self.world.insert(table, row)


@pytest.mark.parametrize("query", QUERIES)
def test_the_changes_add_up_to_the_batch_result(query: str) -> None:
    world = World.of(*DDL)
    world.start(query)
    changer = _Changer(world, query, seed=len(query))
    for step in range(1, 11):
        changer.step()
        world.drain()
        if step % 5 == 0:
            assert world.table() == world.recomputed(query)


def test_a_dataflow_pickles() -> None:
    world = World.of(*DDL)
    for query in QUERIES:
        flow = world.plan(query).dataflow
        assert pickle.loads(pickle.dumps(flow)).edges == flow.edges


def test_an_upsert_stream_is_fused_where_its_primary_key_holds_the_join_key() -> None:
    flow = World.of(*DDL).plan("SELECT v, w FROM a JOIN b ON a.k = b.k").dataflow
    kinds = [(type(node.operator), node.level) for node in flow.nodes]
    assert kinds == [(KeyedSpec, 1), (BidirectionalSpec, 2)]
    join = flow.nodes[1].operator
    assert isinstance(join, BidirectionalSpec)
    assert (join.left.ingest, join.left.primary_key) == (Ingest.UPSERT, ("a.k", "a.m"))
    assert join.right.ingest == Ingest.CHANGES


def test_append_with_keyed_is_an_enrichment_whichever_side_is_written_first() -> None:
    world = World.of(*DDL)
    for query in ("SELECT n, v FROM s LEFT JOIN a ON s.m = a.m", "SELECT n, v FROM a RIGHT JOIN s ON s.m = a.m"):
        (node,) = world.plan(query).dataflow.nodes
        assert isinstance(node.operator, EnrichmentSpec)
        assert node.operator.left.keys == ("s.m",)


def test_asof_keeps_versions_and_breaks_ties_by_arrival() -> None:
    query = "SELECT s.n, b.w FROM s ASOF JOIN b ON s.k = b.k AND s.n >= b.m SETTINGS keep_versions = 5"
    (node,) = World.of(*DDL).plan(query).dataflow.nodes
    assert isinstance(node.operator, AsofOnceSpec)
    assert (node.operator.left_time, node.operator.comparison, node.operator.right_time) == ("s.n", ">=", "b.m")
    assert node.operator.keep_versions == 5
    assert node.operator.right.tie_break_by_arrival


def test_levels_follow_the_chain_of_joins() -> None:
    flow = World.of(*DDL).plan("SELECT v, w, x FROM a JOIN b ON a.k = b.k JOIN c ON b.m = c.m").dataflow
    assert flow.levels == 3
    assert flow.edge(flow.sink.edge).level == 4
    assert all(flow.edge(edge).level == node.level for node in flow.nodes for edge in node.inputs)


def test_a_watermark_goes_with_the_append_port_that_it_is_declared_for() -> None:
    world = World.of(
        "CREATE TABLE l (id int, ts timestamptz, WATERMARK FOR ts AS ts - INTERVAL '5 seconds') APPEND ONLY",
        "CREATE TABLE r (id int, w int) APPEND ONLY",
    )
    (node,) = world.plan("SELECT l.id, w FROM l JOIN r ON l.id = r.id").dataflow.nodes
    assert isinstance(node.operator, BidirectionalSpec)
    assert node.operator.left.watermark is not None
    assert (node.operator.left.watermark.column, node.operator.left.watermark.delay_ms) == ("l.ts", 5000)
    assert node.operator.right.watermark is None


def test_a_static_side_is_read_once_and_retracted_alike() -> None:
    world = World.of(*DDL)
    world.insert("s", {"k": 1, "m": 1, "n": 10}, {"k": 1, "m": 2, "n": 20})
    world.start("SELECT a.k, a.m, v, n, _tp_delta FROM a LEFT JOIN table(s) AS d ON a.m = d.m AND d.n > 5")
    world.insert("a", {"k": 1, "m": 1, "v": 1}, {"k": 1, "m": 3, "v": 2})
    assert [(*row.values(), delta) for row, delta in world.drain()] == [(1, 1, 1, 10, 1), (1, 3, 2, None, 1)]
    world.insert("s", {"k": 1, "m": 3, "n": 30})
    world.delete("a", {"k": 1, "m": 3, "v": 2})
    assert [(*row.values(), delta) for row, delta in world.drain()] == [(1, 3, 2, None, -1)]


def test_a_stream_may_meet_every_row_of_a_static_table() -> None:
    world = World.of(*DDL)
    world.insert("u", {"k": 1, "m": 1, "z": 10}, {"k": 2, "m": 2, "z": 20})
    world.start("SELECT y, z FROM t CROSS JOIN table(u) AS d WHERE y < z")
    world.insert("t", {"k": 1, "m": 1, "y": 15})
    assert [(*row.values(), delta) for row, delta in world.drain()] == [(15, 20, 1)]


def test_a_static_side_may_be_a_bounded_query_with_aggregates() -> None:
    world = World.of(*DDL)
    world.insert("u", {"k": 1, "m": 1, "z": 10}, {"k": 1, "m": 2, "z": 20})
    world.start("SELECT t.k, total FROM t JOIN (SELECT k, sum(z) AS total FROM table(u) GROUP BY k) AS d ON t.k = d.k")
    world.insert("t", {"k": 1, "m": 1, "y": 0})
    assert [(*row.values(), delta) for row, delta in world.drain()] == [(1, 30, 1)]


def test_a_view_is_an_input_like_a_stream() -> None:
    world = World.of(
        *DDL, "CREATE MATERIALIZED VIEW ab AS SELECT a.k AS k, a.m AS m, v, w FROM a LEFT JOIN b ON a.m = b.m"
    )
    world.start("SELECT ab.k, w, z FROM ab LEFT JOIN u ON ab.k = u.k")
    inlined = (
        "WITH ab AS (SELECT a.k AS k, w FROM a LEFT JOIN b ON a.m = b.m) "
        "SELECT ab.k, w, z FROM ab LEFT JOIN u ON ab.k = u.k"
    )
    changer = _Changer(world, inlined, seed=5)
    for _ in range(10):
        changer.step()
        world.drain()
    assert world.table() == world.recomputed(inlined)


def test_a_value_that_cannot_be_computed_is_null_and_the_query_goes_on() -> None:
    world = World.of("CREATE STREAM raw (id int, text string)")
    world.start("SELECT id, to_int(text) AS n FROM raw")
    world.insert("raw", {"id": 1, "text": "12"}, {"id": 2, "text": "twelve"}, {"id": 3, "text": "13"})
    assert [tuple(row.values()) for row, _ in world.drain()] == [(1, 12), (2, None), (3, 13)]


def test_a_watermark_of_a_keyed_input_is_left_out() -> None:
    world = World.of(
        "CREATE TABLE r (id int PRIMARY KEY, k int, ts timestamptz, WATERMARK FOR ts AS ts - INTERVAL '5 seconds')",
        "CREATE TABLE l (k int) APPEND ONLY",
    )
    world.start("SELECT r.id FROM r JOIN l ON r.k = l.k")
    world.insert("r", {"id": 1, "k": 1, "ts": "2024-01-01 00:00:00"})
    world.insert("l", {"k": 1})
    assert world.drain() == [({"id": 1}, 1)]


def test_a_retraction_finds_its_row_whatever_the_time_is_called() -> None:
    """The record of a retraction has a time and a place in the topic of its own."""
    world = World.of(
        "CREATE STREAM c (k int, v int) SETTINGS mode = 'changelog'",
        "CREATE MUTABLE STREAM u (id int, w int) PRIMARY KEY (id)",
        "CREATE MATERIALIZED VIEW m AS SELECT k, v FROM c",
    )
    world.start(
        "SELECT d.k, d.at > '2020-01-01' AS late, m._tp_sn >= 0 AS known "
        "FROM (SELECT k, _tp_time AS at FROM c) AS d JOIN u ON d.k = u.id JOIN m ON d.k = m.k"
    )
    world.insert("u", {"id": 1, "w": 1})
    world.insert("c", {"k": 1, "v": 1})
    world.drain()
    assert world.table() == {(1, True, True): 1}
    world.delete("c", {"k": 1, "v": 1})
    world.drain()
    assert world.table() == {}


def test_a_condition_on_static_rows_that_fails_on_a_value_is_not_fulfilled() -> None:
    world = World.of("CREATE STREAM raw (id int, text string)", "CREATE TABLE d (n int)")
    world.insert("d", {"n": 1})
    world.start("SELECT id, n FROM raw LEFT JOIN table(d) AS d ON CAST(text AS int) = n + 0")
    world.insert("raw", {"id": 1, "text": "1"}, {"id": 2, "text": "one"})
    assert [tuple(row.values()) for row, _ in world.drain()] == [(1, 1), (2, None)]


def test_a_delete_takes_no_version_of_an_asof_join_away_and_is_none() -> None:
    world = World.of("CREATE STREAM l (k int, t int)", "CREATE MUTABLE STREAM r (k int, t int, v int) PRIMARY KEY (k)")
    world.start("SELECT l.t, r.v FROM l ASOF LEFT JOIN r ON l.k = r.k AND l.t >= r.t")
    world.insert("r", {"k": 1, "t": 1, "v": 10})
    world.delete("r", {"k": 1, "t": 1, "v": 10})
    world.insert("l", {"k": 1, "t": 5})
    assert world.drain() == [({"t": 5, "v": 10}, 1)]
