"""ARRAY JOIN: the rows of a row, the names of elements, and the same rows as in a batch."""

from __future__ import annotations

import json
import pickle
import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from dovetail.changelog.changes import DELTA
from dovetail.changelog.errors import SqlError
from dovetail.changelog.schema import ARRIVAL
from dovetail.sql.plan.nodes import ArrayJoin
from dovetail.sql.plan.properties import walk
from dovetail.sql.transforms.array_join_step import ArrayJoinStep
from tests.sql.world import World

DDL = (
    "CREATE STREAM s (id int, a array(int), b array(string), t string)",
    "CREATE MUTABLE STREAM m (id int, a array(int), b array(string), t string) PRIMARY KEY id",
    "CREATE STREAM log (id int, a array(int), b array(string), t string) SETTINGS mode='changelog'",
    "CREATE MUTABLE STREAM g (k int, v string) PRIMARY KEY k",
    "CREATE STREAM nested (id int, aa array(array(int)), pairs array(tuple(x int, y string)))",
    "CREATE STREAM array (k int)",
    "CREATE TABLE r (id INT, a INT[])",
    "CREATE VIEW elements AS SELECT id, x FROM m ARRAY JOIN a AS x",
)
TIME = "2026-01-01 00:00:00"
"""One for all: a retraction of a row without a key has to equal its insertion."""


@pytest.fixture(scope="module")
def world() -> World:
    return World.of(*DDL)


def the_array_join(world: World, query: str) -> ArrayJoin:
    made = world.plan(query).output
    assert made is not None
    return next(node for node in walk(made) if isinstance(node, ArrayJoin))


# -- the rows of a row --

INT = pa.int32()


def step(*arrays: tuple[str, str], kinds: tuple[pa.DataType, ...], left: bool = False) -> ArrayJoinStep:
    made: ArrayJoinStep = pickle.loads(pickle.dumps(ArrayJoinStep(arrays, kinds, left, ("id",))))
    return made


def rows_of(a: list[Any], kind: pa.DataType = INT, deltas: list[int] | None = None) -> pa.Table:
    count = len(a)
    return pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "a": pa.array(a, pa.list_(kind)),
            ARRIVAL: pa.array(range(100, 100 + count), pa.int64()),
            DELTA: pa.array(deltas or [1] * count, pa.int32()),
        }
    )


@pytest.mark.parametrize(
    ("array", "inner", "left"),
    [
        ([5, 6], [5, 6], [5, 6]),
        ([5, None, 5], [5, None, 5], [5, None, 5]),
        ([None], [None], [None]),
        ([], [], [0]),
        (None, [], [0]),
    ],
)
def test_a_row_for_each_element(array: list[int | None] | None, inner: list[Any], left: list[Any]) -> None:
    for outer, expected in ((False, inner), (True, left)):
        made = step(("x", '"a"'), kinds=(pa.int32(),), left=outer)(rows_of([array], deltas=[-1]))
        assert made.column_names == ["id", "x", ARRIVAL, DELTA]
        assert made["x"].to_pylist() == expected
        assert made[DELTA].to_pylist() == [-1] * len(expected)
        assert made[ARRIVAL].to_pylist() == [100] * len(expected)


@pytest.mark.parametrize(
    ("kind", "default"),
    [
        (pa.string(), ""),
        (pa.float64(), 0.0),
        (pa.bool_(), False),
        (pa.binary(), b""),
        (pa.list_(pa.int32()), []),
        (pa.struct([("x", pa.int32())]), None),
    ],
)
def test_a_row_without_elements_has_the_default_of_their_type(kind: pa.DataType, default: object) -> None:
    made = step(("x", '"a"'), kinds=(kind,), left=True)(rows_of([[], None, [None]], kind))
    assert made.schema.field("x").type == kind
    assert made["x"].to_pylist() == [default, default, None]


