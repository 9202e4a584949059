"""UNION of streams against DuckDB's own, over random rows that come and go."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sql.world import Row, World
from tests.tries import tries

DDL = (
    "CREATE STREAM visits (k int, v int, s string)",
    "CREATE MUTABLE STREAM orders (id int, v bigint, s string) PRIMARY KEY id",
    "CREATE STREAM moves (k int, v int, s string) SETTINGS mode = 'changelog'",
    "CREATE STREAM prices (k int, v float64) PRIMARY KEY k SETTINGS mode = 'versioned_kv'",
)
QUERIES = {
    "append": "SELECT k, v FROM visits UNION ALL SELECT v, k FROM visits WHERE v > 1",
    "of all kinds": "SELECT k, v, s FROM visits UNION ALL SELECT id, v, s FROM orders "
    "UNION ALL SELECT k, v, s FROM moves",
    "of types": "SELECT k, v FROM orders_by UNION ALL SELECT k, v FROM prices UNION ALL SELECT v, k FROM visits",
    "distinct": "SELECT s FROM visits UNION DISTINCT SELECT s FROM orders UNION DISTINCT SELECT s FROM moves",
    "both": "SELECT s FROM visits UNION ALL (SELECT s FROM orders UNION DISTINCT SELECT s FROM moves)",
    "above groups": "SELECT s, count() AS c FROM visits GROUP BY s "
    "UNION ALL SELECT s, count() AS c FROM orders GROUP BY s",
    "below groups": "SELECT s, sum(v) AS t FROM (SELECT v, s FROM visits UNION ALL SELECT v, s FROM orders) AS u "
    "GROUP BY s",
    "in a join": "SELECT o.id, u.v FROM orders AS o LEFT JOIN (SELECT id AS k, v FROM orders WHERE v > 1 "
    "UNION ALL SELECT k, v FROM moves) AS u ON o.id = u.k",
    "of ctes": "WITH big AS (SELECT id, s FROM orders WHERE v > 1), u AS (SELECT id, s FROM big "
    "UNION ALL SELECT k, s FROM moves) SELECT id, s FROM u WHERE id > 0 UNION ALL SELECT id, s FROM big",
    "no column": "SELECT count() AS c FROM (SELECT k FROM moves UNION ALL SELECT id FROM orders) AS u",
}

number = st.none() | st.integers(0, 3)
word = st.none() | st.sampled_from("ab")
visit = st.fixed_dictionaries({"k": number, "v": number, "s": word})
order = st.fixed_dictionaries({"id": st.integers(0, 3), "v": number, "s": word})
price = st.fixed_dictionaries({"k": st.integers(0, 2), "v": st.none() | st.sampled_from([-0.0, 0.0, 1.5, 1e300])})
steps = st.lists(
    st.one_of(
        st.tuples(st.just("visits"), st.booleans(), visit),
        st.tuples(st.just("orders"), st.booleans(), order),
        st.tuples(st.just("moves"), st.booleans(), visit),
        st.tuples(st.just("prices"), st.booleans(), price),
    ),
    max_size=12,
)


@pytest.mark.parametrize("name", QUERIES)
@settings(max_examples=tries(12))
@given(taken=steps)
def test_it_is_the_batch_query(name: str, taken: list[tuple[str, bool, Row]]) -> None:
    world = World.of(*DDL, "CREATE VIEW orders_by AS SELECT id AS k, v FROM orders")
    world.start(QUERIES[name])
    world.drain()
    held: list[Row] = []
    for stream, comes, row in taken:
        if comes or stream == "visits":
            world.insert(stream, row)
            held += [row] if stream == "moves" else []
        elif stream != "moves" or row in held:
            world.delete(stream, row)
            held.remove(row) if stream == "moves" else None
        world.drain()
        assert min(world.net.values(), default=0) >= 0
    assert world.table() == world.recomputed(QUERIES[name])
