"""EMIT ON WINDOW CLOSE over rows and window functions: each row once, and as the batch query has it."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from tests.sql.world import Row, World, values

DDL = (
    "CREATE TABLE t (id INT, k INT, v INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '5 seconds') APPEND ONLY",
    "CREATE MATERIALIZED VIEW some AS SELECT id, k, v, at FROM t WHERE v > 0",
)
START = datetime(2024, 1, 1, tzinfo=UTC)
BY = "PARTITION BY k ORDER BY at"
QUERIES = {
    "rows": "SELECT id, at, v + 1 AS w FROM t WHERE v > 0",
    "of a view": "SELECT id, at, v FROM some",
    "union": "SELECT id, at FROM t WHERE v > 1 UNION ALL SELECT v, at FROM t WHERE v <= 1",
    "ranks": f"SELECT id, at, row_number() OVER ({BY}) AS n, rank() OVER ({BY}) AS r, dense_rank() OVER ({BY}) AS d "
    "FROM t",
    "rows before": f"SELECT id, at, lag(v) OVER ({BY}) AS a, lag(v, 2, 0) OVER ({BY}) AS b FROM t",
    "frames": f"SELECT id, at, sum(v) OVER ({BY} ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS s, "
    f"max(v) OVER ({BY}) AS m, first_value(v) OVER ({BY}) AS f FROM t",
    "rows after": f"SELECT id, at, lead(v) OVER ({BY}) AS a, lead(v, 3) OVER ({BY}) AS b FROM t",
    "orders that differ in ties": f"SELECT id, at, lead(v) OVER ({BY}, v) AS a, lead(v) OVER ({BY}, v DESC) AS b "
    "FROM t",
    "frames that follow": f"SELECT id, at, max(v) OVER ({BY} ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING) AS m FROM t",
    "no partition": "SELECT id, at, row_number() OVER (ORDER BY at) AS n FROM t",
    "several partitions": f"SELECT id, at, lead(v) OVER ({BY}) AS a, "
    "row_number() OVER (PARTITION BY v ORDER BY at) AS n FROM t",
    "first rows": f"SELECT id, at FROM (SELECT *, row_number() OVER ({BY}) AS n FROM t) AS x WHERE n <= 2",
    "first rows of a window": "SELECT id, at FROM (SELECT *, row_number() OVER (PARTITION BY window_start, k "
    "ORDER BY v DESC, id) AS n FROM TUMBLE(t, at, INTERVAL '10' SECOND)) AS x WHERE n <= 2",
    "whole windows": "SELECT id, at, ntile(2) OVER (PARTITION BY window_end ORDER BY v, id) AS n, "
    "sum(v) OVER (PARTITION BY window_end) AS s FROM HOP(t, at, INTERVAL '5' SECOND, INTERVAL '10' SECOND)",
    "gaps": "SELECT id, at, k FROM GAP_FILL(t, at, INTERVAL '1' SECOND, INTERPOLATE(id), PARTITION_BY(k))",
}


def at(second: int) -> str:
    return (START + timedelta(seconds=second)).strftime("%Y-%m-%d %H:%M:%S")


def before(rows: Counter[tuple[object, ...]], second: int) -> Counter[tuple[object, ...]]:
    return Counter({row: count for row, count in rows.items() if str(row[1]) < at(second)})


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("seed", range(2))
def test_it_is_the_batch_query(name: str, seed: int) -> None:
    """Rows come out of order within the delay; at last some follow in each partition, and then one that closes all."""
    world, chance, query = World.of(*DDL), random.Random(seed), QUERIES[name]
    world.start(f"{query} EMIT ON WINDOW CLOSE")
    emitted: Counter[tuple[object, ...]] = Counter()
    for number in range(30):
        second = number + chance.randint(-2, 2)
        row: Row = {"id": number, "k": chance.choice([None, 1, 1, 2]), "v": chance.randint(0, 3), "at": at(second)}
        world.insert("t", row)
        if chance.random() < 0.4:
            emitted += drained(world)
            assert before(emitted, number - 8) <= before(world.over_content(query), number - 8)
            if chance.random() < 0.3:
                world.engine.restart()
    for second in range(40, 44):
        last: list[Row] = [{"id": 90, "k": k, "v": v, "at": at(second)} for k in (None, 1, 2) for v in range(4)]
        world.insert("t", *last)
    world.insert("t", {"id": 99, "k": 0, "v": 1, "at": at(100)})
    emitted += drained(world)
    assert before(emitted, 40) == before(world.over_content(query), 40)
    assert before(emitted, 40).total() > 3


def drained(world: World) -> Counter[tuple[object, ...]]:
    changes = world.drain()
    assert all(delta == 1 for _, delta in changes)
    return Counter(values(row) for row, _ in changes)


def test_when_rows_leave() -> None:
    """The watermark of the row at 20 is 15: a row there would still be in time."""
    world = World.of(*DDL)
    world.start(f"SELECT id, lead(id) OVER ({BY}) AS n FROM t EMIT ON WINDOW CLOSE")
    found = []
    for number, second in enumerate((1, 10, 15, 20, 21, 40)):
        world.insert("t", {"id": number, "k": 1, "v": 1, "at": at(second)})
        found.append(sorted(drained(world)))
    assert found == [[], [], [], [(0, 1)], [(1, 2)], [(2, 3), (3, 4)]]