def test_the_shorter_array_is_padded() -> None:
    both = step(("x", '"a"'), ("y", 'range("id")'), kinds=(pa.int32(), pa.int64()), left=True)
    made = both(rows_of([[7, 8], [7, 8], [], [7], None]))
    assert list(zip(*(made[name].to_pylist() for name in ("id", "x", "y")), strict=True)) == [
        *((0, 7, None), (0, 8, None), (1, 7, 0), (1, 8, None), (2, None, 0), (2, None, 1)),
        *((3, 7, 0), (3, None, 1), (3, None, 2), (4, None, 0), (4, None, 1), (4, None, 2), (4, None, 3)),
    ]


def test_an_array_of_arrays_gives_arrays() -> None:
    kind = pa.list_(pa.int32())
    made = step(("x", '"a"'), kinds=(kind,))(rows_of([[[1, 2], None, []], []], kind))
    assert made["x"].to_pylist() == [[1, 2], None, []]


def test_any_cutting_of_the_rows_gives_the_same() -> None:
    chance = random.Random(5)
    lists = [chance.choice([None, [], [chance.randrange(9) for _ in range(chance.randrange(4))]]) for _ in range(60)]
    rows = rows_of(lists)
    whole = {left: step(("x", '"a"'), ("y", '"a"[2:]'), kinds=(pa.int32(),) * 2, left=left) for left in (False, True)}
    for cut in (0, 1, 17, 59, 60):
        for made in whole.values():
            parts = pa.concat_tables([made(rows.slice(0, cut)), made(rows.slice(cut))])
            assert parts.to_pylist() == made(rows).to_pylist()
            assert made(pa.concat_tables([rows.slice(0, cut), rows.slice(cut)])).to_pylist() == made(rows).to_pylist()


# -- names --


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("SELECT * FROM s ARRAY JOIN a AS x", "id a b t _tp_time"),
        ("SELECT *, x FROM s ARRAY JOIN a AS x", "id a b t _tp_time x"),
        ("SELECT s.*, x FROM s INNER ARRAY JOIN a x", "id a b t _tp_time x"),
        ("SELECT x, y FROM nested ARRAY JOIN aa AS x ARRAY JOIN x AS y", "x y"),
        ("SELECT p.x, p.y FROM nested ARRAY JOIN pairs AS p", "x y"),
        ("SELECT part FROM s ARRAY JOIN split_by_char(',', t) AS part", "part"),
        ("SELECT x, v FROM s ARRAY JOIN a AS x LEFT JOIN g ON g.k = x", "x v"),
        ("SELECT x, v FROM s, g ARRAY JOIN a AS x WHERE s.id = g.k", "x v"),
        ("SELECT k FROM array", "k"),
        ("SELECT l.k FROM array AS l JOIN array ON l.k = array.k", "k"),
    ],
)
def test_the_columns(world: World, query: str, columns: str) -> None:
    assert world.plan(query).columns == tuple(columns.split())


def test_an_element_stands_in_the_place_of_its_array(world: World) -> None:
    types = _types(world, "SELECT *, s.b AS c FROM s ARRAY JOIN a, b")
    assert (types["a"], types["b"], types["c"]) == (pa.int32(), pa.string(), pa.string())


def test_an_alias_goes_before_a_column(world: World) -> None:
    types = _types(world, "SELECT a AS x, s.a AS y, t AS z FROM s ARRAY JOIN a AS t, array_map(e -> e + 1, a) AS a")
    assert types == {"x": pa.int64(), "y": pa.list_(pa.int32()), "z": pa.int32()}


