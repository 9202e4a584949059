"""First rows and window functions against DuckDB's own, over random rows that come and go, in random batches."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sql.world import Row, World
from tests.tries import tries

DDL = (
    "CREATE STREAM visits (k int, v int, s string, d float64)",
    "CREATE MUTABLE STREAM orders (id int, k int, v bigint, s string, d float64) PRIMARY KEY id",
    "CREATE STREAM moves (k int, v int, s string, d float64) SETTINGS mode = 'changelog'",
    "CREATE TABLE items (id INT, k INT, v INT, s VARCHAR, d DOUBLE PRECISION, PRIMARY KEY (id))",
)
FIRST = {
    "first": "SELECT k, v FROM (SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v DESC) AS rn FROM {0}) AS x "
    "WHERE rn = 1",
    "numbered": "SELECT * FROM (SELECT k, v, s, row_number() OVER (PARTITION BY k ORDER BY v, s DESC) AS rn FROM {0}) "
    "AS x WHERE rn <= 2",
    "of ties": "SELECT k, v, r FROM (SELECT k, v, rank() OVER (PARTITION BY k ORDER BY v DESC) AS r FROM {0}) AS x "
    "WHERE r < 3 AND v > 0",
    "dense": "SELECT k, d FROM (SELECT k, d, dense_rank() OVER (ORDER BY d DESC NULLS LAST) AS r FROM {0}) AS x "
    "WHERE 2 >= r",
    "between": "WITH x AS (SELECT *, row_number() OVER (PARTITION BY s ORDER BY d NULLS FIRST) AS rn FROM {0}) "
    "SELECT s, d, v FROM x WHERE rn BETWEEN 2 AND 3",
    "qualify": "SELECT k, v AS w FROM {0} QUALIFY row_number() OVER (PARTITION BY k ORDER BY d, w) <= 2 AND w > 0",
    "limit": "SELECT k, d FROM {0} ORDER BY d DESC, k LIMIT 3",
    "offset": "SELECT k, v, s FROM {0} ORDER BY 2 LIMIT 2 OFFSET 1",
    "of each": "SELECT DISTINCT ON (k) k, v, s FROM {0} ORDER BY k, v DESC",
    "ties": "SELECT k, v FROM {0} ORDER BY v FETCH FIRST 2 ROWS WITH TIES",
    "ties after an offset": "SELECT k, v FROM {0} ORDER BY v OFFSET 1 ROWS FETCH FIRST 2 ROWS WITH TIES",
    "of a subquery": "SELECT k, count(*) AS c FROM (SELECT * FROM {0} ORDER BY v LIMIT 4) AS x GROUP BY k",
    "of groups": "SELECT s, sum(v) AS t FROM {0} GROUP BY s ORDER BY t DESC, s LIMIT 2",
    "ranked groups": "SELECT s, count(*) AS c, rank() OVER (ORDER BY count(*) DESC) AS r FROM {0} GROUP BY s",
    "of a partition": "SELECT k, v FROM (SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v) AS rn FROM {0}) AS "
    "x WHERE rn <= 2 AND k = 1",
    "none": "SELECT k FROM {0} ORDER BY v LIMIT 0",
}
LIMIT_BY = {
    "limit by": "SELECT k, v FROM {0} ORDER BY v DESC LIMIT 2 BY k",
    "offset by": "SELECT k, v, s FROM {0} ORDER BY d LIMIT 1 OFFSET 1 BY k, s",
}
OVER = {
    "neighbours": "SELECT k, v, lag(v) OVER (PARTITION BY k ORDER BY d) AS a, lead(v, 2, -1) OVER (PARTITION BY k "
    "ORDER BY d) AS b FROM {0}",
    "ends": "SELECT k, v, first_value(s) OVER (PARTITION BY k ORDER BY v) AS a, last_value(s) OVER (PARTITION BY k "
    "ORDER BY v) AS b FROM {0}",
    "whole": "SELECT k, v, last_value(s) OVER (PARTITION BY k ORDER BY d DESC ROWS BETWEEN UNBOUNDED PRECEDING AND "
    "UNBOUNDED FOLLOWING) AS b FROM {0}",
    "running": "SELECT k, v, sum(v) OVER w AS s1, count(*) OVER w AS c, min(d) OVER w AS least, max(d) OVER w AS m, "
    "avg(v) OVER w AS mean FROM {0} WINDOW w AS (PARTITION BY k ORDER BY v)",
    "rows": "SELECT v, s, sum(v) OVER (ORDER BY d, s ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS t FROM {0}",
    "range": "SELECT k, v, count(v) OVER (PARTITION BY s ORDER BY v RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS c "
    "FROM {0}",
    "ranks": "SELECT v, row_number() OVER (ORDER BY v) AS n, rank() OVER (ORDER BY v) AS r, ntile(2) OVER (ORDER BY v, "
    "s) AS t, percent_rank() OVER (PARTITION BY k ORDER BY d) AS p, k FROM {0}",
    "several": "SELECT k, s, v - lag(v) OVER (PARTITION BY k ORDER BY v) AS d1, count(*) OVER (PARTITION BY s) AS c, "
    "row_number() OVER (PARTITION BY k ORDER BY v DESC) AS n FROM {0}",
    "qualified": "SELECT k, v, sum(v) OVER (PARTITION BY k) AS t FROM {0} QUALIFY t > 1 AND v < t",
    "filtered": "SELECT k, v, count(*) FILTER (WHERE v > 1) OVER (PARTITION BY k) AS c FROM {0}",
    "computed": "SELECT k, sum(v + 1) OVER (PARTITION BY k % 2, upper(s)) AS t FROM {0} WHERE v > 0",
    "below groups": "SELECT n, count(*) AS c FROM (SELECT row_number() OVER (PARTITION BY k ORDER BY v) AS n FROM {0}) "
    "AS x GROUP BY n",
    "distinct": "SELECT DISTINCT k, max(v) OVER (PARTITION BY k) AS m FROM {0}",
}
OF_KEYED = {
    "a value": "SELECT k, (SELECT s FROM {0} ORDER BY d DESC, v LIMIT 1) AS top FROM {0}",
    "in a join": "SELECT a.k, b.v FROM {0} AS a JOIN (SELECT k, v FROM {0} ORDER BY v DESC LIMIT 2) AS b ON a.k = b.k",
}
"""Rows of an append stream are answered once, by what stands then."""
_ALONE = "(SELECT id, k, v, s, count(*) OVER (PARTITION BY id) AS n FROM {0})"
UNREAD = {
    "unread below one row": f"SELECT min(k) AS m, count(*) AS c FROM {_ALONE} AS x",
    "unread below groups": f"SELECT k, count(*) AS c FROM {_ALONE} AS x GROUP BY k",
    "unread below distinct": f"SELECT DISTINCT k FROM {_ALONE} AS x",
    "unread below first rows": f"SELECT v FROM {_ALONE} AS x ORDER BY v LIMIT 2",
    "unread below another": f"SELECT v, sum(v) OVER (PARTITION BY k) AS t FROM {_ALONE} AS x",
    "unread below a join": f"SELECT x.v, y.s FROM {_ALONE} AS x LEFT JOIN {{0}} AS y ON x.k = y.k",
    "unread on the right": f"SELECT y.id, x.v FROM {{0}} AS y LEFT JOIN {_ALONE} AS x ON x.k = y.k",
    "unread in a subquery": f"SELECT id FROM {{0}} AS y WHERE k IN (SELECT x.k FROM {_ALONE} AS x)",
    "unread in a union": f"SELECT k FROM {_ALONE} AS x UNION ALL SELECT v FROM {{0}} AS y",
    "unread in a difference": f"SELECT k FROM {_ALONE} AS x EXCEPT SELECT v FROM {{0}} AS y",
    "unread and filtered": f"SELECT k, v FROM {_ALONE} AS x WHERE v > 0",
    "unread of unread": f"SELECT k FROM (SELECT k, max(v) OVER (PARTITION BY id) AS r FROM {_ALONE} AS x) AS y",
    "unread": f"SELECT k FROM {_ALONE} AS x",
}
"""Nobody reads what is counted, by the primary key: the operator goes, and with it what made changes of the upserts."""
TABLES = ("visits", "orders", "moves", "items")

number = st.none() | st.integers(0, 3)
row = st.fixed_dictionaries(
    {
        "k": st.none() | st.integers(0, 2),
        "v": number,
        "s": st.none() | st.sampled_from(["", "a", "é"]),
        "d": st.none() | st.sampled_from([-0.0, 0.0, 1.5, -2.5]),
    }
)
steps = st.lists(st.tuples(st.booleans(), st.integers(0, 3), row, st.booleans()), max_size=10)


def tables_of(name: str) -> tuple[str, ...]:
    """LIMIT BY is of Timeplus alone."""
    return TABLES[:-1] if name in LIMIT_BY else ("orders", "items") if name in (*OF_KEYED, *UNREAD) else TABLES


@pytest.mark.parametrize("name", [*FIRST, *LIMIT_BY, *OVER, *OF_KEYED, *UNREAD])
@settings(max_examples=tries(10))
@given(data=st.data(), taken=steps)
def test_it_is_the_batch_query(name: str, data: st.DataObject, taken: list[tuple[bool, int, Row, bool]]) -> None:
    table = data.draw(st.sampled_from(tables_of(name)))
    query = {**FIRST, **LIMIT_BY, **OVER, **OF_KEYED, **UNREAD}[name]
    world, query = World.of(*DDL), query.format(table)
    world.start(query)
    held: list[Row] = []
    for comes, id_, values, drains in taken:
        made = {"id": id_, **values} if table in ("orders", "items") else values
        if comes or table == "visits":
            world.insert(table, made)
            held += [made] if table == "moves" else []
        elif table != "moves":
            world.delete(table, made)
        elif held:
            world.delete(table, held.pop(id_ % len(held)))
        if drains:
            world.drain()
            assert min(world.net.values(), default=0) >= 0
    world.drain()
    assert world.table() == world.recomputed(query)


NOT_A_NUMBER = {
    "visits": "SELECT k, to_float64(s) AS d FROM visits",
    "items": "SELECT k, CAST(s AS DOUBLE PRECISION) AS d FROM items",
}


@pytest.mark.parametrize("order", ["d", "d DESC", "d NULLS FIRST", "d DESC NULLS LAST"])
@pytest.mark.parametrize("table", NOT_A_NUMBER)
def test_nan_stands_where_the_dialect_has_it(table: str, order: str) -> None:
    """Timeplus: beside NULL; RisingWave: above all numbers."""
    world, texts = World.of(*DDL), ["1.5", "nan", None, "-1", "inf"]
    query = f"SELECT k, row_number() OVER (ORDER BY {order}) AS n FROM ({NOT_A_NUMBER[table]}) AS x"
    world.start(query)
    for number, text in enumerate(texts):
        world.insert(table, {"k": number, "s": text, **({"id": number} if table == "items" else {})})
    world.drain()
    assert world.table() == world.recomputed(query)
    numbers = ["inf", "1.5", "-1"] if "DESC" in order else ["-1", "1.5", "inf"]
    nulls_first = "FIRST" in order or (table == "items" and order == "d DESC")
    if table == "visits":
        wanted = [None, "nan", *numbers] if nulls_first else [*numbers, "nan", None]
    else:
        numbers = ["nan", *numbers] if "DESC" in order else [*numbers, "nan"]
        wanted = [None, *numbers] if nulls_first else [*numbers, None]
    places = {place: texts[int(str(k))] for k, place in world.table()}
    assert [places[place] for place in range(1, 6)] == wanted
