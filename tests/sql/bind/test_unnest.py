"""UNNEST in FROM: the names of its elements, what it refuses, and the same rows as in a batch."""

from __future__ import annotations

import random

import pytest

from dovetail.changelog.errors import SqlError
from tests.sql.world import Row, World

DDL = (
    "CREATE TABLE t (id INT, a INT[], b VARCHAR[], aa INT[][], c VARCHAR, PRIMARY KEY (id))",
    "CREATE SOURCE s (id INT, a INT[], b VARCHAR[], c VARCHAR)",
    "CREATE TABLE g (k INT, v VARCHAR, PRIMARY KEY (k))",
    "CREATE VIEW elements AS SELECT t.id, u.x FROM t, UNNEST(t.a) AS u(x)",
)


@pytest.fixture(scope="module")
def world() -> World:
    return World.of(*DDL)


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("SELECT * FROM s CROSS JOIN UNNEST(s.a) AS u(x)", "id a b c x"),
        ("SELECT u.* FROM s, UNNEST(s.a, s.b) AS u(x, y)", "x y"),
        ("SELECT x, u.x AS again FROM s, UNNEST(a) u(x)", "x again"),
        ("SELECT x, x.x AS again FROM s JOIN UNNEST(a) AS x ON true", "x again"),
        ("SELECT unnest FROM s, UNNEST(s.a)", "unnest"),
        ("SELECT s.id, u.a FROM s LEFT JOIN LATERAL UNNEST(s.a) AS u(a) ON true", "id a"),
        ("SELECT p FROM s, UNNEST(string_to_array(s.c, ',')) AS u(p)", "p"),
        ("SELECT x, y FROM s, UNNEST(s.a) AS u(x), UNNEST(s.b) AS w(y) WHERE u.x > 1", "x y"),
        ("SELECT *, unnest(a) FROM s", "id a b c unnest"),
        ("SELECT id, UNNEST(a) + 1 AS x, unnest(b) AS y FROM s", "id x y"),
        ("SELECT unnest FROM (SELECT unnest(a) FROM s) AS q", "unnest"),
        ("SELECT x, v FROM s CROSS JOIN UNNEST(s.a) AS u(x) RIGHT JOIN g ON g.k = u.x", "x v"),
        ("SELECT x FROM s JOIN UNNEST(s.a) AS u(x) ON (true)", "x"),
    ],
)
def test_the_columns(world: World, query: str, columns: str) -> None:
    assert world.plan(query).schema.names == columns.split()


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT a FROM s, UNNEST(s.a) AS u(a)", '"a"'),
        ("SELECT x FROM s, UNNEST(s.a) AS s(x)", '"s" stands twice in FROM'),
        ("SELECT x FROM s, UNNEST(s.a, s.b) AS u(x, x)", '"x" stands twice in UNNEST'),
        ("SELECT x FROM s, UNNEST(s.a, s.b) AS u(x)", "names the elements of all its arrays"),
        ("SELECT x FROM s, UNNEST(s.a) AS u(x, y)", "names the elements of all its arrays"),
        ("SELECT id FROM s WHERE generate_series(1, 2) > 1", "generate_series() gives several rows for one"),
        ("SELECT generate_series(1, 2), count(*) FROM s", "generate_series() gives several rows for one"),
        ("SELECT id FROM s WHERE jsonb_each(c) IS NULL", "jsonb_each() gives several rows for one"),
        ("SELECT g FROM s, generate_series(1, 1000000000000) AS g", "gives 1,000,000 rows at most"),
        ("SELECT g FROM s, generate_series(1, 2, 0) AS g", "takes a step other than 0"),
        ("SELECT g FROM s, generate_series(s.c, 2) AS g", "takes integers, numerics or timestamps, not varchar"),
        ("SELECT x FROM s RIGHT JOIN UNNEST(s.a) AS u(x) ON true", "it has none alone"),
        ("SELECT x FROM s FULL JOIN UNNEST(s.a) AS u(x) ON true", "it has none alone"),
        ("SELECT x FROM s JOIN UNNEST(s.a) AS u(x) ON u.x > 1", "UNNEST with a condition"),
        ("SELECT x FROM s JOIN UNNEST(s.a) AS u(x) USING (x)", "it has none alone"),
        ("SELECT x FROM s, UNNEST(s.c) AS u(x)", 'UNNEST takes arrays, and "s.c" is string'),
        ("SELECT x FROM s LEFT ANTI JOIN UNNEST(s.a) AS u(x) ON true", "it has none alone"),
        ("SELECT id FROM s LEFT SEMI JOIN UNNEST(s.a) AS u(x) ON true", "it has none alone"),
        ("SELECT id FROM s SEMI JOIN UNNEST(s.a) AS u(x) ON true", "it has none alone"),
        ("SELECT x, v FROM s, UNNEST(s.a) AS u(x) RIGHT JOIN g ON g.k = u.x", "RIGHT JOIN behind a comma"),
        ("SELECT x, v FROM s, UNNEST(s.a) AS u(x) JOIN g ON g.k = u.x FULL JOIN g AS h ON h.k = u.x", "FULL JOIN"),
        ("SELECT x FROM s LEFT JOIN UNNEST(s.a) AS u(x) ON u.x > 1", "LEFT JOIN UNNEST with a condition"),
        ("SELECT x FROM s, UNNEST(s.a) AS u(x INT)", "the type of their array"),
        ("SELECT x FROM (s CROSS JOIN UNNEST(s.a) AS u(x))", "UNNEST is not allowed in brackets"),
        ("SELECT x FROM table(t) AS t, UNNEST(t.a) AS u(x) JOIN s ON s.id = x", "table(x) stands before UNNEST"),
        ("SELECT x FROM s, UNNEST(s.id) AS u(x)", 'UNNEST takes arrays, and "s.id" is int32'),
        ("SELECT x FROM s, UNNEST(s.nope) AS u(x)", 'no column "nope"'),
        ("SELECT x FROM s, UNNEST(array_agg(s.a)) AS u(x)", "is not allowed in UNNEST"),
        ("SELECT unnest(a), count(*) FROM s GROUP BY unnest(a)", "unnest() gives several rows for one"),
        ("SELECT max(unnest(a)) FROM s", "unnest() gives several rows for one"),
        ("SELECT median(unnest(a)) FROM s", "unnest() beside an aggregate"),
        ("SELECT median(id), unnest(a) FROM s", "unnest() beside an aggregate"),
        ("SELECT unnest(a), row_number() OVER (PARTITION BY id ORDER BY id) FROM s", "several rows for one"),
        ("SELECT id FROM s WHERE unnest(a) > 1", "unnest() gives several rows for one"),
        ("SELECT unnest(unnest(aa)) FROM t", "unnest() gives several rows for one"),
        ("SELECT unnest(id) FROM s", "UNNEST takes arrays"),
    ],
)
def test_what_is_refused(world: World, query: str, message: str) -> None:
    with pytest.raises(SqlError) as fault:
        world.plan(query)
    assert message in fault.value.what
    assert fault.value.fix


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("SELECT * FROM generate_series(1, 3)", 3),
        ("SELECT x FROM UNNEST(ARRAY[1, 2]) AS u(x)", 2),
        ("SELECT generate_series(1, 4) AS g SETTINGS dialect = 'risingwave'", 4),
        ("SELECT g.i FROM table(t) AS t RIGHT JOIN generate_series(1, 5) AS g(i) ON g.i = t.id", 5),
    ],
)
def test_alone_they_are_answered_at_once(query: str, count: int) -> None:
    world = World.of(*DDL)
    world.start(query)
    assert len(world.drain()) == count