def _types(world: World, query: str) -> dict[str, pa.DataType]:
    made = world.plan(query).output
    assert made is not None
    return {field.name: field.type for field in made.schema}


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT id FROM s ARRAY JOIN", "something is missing between JOIN and the end"),
        ("SELECT id FROM s RIGHT ARRAY JOIN a", "there is no RIGHT ARRAY JOIN"),
        ("SELECT id FROM s ASOF ARRAY JOIN a", "there is no ASOF ARRAY JOIN"),
        ("SELECT id FROM s ARRAY JOIN a AS x ON x = 1", "unexpected ON"),
        ("SELECT id FROM r ARRAY JOIN a AS x", "ARRAY JOIN is for streams"),
        ("SELECT id FROM s ARRAY JOIN t", 'ARRAY JOIN takes arrays, and "t" is string'),
        ("SELECT id FROM s ARRAY JOIN nope", 'no column "nope"'),
        ("SELECT id FROM s ARRAY JOIN [1, 2]", "have no name"),
        ("SELECT id FROM s ARRAY JOIN a AS x, b AS x", '"x" stands twice in ARRAY JOIN'),
        ("SELECT id FROM s ARRAY JOIN a AS x ARRAY JOIN b AS x", 'there is a column "x" already'),
        ("SELECT id FROM s ARRAY JOIN array_agg(a) AS x", "is not allowed in ARRAY JOIN"),
        ("SELECT x FROM (s ARRAY JOIN a AS x) JOIN g ON g.k = x", "is not allowed in brackets"),
        ("SELECT x FROM (table(s) ARRAY JOIN a AS x) JOIN table(g) AS g ON g.k = x", "is not allowed in brackets"),
        ("SELECT x FROM table(s) ARRAY JOIN a AS x JOIN g ON g.k = x", "table(x) stands before ARRAY JOIN"),
        ("SELECT array_join(a) FROM s", "array_join() gives several rows for one"),
    ],
)
def test_what_is_refused(world: World, query: str, message: str) -> None:
    with pytest.raises(SqlError) as fault:
        world.plan(query)
    assert message in fault.value.what


# -- the plan --


def test_conditions_on_the_row_pass_below_and_those_on_elements_stay(world: World) -> None:
    plan = world.explain("SELECT id FROM s LEFT ARRAY JOIN a AS x WHERE id > 1 AND x > 2 AND t = 'u'").splitlines()
    assert [line.strip(" └─").split("  ")[0] for line in plan[1:]] == ["Map", "ArrayJoin left", "scan s"]
    assert "where array.x > 2" in plan[1]
    assert "where (s.id > 1) AND (s.t = 'u')" in plan[3]


def test_an_array_is_not_repeated_for_its_elements(world: World) -> None:
    assert the_array_join(world, "SELECT id, x FROM s ARRAY JOIN a AS x").schema.names == ["s.id", "array.x"]
    assert the_array_join(world, "SELECT a FROM s ARRAY JOIN a AS x").schema.names == ["s.a", "array.x"]


def test_the_rows_of_a_row_share_its_key(world: World) -> None:
    node = the_array_join(world, "SELECT id, x FROM m ARRAY JOIN a AS x")
    assert node.input.unique_keys == [("m.id",)]
    assert node.unique_keys == []


def test_event_times_pass(world: World) -> None:
    query = "SELECT x, window_start, count() AS n FROM tumble(s, 10s) ARRAY JOIN a AS x GROUP BY x, window_start"
    plan = world.explain(f"{query} EMIT AFTER WINDOW CLOSE")
    assert "every row once, when its window is closed" in plan
    assert "watermark=_tp_time-10 s" in plan


# -- as in a batch --

QUERIES = (
    "SELECT id, x FROM {} ARRAY JOIN a AS x",
    "SELECT id, x FROM {} LEFT ARRAY JOIN a AS x",
    "SELECT id, x, y FROM {} ARRAY JOIN a AS x, b AS y",
    "SELECT id, x, y FROM {} LEFT ARRAY JOIN a AS x, b AS y WHERE id > 1",
    "SELECT id, a, num FROM {} ARRAY JOIN a, array_enumerate(a) AS num WHERE a <> 2",
    "SELECT id, part FROM {} ARRAY JOIN split_by_char(',', t) AS part",
    "SELECT id, n FROM {} LEFT ARRAY JOIN array_map(p -> to_int(p) + id, split_by_char(',', t)) AS n",
    "SELECT id, x, y FROM {} ARRAY JOIN b AS y LEFT ARRAY JOIN array_concat(a, [id]) AS x",
    "SELECT x, count() AS n, sum(id) AS ids FROM {} ARRAY JOIN a AS x GROUP BY x",
    "SELECT y, max(x) AS greatest FROM (SELECT x, y FROM {} ARRAY JOIN a AS x, b AS y) AS e GROUP BY y",
)
UPDATING = (
    "SELECT id, x, v FROM {} ARRAY JOIN a AS x JOIN g ON g.k = x",
    "SELECT id, x, v FROM {} JOIN g ON g.k = id LEFT ARRAY JOIN a AS x",
    "SELECT id, x, g.v, h.v AS w FROM {} LEFT ARRAY JOIN a AS x LEFT JOIN g ON g.k = x LEFT JOIN g AS h ON h.k = id",
    "SELECT g.k, v, x FROM g LEFT JOIN (SELECT id AS k, x FROM {} ARRAY JOIN a AS x) AS e USING (k)",
    "SELECT k, v, x FROM (SELECT id AS k, a FROM {}) AS e ARRAY JOIN a AS x FULL JOIN g USING (k)",
    "SELECT l.x, count() AS n FROM elements AS l JOIN {} AS r ON l.id = r.id ARRAY JOIN r.b AS y GROUP BY l.x",
)
CASES = [query.format(table) for table in ("s", "m", "log") for query in QUERIES]
CASES += [query.format(table) for table in ("m", "log") for query in UPDATING]


