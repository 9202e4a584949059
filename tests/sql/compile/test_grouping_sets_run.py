"""ROLLUP, CUBE and GROUPING SETS against DuckDB's own, over random rows that come and go."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sql.world import Row, World
from tests.tries import tries

DDL = (
    "CREATE MUTABLE STREAM orders (id int, a string, b int, v float64) PRIMARY KEY id",
    "CREATE STREAM visits (a string, b int, v float64)",
    "CREATE TABLE parts (id INT, a VARCHAR, b INT, PRIMARY KEY (id))",
)
QUERIES = {
    "rollup": "SELECT a, b, grouping(a, b) AS g, count() AS n, sum(v) AS s FROM orders GROUP BY ROLLUP (a, b)",
    "cube": "SELECT a, b, grouping(b, a) AS g, max(v) AS m FROM orders GROUP BY CUBE (a, b)",
    "sets": "SELECT a, b, count() AS n FROM visits GROUP BY GROUPING SETS ((a, b), a, ())",
    "a set twice": "SELECT a, count() AS n FROM visits GROUP BY GROUPING SETS (a, a)",
    "of sets": "SELECT a, b, count() AS n FROM visits GROUP BY GROUPING SETS (ROLLUP (a), CUBE (a, b))",
    "beside a key": "SELECT a, b, count(DISTINCT v) AS n FROM orders GROUP BY a, ROLLUP (b)",
    "all with all": "SELECT a, b, count() AS n FROM orders GROUP BY ROLLUP (a), ROLLUP (b)",
    "together": "SELECT a, b, v, count() AS n FROM visits GROUP BY ROLLUP ((a, b), v)",
    "with rollup": "SELECT a, b, median(v) AS m FROM orders GROUP BY a, b WITH ROLLUP",
    "with cube": "SELECT a, b + 1 AS c, min(v) AS m FROM orders GROUP BY a, c WITH CUBE",
    "aggregates of keys": "SELECT a, b, sum(b) AS s, count(a) AS n FROM orders GROUP BY CUBE (a, b)",
    "positions": "SELECT a, b, count() AS n FROM visits GROUP BY ROLLUP (1, 2)",
    "having": "SELECT a, b, count() AS n FROM orders GROUP BY ROLLUP (a, b) HAVING grouping(b) = 1 AND n > 1",
    "having a key": "SELECT a, b, count() AS n FROM orders GROUP BY CUBE (a, b) HAVING a = 'x'",
    "keys alone": "SELECT a, b FROM visits GROUP BY ROLLUP (a, b)",
    "distinct": "SELECT DISTINCT a, grouping_id(a) AS g FROM orders GROUP BY ROLLUP (a, b)",
    "one set": "SELECT a, count() AS n FROM orders GROUP BY GROUPING SETS ((a))",
    "the empty set": "SELECT count() AS n, sum(b) AS s FROM orders GROUP BY GROUPING SETS (())",
    "of risingwave": "SELECT a, b, grouping(a, b) AS g, count(*) AS n FROM parts GROUP BY CUBE (a, b)",
    "below a join": "SELECT o.id, t.n FROM orders AS o JOIN (SELECT a, grouping(a) AS g, count() AS n FROM orders "
    "GROUP BY ROLLUP (a)) AS t ON o.a = t.a WHERE t.g = 0",
    "above sets": "SELECT g, sum(n) AS n FROM (SELECT grouping(a, b) AS g, count() AS n FROM orders "
    "GROUP BY CUBE (a, b)) AS t GROUP BY ROLLUP (g)",
}

number = st.none() | st.integers(0, 2)
word = st.none() | st.sampled_from("xy")
real = st.none() | st.sampled_from([-0.0, 0.0, 1.5, 1e300])
visit = st.fixed_dictionaries({"a": word, "b": number, "v": real})
order = st.fixed_dictionaries({"id": st.integers(0, 3), "a": word, "b": number, "v": real})
part = st.fixed_dictionaries({"id": st.integers(0, 2), "a": word, "b": number})
steps = st.lists(
    st.one_of(
        st.tuples(st.just("visits"), st.just(True), visit),
        st.tuples(st.just("orders"), st.booleans(), order),
        st.tuples(st.just("parts"), st.just(True), part),
    ),
    max_size=10,
)


@pytest.mark.parametrize("name", QUERIES)
@settings(max_examples=tries(6))
@given(taken=steps, cut=st.integers(1, 4))
def test_it_is_the_batch_query(name: str, taken: list[tuple[str, bool, Row]], cut: int) -> None:
    world = World.of(*DDL)
    world.start(QUERIES[name])
    for number_of, (stream, comes, row) in enumerate(taken, start=1):
        (world.insert if comes else world.delete)(stream, row)
        if number_of % cut == 0:
            world.drain()
            assert min(world.net.values(), default=0) >= 0
    world.drain()
    assert world.table() == world.recomputed(QUERIES[name])


WINDOWS = (
    "CREATE SOURCE bids (k INT, v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) "
    "WITH (connector = 'kafka', topic = 'bids')"
)


def test_groups_of_all_sets_close_by_a_key_of_all() -> None:
    world = World.of(WINDOWS)
    explained = world.explain(
        "SELECT window_start, k, count(*) AS n FROM TUMBLE(bids, ts, INTERVAL '10' SECOND) "
        "GROUP BY window_start, ROLLUP (k) EMIT ON WINDOW CLOSE"
    )
    assert "every row once, when its window is closed" in explained
