"""Joins that take one right row of many, run in memory."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from dovetail.broker.reader import HEADED
from dovetail.changelog.changes import DELTA
from dovetail.changelog.decode import Decoder
from dovetail.changelog.schema import ARRIVAL
from dovetail.joins.dataflow.graph import TopicScan
from dovetail.joins.host.in_memory import LocalQuery
from dovetail.joins.inputs.watermarks import PartitionTime
from tests.conformance.case import Wait
from tests.sql.planner import Planner
from tests.sql.world import Row, World

QUOTES = (
    "CREATE TABLE bids (id INT, s INT, t INT, PRIMARY KEY (id))",
    "CREATE TABLE asks (id INT, s INT, t INT, PRIMARY KEY (id))",
    "CREATE TABLE ticks (s INT, t INT, n INT)",
    "CREATE TABLE log (s INT, t INT, n INT) APPEND ONLY",
)
ASOF = [
    "SELECT b.id, a.id AS a FROM bids AS b ASOF JOIN asks AS a ON a.s = b.s AND b.t >= a.t",
    "SELECT b.id, a.id AS a FROM bids AS b ASOF LEFT JOIN asks AS a ON a.s = b.s AND b.t < a.t",
    "SELECT b.id, a.id AS a FROM bids AS b ASOF LEFT JOIN asks AS a ON a.s = b.s AND b.t >= a.t AND b.t <= a.t + 2",
    "SELECT b.id, n FROM bids AS b ASOF LEFT JOIN log AS a ON a.s = b.s AND b.t > a.t WHERE b.t <> 3",
    "SELECT b.s, a.id AS a FROM ticks AS b ASOF JOIN asks AS a ON a.s + 1 = b.s + 1 AND b.t <= a.t",
    "SELECT b.id, t.t FROM bids AS b ASOF LEFT JOIN (SELECT s, t FROM ticks WHERE n>0) AS t ON t.s = b.s AND b.t > t.t",
]


@pytest.mark.parametrize("query", ASOF)
def test_an_updating_asof_join_adds_up_to_the_batch_result(query: str) -> None:
    world, chance = World.of(*QUOTES), random.Random(len(query))
    world.start(query)
    present: dict[str, list[Row]] = {name: [] for name in ("bids", "asks", "ticks", "log")}
    for step in range(12):
        for _ in range(chance.randrange(1, 7)):
            _change(world, chance, present)
        world.drain()
        assert min(world.net.values(), default=0) >= 0
        if step % 3 == 2:
            assert world.table() == world.recomputed(query)


def _change(world: World, chance: random.Random, present: dict[str, list[Row]]) -> None:
    table = chance.choice(list(present))
    rows = present[table]
    if rows and table != "log" and chance.random() < 0.3:
        world.delete(table, rows.pop(chance.randrange(len(rows))))
        return
    row: Row = {"s": chance.randrange(3), "t": chance.choice([None, *range(6)])}
    if table in ("bids", "asks"):
        row["id"] = chance.randrange(8)
        rows[:] = [old for old in rows if old["id"] != row["id"]]
    else:
        # One time for all: a retraction of a row without a key has to equal its insertion.
        row |= {"n": chance.randrange(3), "_tp_time": "2026-01-01 00:00:00"}
    rows.append(row)
    world.insert(table, row)


def _rows(names: str, *values: tuple[object, ...]) -> list[Row]:
    return [dict(zip(names.split(), row, strict=True)) for row in values]


def test_the_last_record_of_a_batch_is_the_latest_whatever_its_primary_key() -> None:
    world = World.of("CREATE STREAM l (n int, g int)", "CREATE MUTABLE STREAM r (id int, g int, x int) PRIMARY KEY id")
    world.start("SELECT n, x FROM l LATEST JOIN r ON l.g = r.g")
    world.insert("r", *_rows("id g x", (1, 1, 10), (2, 1, 20), (3, 1, 30), (1, 1, 11)))
    world.insert("l", {"n": 1, "g": 1})
    assert world.drain() == [({"n": 1, "x": 11}, 1)]
    world.delete("r", {"id": 1, "g": 1, "x": 11})
    world.insert("l", {"n": 2, "g": 1})
    assert world.drain() == [({"n": 2, "x": 30}, 1)]


def test_full_latest_of_keyed_streams_answers_each_upsert() -> None:
    world = World.of("CREATE MUTABLE STREAM a (k int, v int) PRIMARY KEY k", "CREATE STREAM b (k int, w int)")
    world.start("SELECT v, w FROM a FULL LATEST JOIN b USING (k)")
    drained: list[tuple[object, ...]] = []
    for table, row in (("a", {"v": 1}), ("b", {"w": 5}), ("a", {"v": 2}), ("a", None), ("b", {"w": 6})):
        if row is None:
            world.delete(table, {"k": 1, "v": 2})
        else:
            world.insert(table, {"k": 1, **row})
        drained += [(*change.values(), delta) for change, delta in world.drain()]
    assert drained == [(1, None, 1), (1, 5, 1), (2, 5, 1), (None, 6, 1)]


def test_semi_and_anti_divide_the_left_rows_that_have_a_key() -> None:
    world = World.of("CREATE STREAM l (n int, k int)", "CREATE MUTABLE STREAM r (k int, x int) PRIMARY KEY k")
    world.start("SELECT n FROM l LEFT ANTI JOIN r ON l.k = r.k AND r.x > 1 AND l.n > 1 WHERE n < 9")
    world.insert("r", {"k": 1, "x": 1}, {"k": 2, "x": 2})
    world.insert("l", *_rows("n k", (1, 2), (2, 2), (3, 1), (4, None), (9, 7)))
    world.drain()
    assert world.table() == Counter([(1,), (3,)])
    world = World.of("CREATE STREAM l (n int, k int)", "CREATE STREAM r (k int, x int)")
    world.start("SELECT n FROM l LEFT SEMI JOIN r ON l.k = r.k AND l.n > 1")
    world.insert("r", {"k": 1, "x": 1}, {"k": 1, "x": 2})
    world.insert("l", *_rows("n k", (1, 1), (2, 1), (3, 2), (4, None)))
    assert world.drain() == [({"n": 2}, 1)]


RATES = (
    "CREATE TABLE deals (id INT, cur VARCHAR, at TIMESTAMP, WATERMARK FOR at AS at, PRIMARY KEY (id))",
    "CREATE TABLE rates (cur VARCHAR, rate INT, since TIMESTAMP, WATERMARK FOR since AS since, PRIMARY KEY (cur))",
)
AS_OF = (
    "SELECT d.id, r.rate FROM deals AS d LEFT JOIN rates FOR SYSTEM_TIME AS OF d.at AS r "
    "ON d.cur = r.cur AND r.rate > 10"
)


def _at(second: int) -> str:
    return f"2024-01-01 00:00:{second:02d}"


def _rate(second: int, rate: int) -> Row:
    return {"cur": "E", "rate": rate, "since": _at(second), "_tp_time": _at(second)}


def _deal(number: int, second: int) -> Row:
    return {"id": number, "cur": "E", "at": _at(second), "_tp_time": _at(second)}


def test_a_deleted_row_has_no_version_from_the_time_of_the_record_on() -> None:
    world = World.of(*RATES)
    world.start(AS_OF)
    world.insert("deals", *(_deal(second, second) for second in (1, 2, 4, 5, 6, 7, 9)))
    world.insert("rates", _rate(2, 12))
    world.delete("rates", _rate(5, 12))
    world.insert("rates", _rate(7, 17), _rate(9, 3))
    world.engine.wait(Wait.WATERMARK)
    world.drain()
    assert world.table() == Counter([(1, None), (2, 12), (4, 12), (5, None), (6, None), (7, 17), (9, None)])


def test_what_was_answered_is_taken_back_with_its_row() -> None:
    world = World.of(*RATES)
    world.start(AS_OF)
    world.insert("rates", _rate(1, 11), _rate(3, 13))
    world.insert("deals", _deal(1, 2), _deal(2, 2))
    world.delete("deals", _deal(2, 2))
    world.engine.wait(Wait.WATERMARK)
    assert world.drain() == [({"id": 1, "rate": 11}, 1)]
    world.delete("deals", _deal(1, 2))
    assert world.drain() == [({"id": 1, "rate": 11}, -1)]


def test_a_version_column_is_asked_before_the_condition() -> None:
    world = World.of(
        "CREATE STREAM l (n int, k int)",
        "CREATE MUTABLE STREAM r (k int, x int, rev int) PRIMARY KEY k SETTINGS version_column='rev'",
    )
    world.start("SELECT n, x FROM l JOIN r ON l.k = r.k AND r.x > 0")
    world.insert("r", {"k": 1, "x": 5, "rev": 2}, {"k": 1, "x": -1, "rev": 1})
    world.insert("l", {"n": 1, "k": 1})
    assert world.drain() == [({"n": 1, "x": 5}, 1)]
    world.insert("r", {"k": 1, "x": -1, "rev": 3}, {"k": 1, "x": 7, "rev": 2})
    world.insert("l", {"n": 2, "k": 1})
    assert world.drain() == []
    assert world.recomputed("SELECT x FROM r") == Counter([(-1,)])


@pytest.mark.parametrize("overrides", ["true", "false"])
@pytest.mark.parametrize("key", ["k", "g"])
def test_the_greatest_versions_add_up_to_the_batch_result(overrides: str, key: str) -> None:
    world, chance = World.of("CREATE TABLE l (k INT, n INT)"), random.Random(7)
    world.engine.create(
        "CREATE MUTABLE STREAM r (k int, g int, x int, rev int) PRIMARY KEY k "
        f"SETTINGS version_column='rev', late_insert_overrides={overrides}"
    )
    query = f"SELECT n, r.k, x FROM l FULL JOIN r ON l.k = r.{key} AND x <> 2"
    world.start(query)
    for _ in range(10):
        for _ in range(chance.randrange(1, 9)):
            row: Row = {"k": chance.randrange(3), "g": chance.randrange(3), "x": chance.randrange(4)}
            if chance.random() < 0.3:
                world.insert("l", {"k": chance.randrange(3), "n": chance.randrange(2)})
            elif chance.random() < 0.2:
                world.delete("r", row)
            else:
                world.insert("r", {**row, "rev": chance.choice([None, 1, 2, 3])})
        world.drain()
        assert world.table() == world.recomputed(query)


def test_a_view_gives_the_last_row_that_stands() -> None:
    world = World.of(
        "CREATE STREAM l (n int, g int)",
        "CREATE MUTABLE STREAM r (id int, g int, x int) PRIMARY KEY id",
        "CREATE MUTABLE STREAM names (id int, name string) PRIMARY KEY id",
        "CREATE MATERIALIZED VIEW named AS SELECT r.id, g, x, name FROM r JOIN names ON r.id = names.id",
    )
    world.start("SELECT n, x, name FROM l LEFT LATEST JOIN named ON l.g = named.g")
    world.insert("names", {"id": 1, "name": "a"}, {"id": 2, "name": "b"})
    world.insert("r", {"id": 1, "g": 1, "x": 10})
    world.drain()
    world.insert("r", {"id": 2, "g": 1, "x": 20})
    world.drain()
    world.insert("l", {"n": 1, "g": 1})
    assert world.drain() == [({"n": 1, "x": 20, "name": "b"}, 1)]
    world.delete("r", {"id": 2, "g": 1, "x": 20})
    world.drain()
    world.insert("l", {"n": 2, "g": 1})
    assert world.drain() == [({"n": 2, "x": 10, "name": "a"}, 1)]


def test_a_held_row_is_let_go_when_the_right_side_has_passed_it() -> None:
    columns = "(n int, k int, at datetime64(3))"
    world = World.of(f"CREATE STREAM l {columns}", f"CREATE STREAM r {columns}")
    world.start("SELECT l.n, r.n AS x FROM l LEFT LATEST JOIN r ON l.k = r.k AND lag_behind(2s, l.at, r.at)")
    world.insert("l", {"n": 1, "k": 1, "at": _at(4)}, {"n": 2, "k": 1, "at": _at(5)})
    assert world.drain() == []
    # It is answered as of its time: what came for it to be let go is after that.
    world.insert("r", {"n": 10, "k": 1, "at": _at(6)})
    assert world.drain() == [({"n": 1, "x": None}, 1)]
    # Out of order, and not late: the watermark only tells how far the right side has come.
    world.insert("r", {"n": 11, "k": 1, "at": _at(5)}, {"n": 13, "k": 1, "at": _at(3)})
    assert world.drain() == []
    world.insert("r", {"n": 12, "k": 2, "at": _at(7)})
    assert world.drain() == [({"n": 2, "x": 11}, 1)]


def test_latest_as_of_a_time_takes_the_versions_of_a_keyed_stream() -> None:
    columns = "(n int, k int, at datetime64(3))"
    world = World.of(f"CREATE STREAM l {columns}", f"CREATE MUTABLE STREAM r {columns} PRIMARY KEY k")
    world.start("SELECT l.n, r.n AS x FROM l LATEST JOIN r ON l.k = r.k AND lag_behind(1s, l.at, r.at)")
    world.insert("r", {"n": 1, "k": 1, "at": _at(1)}, {"n": 3, "k": 1, "at": _at(3)})
    world.insert("l", {"n": 5, "k": 1, "at": _at(5)}, {"n": 2, "k": 1, "at": _at(2)})
    world.insert("r", {"n": 4, "k": 1, "at": _at(4)}, {"n": 6, "k": 1, "at": _at(6)})
    assert sorted((row["n"], row["x"]) for row, _ in world.drain()) == [(2, 1), (5, 4)]


def test_a_silent_right_side_holds_nothing_back() -> None:
    columns = "(n int, k int, at datetime64(3))"
    planner = Planner.of(f"CREATE STREAM l {columns}", f"CREATE STREAM r {columns}")
    query = "SELECT l.n, r.n AS x FROM l LEFT LATEST JOIN r ON l.k = r.k AND lag_behind(2s, l.at, r.at)"
    flow = planner.plan(query, join_quiesce_threshold_ms=500).dataflow
    running = LocalQuery(flow)
    left, right = flow.scans
    held = _decoded(left, {"n": 1, "k": 1, "at": datetime(2024, 1, 1, tzinfo=UTC)})
    assert running.feed({0: held}) is None
    found = running.feed({}, [PartitionTime(right.edge, 0, None)])
    assert found is not None
    assert found.select(["n", "x"]).to_pylist() == [{"n": 1, "x": None}]


def _decoded(scan: TopicScan, row: dict[str, object]) -> pa.Table:
    schema = Decoder(scan.stream, scan.columns).decode(HEADED.empty_table()).rows.schema
    return pa.Table.from_pylist([{**row, ARRIVAL: 0, DELTA: 1}], schema=schema)