@pytest.mark.parametrize("query", CASES)
def test_the_changes_add_up_to_the_batch_result(query: str) -> None:
    """Elements that repeat, arrays without any, rows that are replaced and deleted."""
    world, chance = World.of(*DDL), random.Random(len(query))
    world.start(query)
    present: list[dict[str, object]] = []
    changes = 0
    for _ in range(4):
        for _ in range(6):
            _change(world, chance, query, present)
        changes += len(world.drain())
        assert world.table() == world.recomputed(query)
    assert changes


def _change(world: World, chance: random.Random, query: str, present: list[dict[str, object]]) -> None:
    """In all tables that the query reads."""
    if "g " in query:
        world.insert("g", {"k": chance.randrange(4), "v": chance.choice("pq")})
    row = {
        "_tp_time": TIME,
        "id": chance.randrange(4),
        "a": chance.choice([None, [], [chance.choice([0, 1, 1, 2, None]) for _ in range(chance.randrange(1, 4))]]),
        "b": chance.choice([None, [], ["p"], ["p", "q", "p"]]),
        "t": chance.choice([None, "", "1", "1,2", "1,no,1"]),
    }
    if " m " in query or "elements" in query:
        world.insert("m", row)
    if " s " in query:
        world.insert("s", row)
    if " log " in query:
        if present and chance.random() < 0.4:
            world.delete("log", present.pop(chance.randrange(len(present))))
        else:
            present.append(row)
            world.insert("log", row)


def test_an_update_takes_back_each_row_that_it_changes() -> None:
    world = World.of(*DDL)
    world.start("SELECT id, x FROM m ARRAY JOIN a AS x")
    world.insert("m", {"id": 1, "a": [5, 5, 6]})
    assert _net(world) == {(1, 5): 2, (1, 6): 1}
    world.insert("m", {"id": 1, "a": [6, 5]})
    assert _net(world) == {(1, 5): -1}
    world.delete("m", {"id": 1, "a": [6, 5]})
    assert _net(world) == {(1, 5): -1, (1, 6): -1}


def _net(world: World) -> dict[tuple[object, ...], int]:
    found: Counter[tuple[object, ...]] = Counter()
    for row, delta in world.drain():
        found[tuple(row.values())] += delta
    return dict(found)


def test_an_array_that_cannot_be_computed_is_none() -> None:
    world = World.of(*DDL)
    query = "SELECT id, x FROM s LEFT ARRAY JOIN cast(t, 'array(int)') AS x"
    world.start(query)
    world.insert("s", {"id": 1, "t": "[1, 2]"}, {"id": 2, "t": "no"})
    world.drain()
    assert dict(world.table()) == {(1, 1): 1, (1, 2): 1, (2, 0): 1}
    assert world.table() == world.recomputed(query)


def test_elements_of_json() -> None:
    world = World.of(*DDL)
    query = "SELECT id, item:name AS name FROM s ARRAY JOIN json_extract_array_raw(t) AS item"
    world.start(query)
    world.insert("s", {"id": 1, "t": json.dumps([{"name": "n"}, {"name": "o"}])}, {"id": 2, "t": "{}"})
    world.drain()
    assert dict(world.table()) == {(1, "n"): 1, (1, "o"): 1}
    assert world.table() == world.recomputed(query)