def test_rows_without_elements_and_arrays_that_have_ended() -> None:
    world = World.of(*DDL)
    world.start("SELECT id, x, y FROM t LEFT JOIN UNNEST(t.a, t.b) AS u(x, y) ON true")
    world.insert("t", {"id": 1, "a": [5, None], "b": ["p"]})
    world.insert("t", {"id": 2, "a": [], "b": None})
    world.drain()
    assert +world.net == {(1, 5, "p"): 1, (1, None, None): 1, (2, None, None): 1}
    world.insert("t", {"id": 2, "a": [7], "b": None})
    world.delete("t", {"id": 1})
    world.drain()
    assert +world.net == {(2, 7, None): 1}


QUERIES = (
    "SELECT id, x FROM t CROSS JOIN UNNEST(t.a) AS u(x)",
    "SELECT id, u.x FROM t LEFT JOIN UNNEST(t.a) AS u(x) ON true WHERE id > 1",
    "SELECT id, x, y FROM t, UNNEST(t.a, t.b) AS u(x, y)",
    "SELECT id, x, y FROM t LEFT JOIN UNNEST(t.a, t.b) AS u(x, y) ON true",
    "SELECT id, x, y FROM t, UNNEST(t.a) AS u(x), UNNEST(t.b) AS w(y) WHERE x = 1",
    "SELECT id, p FROM t, UNNEST(string_to_array(t.c, ',')) AS u(p)",
    "SELECT u.x, count(*) AS n, sum(id) AS ids FROM t, UNNEST(t.a) AS u(x) GROUP BY u.x",
    "SELECT id, x, v FROM t CROSS JOIN UNNEST(t.a) AS u(x) JOIN g ON g.k = u.x",
    "SELECT id, x, v FROM t JOIN g ON g.k = t.id LEFT JOIN UNNEST(t.a) AS u(x) ON true",
    "SELECT e.id, e.x, f.x AS other FROM elements AS e JOIN elements AS f ON e.id = f.id",
    "SELECT id, unnest(a) AS x, unnest(b) AS y FROM t WHERE id > 0",
    "SELECT id, x FROM t, UNNEST(t.aa) AS u(x)",
    "SELECT id, unnest(aa) AS x FROM t",
    "SELECT id FROM t WHERE id IN (SELECT u.x FROM t AS o, UNNEST(o.a) AS u(x))",
    "SELECT id FROM t WHERE id NOT IN (SELECT coalesce(unnest(a), 9) FROM t AS o)",
    "SELECT id, k, v FROM t CROSS JOIN UNNEST(t.a) AS u(k) JOIN g USING (k)",
    "SELECT k, v FROM t, UNNEST(t.a) AS u(k) LEFT JOIN g USING (k)",
    "SELECT DISTINCT unnest(a) + 1 AS n FROM t",
    "SELECT q.x, count(*) AS n FROM (SELECT unnest(a) AS x FROM t) AS q GROUP BY q.x",
    "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM elements AS e WHERE e.x = t.id)",
    "SELECT id, x, n FROM t, UNNEST(t.a) WITH ORDINALITY AS u(x, n)",
    "SELECT id, x, y, n FROM t LEFT JOIN UNNEST(t.a, t.b) WITH ORDINALITY AS u(x, y, n) ON true",
    "SELECT id, g FROM t, generate_series(0, t.id) AS g",
    "SELECT id, generate_series(t.id, 2) AS g FROM t",
    "SELECT id, p FROM t CROSS JOIN LATERAL regexp_split_to_table(t.c, ',') AS p",
    "SELECT id, g.i, v FROM t, generate_series(1, t.id) AS g(i) JOIN g AS h ON h.k = g.i",
    "SELECT g.i, count(*) AS n FROM t, generate_series(1, t.id) AS g(i) GROUP BY g.i",
    "SELECT id, g.i FROM t JOIN generate_series(1, 2) AS g(i) ON g.i = t.id",
    "SELECT id, g.i FROM t LEFT JOIN generate_series(1, 2) AS g(i) ON g.i = t.id",
)


@pytest.mark.parametrize("query", QUERIES)
def test_the_changes_add_up_to_the_batch_result(query: str) -> None:
    """Elements that repeat, arrays without any, rows that are replaced and deleted."""
    world, chance = World.of(*DDL), random.Random(query)
    world.start(query)
    changes = 0
    for _ in range(6):
        for _ in range(6):
            change(world, chance)
        changes += len(world.drain())
        assert min(world.net.values(), default=0) >= 0
        assert world.table() == world.recomputed(query)
    assert changes


def change(world: World, chance: random.Random) -> None:
    world.insert("g", {"k": chance.randrange(4), "v": chance.choice("pq")})
    key: Row = {"id": chance.randrange(4)}
    if chance.random() < 0.2:
        world.delete("t", key)
        return
    elements = [chance.choice([0, 1, 1, 2, None]) for _ in range(chance.randrange(1, 4))]
    row: Row = {
        "a": chance.choice([None, [], elements]),
        "b": chance.choice([None, [], ["p"], ["p", "q", "p"]]),
        "aa": chance.choice([None, [], [[]], [[1], None, [2, None]], [[0, 1], [1]]]),
        "c": chance.choice([None, "", "1", "1,2"]),
    }
    world.insert("t", key | row)
