"""INTERSECT and EXCEPT of streams against DuckDB's own, over random rows that come and go."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sql.compile.changing import assert_adds_up
from tests.sql.world import Row, World
from tests.tries import tries

OF_TABLES = {
    "intersect": "SELECT k, v FROM held INTERSECT SELECT k, w FROM seen",
    "intersect all": "SELECT k, v FROM held INTERSECT ALL SELECT k, w FROM marks",
    "except": "SELECT k, v FROM held EXCEPT SELECT k, w FROM marks",
    "except all": "SELECT k, w FROM marks EXCEPT ALL SELECT k, v FROM held",
    "of keys": "SELECT id FROM held INTERSECT SELECT id FROM seen EXCEPT SELECT k FROM marks",
    "of rows that are found by their key": "SELECT id, k FROM held EXCEPT ALL SELECT id, k FROM seen",
    "intersect first": "SELECT k FROM held UNION ALL SELECT k FROM seen INTERSECT ALL SELECT k FROM marks",
    "left to right": "SELECT k FROM marks EXCEPT ALL SELECT k FROM held UNION SELECT k FROM seen "
    "EXCEPT SELECT id FROM held",
    "in brackets": "SELECT k FROM marks EXCEPT ALL (SELECT k FROM held UNION ALL SELECT k FROM seen)",
    "a table with itself": "SELECT k FROM marks EXCEPT ALL SELECT k FROM marks WHERE w > 1",
    "of groups": "SELECT k, count(*) AS n FROM held GROUP BY k INTERSECT SELECT k, count(*) FROM marks GROUP BY k",
    "below groups": "SELECT k, count(*) AS n FROM (SELECT k, w FROM marks EXCEPT ALL SELECT k, v FROM held) AS x "
    "WHERE k > 1 GROUP BY k",
    "in joins": "SELECT h.id, x.k FROM held AS h LEFT JOIN (SELECT k FROM marks INTERSECT SELECT k FROM seen) AS x "
    "ON h.k = x.k",
    "of joins": "SELECT h.k, s.w FROM held AS h JOIN seen AS s ON h.id = s.id EXCEPT SELECT k, w FROM marks",
    "in a subquery": "SELECT id FROM held WHERE k IN (SELECT k FROM seen EXCEPT SELECT k FROM marks)",
    "in ctes": "WITH x AS (SELECT k FROM held EXCEPT SELECT k FROM seen), y AS (SELECT k FROM x INTERSECT SELECT k "
    "FROM marks) SELECT k FROM y UNION ALL SELECT k FROM x",
    "of types": "SELECT id FROM held EXCEPT SELECT w FROM marks",
}


@pytest.mark.parametrize("query", OF_TABLES.values(), ids=OF_TABLES)
def test_of_tables(query: str) -> None:
    assert_adds_up(query)


DDL = (
    "CREATE STREAM visits (k int, v int)",
    "CREATE MUTABLE STREAM orders (k int, v bigint) PRIMARY KEY k",
    "CREATE STREAM moves (k int, v int) SETTINGS mode = 'changelog'",
)
OF_STREAMS = {
    "append": "SELECT k, v FROM visits INTERSECT SELECT v, k FROM visits",
    "append once": "SELECT k FROM visits INTERSECT DISTINCT SELECT v FROM visits WHERE v > 1",
    "of all kinds": "SELECT k, v FROM visits EXCEPT SELECT k, v FROM orders INTERSECT SELECT k, v FROM moves",
    "of changelogs": "SELECT k FROM moves EXCEPT DISTINCT SELECT k FROM orders UNION ALL SELECT v FROM visits",
    "of rows as they come": "SELECT v, k FROM moves INTERSECT ALL SELECT k, v FROM moves",
}
number = st.integers(0, 2)
steps = st.lists(
    st.tuples(st.sampled_from(["visits", "orders", "moves"]), st.booleans(), st.tuples(number, st.none() | number)),
    max_size=14,
)


@pytest.mark.parametrize("query", OF_STREAMS.values(), ids=OF_STREAMS)
@settings(max_examples=tries(8))
@given(taken=steps)
def test_of_streams(query: str, taken: list[tuple[str, bool, tuple[int, int | None]]]) -> None:
    world = World.of(*DDL)
    world.start(query)
    world.drain()
    held: list[Row] = []
    for stream, comes, (key, value) in taken:
        row: Row = {"k": key, "v": value}
        if comes or stream == "visits":
            world.insert(stream, row)
            held += [row] if stream == "moves" else []
        elif stream == "orders":
            world.delete(stream, row)
        elif row in held:
            world.delete(stream, row)
            held.remove(row)
        world.drain()
        assert min(world.net.values(), default=0) >= 0
    assert world.table() == world.recomputed(query)


def test_of_rows_that_stay_those_on_both_sides_stay() -> None:
    world = World.of(*DDL)
    assert not world.plan(OF_STREAMS["append once"]).updating
    assert world.plan(OF_STREAMS["append"].replace("INTERSECT", "EXCEPT")).updating
