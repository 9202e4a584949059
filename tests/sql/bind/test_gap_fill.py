"""GAP_FILL in FROM: its arguments, its columns, and the nodes that it is made of."""

from __future__ import annotations

import pytest

from dovetail.changelog.errors import SqlError
from dovetail.sql.plan.nodes import ArrayJoin, Map, Over, Scan
from dovetail.sql.plan.properties import walk
from tests.sql.world import World

DDL = (
    "CREATE TABLE t (k INT, v INT, d NUMERIC, s VARCHAR, at TIMESTAMP, PRIMARY KEY (k, at))",
    "CREATE STREAM l (k int, v int, at datetime64(3), second datetime)",
    "CREATE STREAM log (k int, at datetime64(3)) SETTINGS mode='changelog'",
)
MINUTE = "INTERVAL '1' MINUTE"


@pytest.fixture(scope="module")
def world() -> World:
    return World.of(*DDL)


def test_it_is_made_of_what_is_there(world: World) -> None:
    made = world.plan(f"SELECT * FROM GAP_FILL(t, at, {MINUTE}, INTERPOLATE(v), PARTITION_BY(k))").output
    assert made is not None
    assert [type(node) for node in walk(made)][1:] == [Map, ArrayJoin, Map, Over, Scan]
    over = next(node for node in walk(made) if isinstance(node, Over))
    assert over.by == ("t.k",)
    assert [call.readable.split(" OVER ")[0] for _, call in over.calls] == ["LEAD(t.at)", "LEAD(t.v)"]


def test_what_is_not_read_is_not_computed(world: World) -> None:
    made = world.plan(f"SELECT at FROM GAP_FILL(t, at, {MINUTE}, INTERPOLATE(v))").output
    assert made is not None
    over = next(node for node in walk(made) if isinstance(node, Over))
    assert len(over.calls) == 1


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        (f"SELECT * FROM GAP_FILL(t, at, {MINUTE})", ("k", "v", "d", "s", "at")),
        (f"SELECT g.at, g.v FROM GAP_FILL(t, at, {MINUTE}, PARTITION_BY(k), LOCF(v)) AS g", ("at", "v")),
        (f"SELECT * FROM GAP_FILL(t, at, {MINUTE}) AS g(a, b)", ("a", "b", "d", "s", "at")),
        ("SELECT t.v FROM GAP_FILL(t, t.at, INTERVAL '1 minute 30 seconds', LOCF(t.v))", ("v",)),
        ("SELECT v FROM GAP_FILL(public.t, at, INTERVAL '1 year 2 months')", ("v",)),
        ("SELECT * FROM gap_fill(l, at, 1m, locf(v))", ("k", "v", "at", "second", "_tp_time")),
        ("SELECT _tp_time FROM gap_fill(l, _tp_time, 500ms)", ("_tp_time",)),
        ("SELECT k FROM gap_fill(changelog(l, k), at, 1m)", ("k",)),
        (f"WITH c AS (SELECT k, at FROM t WHERE v > 1) SELECT k FROM GAP_FILL(c, at, {MINUTE})", ("k",)),
        (f"SELECT at FROM GAP_FILL(TUMBLE(t, at, {MINUTE}), window_start, {MINUTE})", ("at",)),
    ],
)
def test_the_columns(world: World, query: str, columns: tuple[str, ...]) -> None:
    assert world.plan(query).columns == columns


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("t, at", "GAP_FILL takes other arguments"),
        ("t, at, 1", "GAP_FILL takes other arguments"),
        (f"t, {MINUTE}", "GAP_FILL takes other arguments"),
        (f"t, at, {MINUTE}, PARTITION_BY(k), PARTITION_BY(s)", "GAP_FILL takes other arguments"),
        ("t, at, INTERVAL '1 month 1 day'", "GAP_FILL takes other arguments"),
        ("t, at, INTERVAL 'Infinity seconds'", "GAP_FILL takes other arguments"),
        (f"t, at + {MINUTE}, {MINUTE}", "the time of GAP_FILL is a column"),
        (f"t, v, {MINUTE}", '"v" is int32'),
        ("t, at, INTERVAL '0' MINUTE", "of whole microseconds, above 0"),
        ("t, at, INTERVAL '-1' MINUTE", "of whole microseconds, above 0"),
        ("t, at, INTERVAL '1' NANOSECOND", "of whole microseconds, above 0"),
        ("t, at, INTERVAL '-1' YEAR", "of whole months, above 0"),
        (f"t, at, {MINUTE}, v", "v says of no column how GAP_FILL fills it"),
        (f"t, at, {MINUTE}, avg(v)", "AVG(v) says of no column how GAP_FILL fills it"),
        (f"t, at, {MINUTE}, LOCF(v + 1)", "LOCF in GAP_FILL takes columns"),
        (f"t, at, {MINUTE}, LOCF()", "LOCF in GAP_FILL takes columns"),
        (f"t, at, {MINUTE}, PARTITION_BY(k % 2)", "PARTITION_BY in GAP_FILL takes columns"),
        (f"t, at, {MINUTE}, LOCF(v, d)", "LOCF takes one column"),
        (f"t, at, {MINUTE}, INTERPOLATE(s)", 'INTERPOLATE is of numbers, and "s" is string'),
        (f"t, at, {MINUTE}, INTERPOLATE(v), LOCF(v)", 'GAP_FILL has a value for "v" already'),
        (f"t, at, {MINUTE}, LOCF(at)", 'GAP_FILL has a value for "at" already'),
        (f"t, at, {MINUTE}, KEEPNULL(k), PARTITION_BY(k)", 'GAP_FILL has a value for "k" already'),
        ("l, second, INTERVAL '500' MILLISECOND", 'finer than those of "second"'),
        ("l, at, INTERVAL '500' MICROSECOND", 'finer than those of "at"'),
    ],
)
def test_arguments_that_are_none(world: World, arguments: str, message: str) -> None:
    with pytest.raises(SqlError) as refused:
        world.plan(f"SELECT k FROM GAP_FILL({arguments})")
    assert message in refused.value.what
    assert "in FROM" in refused.value.where
    assert refused.value.fix


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT k FROM gap_fill(log, _tp_time, 1m)", "a _tp_time of its own"),
        (f"SELECT k FROM GAP_FILL((SELECT * FROM t), at, {MINUTE})", "takes the name of a stream"),
        (f"SELECT k FROM GAP_FILL(t, at, {MINUTE}) EMIT ON WINDOW CLOSE", "rows can be taken back"),
        (f"SELECT k FROM GAP_FILL(t, at, {MINUTE}, LOCF(x))", 'there is no column "x"'),
        ("SELECT locf(v) FROM t", "locf() fills the gaps between rows in FROM"),
        (f"SELECT _tp_sn FROM GAP_FILL(t, at, {MINUTE})", 'there is no column "_tp_sn"'),
    ],
)
def test_what_is_refused(world: World, query: str, message: str) -> None:
    with pytest.raises(SqlError) as refused:
        world.plan(query)
    assert message in refused.value.what