@pytest.mark.parametrize(
    ("kind", "default"),
    [
        *(("uint8", 0), ("int64", 0), ("float32", 0.0), ("decimal(10, 2)", 0.0), ("bool", False), ("string", "")),
        *(("date", "1970-01-01"), ("datetime64(3)", "1970-01-01 00:00:00.000")),
        *(("datetime64(6)", "1970-01-01 00:00:00.000000"), ("uuid", ""), ("tuple(x int, y string)", None)),
    ],
)
def test_the_default_of_a_type_is_that_of_a_batch(kind: str, default: object) -> None:
    world = World.of(f"CREATE STREAM typed (id int, a array({kind}))")
    query = "SELECT id, x FROM typed LEFT ARRAY JOIN a AS x"
    world.start(query)
    world.insert("typed", {"id": 1, "a": []}, {"id": 2}, {"id": 3, "a": [None]})
    world.drain()
    assert world.table() == world.recomputed(query)
    assert dict(world.table()) == {(1, default): 1, (2, default): 1, (3, None): 1}


def test_a_lookup_for_each_element_is_taken_back_as_it_was() -> None:
    world = World.of(*DDL, "CREATE TABLE names (id INT PRIMARY KEY, name VARCHAR)")
    lookup = "LEFT JOIN names FOR SYSTEM_TIME AS OF PROCTIME() ON names.id = x"
    world.start(f"SELECT m.id, x, name FROM m ARRAY JOIN a AS x {lookup}")
    world.insert("names", {"id": 1, "name": "one"})
    world.drain()
    world.insert("m", {"id": 7, "a": [1, 1, 2]})
    assert _net(world) == {(7, 1, "one"): 2, (7, 2, None): 1}
    world.insert("names", {"id": 1, "name": "uno"})
    assert _net(world) == {}
    world.insert("m", {"id": 7, "a": [1, 3]})
    assert _net(world) == {(7, 1, "one"): -1, (7, 2, None): -1, (7, 3, None): 1}


def test_the_elements_of_what_was_looked_up() -> None:
    world = World.of(*DDL, "CREATE TABLE names (id INT PRIMARY KEY, name VARCHAR)")
    lookup = "FROM m JOIN names FOR SYSTEM_TIME AS OF PROCTIME() ON names.id = m.id"
    world.start(f"SELECT m.id, part, v {lookup} ARRAY JOIN split_by_char(' ', name) AS part JOIN g ON g.v = part")
    world.insert("names", {"id": 7, "name": "p q p"})
    world.insert("g", {"k": 1, "v": "p"}, {"k": 2, "v": "r"})
    world.drain()
    world.insert("m", {"id": 7})
    assert _net(world) == {(7, "p", "p"): 2}
    world.delete("m", {"id": 7})
    assert _net(world) == {(7, "p", "p"): -2}


def test_each_record_of_a_keyed_stream_is_a_version_of_its_elements() -> None:
    """As without ARRAY JOIN: an update adds to the versions that ASOF chooses from."""
    world = World.of(
        "CREATE STREAM deals (tag string, at datetime64(3))",
        "CREATE MUTABLE STREAM rates (id int, since datetime64(3), tags array(string), rate int) PRIMARY KEY id",
    )
    tagged = "(SELECT since, tag, rate FROM rates ARRAY JOIN tags AS tag) AS r"
    world.start(f"SELECT deals.tag, rate FROM deals ASOF JOIN {tagged} ON deals.tag = r.tag AND deals.at >= r.since")
    for second, tags in ((1, ["p", "q"]), (3, ["p"])):
        world.insert("rates", {"id": 1, "since": f"2026-01-01 00:00:0{second}", "tags": tags, "rate": second})
    world.drain()
    for second in (2, 4):
        for tag in "pq":
            world.insert("deals", {"tag": tag, "at": f"2026-01-01 00:00:0{second}"})
    assert _net(world) == {("p", 1): 1, ("p", 3): 1, ("q", 1): 2}
