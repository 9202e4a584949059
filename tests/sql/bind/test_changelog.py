"""``changelog(x, k)`` of a CTE or plain view: the rows that come out of it, each in the place of the one before."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.sql.world import Row, World

DDL = (
    "CREATE STREAM s (k int, n int, tags array(int))",
    "CREATE STREAM l (k int)",
    "CREATE TABLE a (k INT, n INT) APPEND ONLY",
)
# The first four come in a batch each, the others in one.
ROWS = [(1, 1), (2, 2), (1, 3), (None, 4), (2, -5), (None, 6), (3, -7)]


LAST = {1: 3, 2: -5, None: 6, 3: -7}
LAST_POSITIVE = {1: 3, 2: 2, None: 6}


@pytest.mark.parametrize(
    ("inner", "last"),
    [
        ("SELECT k, n FROM s", LAST),
        ("SELECT k, n FROM a", LAST),
        ("SELECT k, n FROM s WHERE n > 0", LAST_POSITIVE),
        ("SELECT k, n FROM a WHERE n > 0", LAST_POSITIVE),
        ("SELECT k + 1 AS k, n FROM s WHERE n > 0", {2: 3, 3: 2, None: 6}),
        ("SELECT k, n FROM (SELECT * FROM s WHERE n > 0) AS x", LAST_POSITIVE),
        ("SELECT k, n + tag AS n FROM s ARRAY JOIN tags AS tag", {1: 4, 2: -4, None: 7, 3: -6}),
    ],
)
@pytest.mark.parametrize("form", ["WITH c AS ({}) SELECT k, n FROM changelog(c, k)", "view"])
def test_the_last_row_of_each_key_stands(inner: str, last: dict[int | None, int], form: str) -> None:
    query, world = form.format(inner), World.of(*DDL)
    if form == "view":
        query = "SELECT k, n FROM changelog(v, k)"
        world.engine.create(f"CREATE VIEW v AS {inner}")
    world.start(query)
    for name in ("s", "a"):
        rows: list[Row] = [{"k": k, "n": n, **({"tags": [1]} if name == "s" else {})} for k, n in ROWS]
        for row in rows[:4]:
            world.insert(name, row)
            world.drain()
        world.insert(name, *rows[4:])
        world.drain()
    assert world.table() == Counter(last.items())
    assert world.recomputed(query) == Counter(last.items())


def test_history_is_read_and_a_condition_outside_deletes() -> None:
    world = World.of(*DDL)
    world.insert("s", {"k": 1, "n": 1}, {"k": 2, "n": 2})
    world.start("WITH c AS (SELECT k, n FROM s) SELECT k, n FROM changelog(c, k) WHERE n > 1")
    world.drain()
    assert world.table() == Counter({(2, 2): 1})
    world.insert("s", {"k": 1, "n": 3}, {"k": 2, "n": 0})
    world.drain()
    assert world.table() == Counter({(1, 3): 1})


def test_it_is_the_updating_side_of_a_join_and_of_groups() -> None:
    query = "SELECT n, count() FROM (WITH c AS (SELECT k, n FROM s) SELECT n FROM changelog(c, k)) AS x GROUP BY n"
    world = World.of(*DDL)
    world.start(query)
    world.insert("s", {"k": 1, "n": 1}, {"k": 2, "n": 1})
    world.drain()
    world.insert("s", {"k": 1, "n": 2})
    world.drain()
    assert world.table() == Counter({(1, 1): 1, (2, 1): 1})
    joined = World.of(*DDL)
    joined.start(
        "WITH c AS (SELECT k, n FROM s WHERE n > 0) SELECT l.k, c.n FROM l LEFT JOIN changelog(c, k) AS c ON l.k = c.k"
    )
    joined.insert("s", {"k": 1, "n": 1}, {"k": 1, "n": 2}, {"k": 1, "n": -3})
    joined.insert("l", {"k": 1}, {"k": 2})
    joined.drain()
    assert joined.table() == Counter({(1, 2): 1, (2, None): 1})


def test_versions_of_an_asof_join_are_its_rows() -> None:
    world = World.of("CREATE STREAM s (k int, n int)", "CREATE STREAM l (k int, n int)")
    world.start(
        "WITH c AS (SELECT k, n FROM s WHERE n <> 5) "
        "SELECT l.n, c.n AS m FROM l ASOF JOIN changelog(c, k) AS c ON l.k = c.k AND l.n >= c.n"
    )
    world.insert("s", {"k": 1, "n": 2}, {"k": 1, "n": 5}, {"k": 1, "n": 9})
    world.insert("l", {"k": 1, "n": 6})
    world.drain()
    assert world.table() == Counter({(6, 2): 1})


def test_a_cte_comes_before_a_relation_of_its_name() -> None:
    """Also in saying whose dialect the query has."""
    world = World.of(*DDL, "CREATE STREAM c (k int)")
    query = "WITH c AS (SELECT k, n FROM a) SELECT n / 2 AS half FROM changelog(c, k)"
    world.start(query)
    world.insert("a", {"k": 1, "n": 7})
    world.drain()
    assert world.table() == world.recomputed(query) == Counter({(3,): 1})
