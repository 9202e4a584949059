"""What leaves a query: its key, whether it updates, whether rows must meet before they are written."""

from __future__ import annotations

import pytest

from dovetail.changelog.errors import SqlError, Unsupported
from tests.sql.world import World

DDL = (
    "CREATE MUTABLE STREAM a (k int, m int, v int) PRIMARY KEY (k, m)",
    "CREATE MUTABLE STREAM b (k int, w int) PRIMARY KEY k",
    "CREATE MUTABLE STREAM o (id int, k int, n int) PRIMARY KEY id",
    "CREATE TABLE t (k int, y int)",
    "CREATE STREAM s (k int, n int)",
)


@pytest.fixture(scope="module")
def world() -> World:
    return World.of(*DDL)


@pytest.mark.parametrize(
    ("query", "key", "unique", "exchanged"),
    [
        ("SELECT v, m, k FROM a", ("k", "m"), True, False),
        ("SELECT v, m FROM a", ("__key0", "m"), False, False),
        ("SELECT a.k, a.m, v, w FROM a JOIN b ON a.k = b.k", ("k", "m"), True, False),
        ("SELECT b.k, a.m, v, w FROM a JOIN b ON a.k = b.k", ("k", "m"), True, False),
        ("SELECT a.k, a.m, v, w FROM a LEFT JOIN b ON a.k = b.k", ("k", "m"), True, False),
        ("SELECT b.k, a.m, v, w FROM a LEFT JOIN b ON a.k = b.k", ("__key0",), False, False),
        ("SELECT a.k AS ak, a.m, b.k FROM a FULL JOIN b ON a.k = b.k", ("ak", "m", "k"), True, True),
        ("SELECT v, w FROM a JOIN b ON a.k = b.k", ("__key0",), False, False),
        ("SELECT o.id, n, w FROM o JOIN b ON o.k = b.k", ("id",), True, True),
        ("SELECT o.id, o.k, n, w FROM o LEFT JOIN b ON o.k = b.k", ("id",), True, True),
        ("SELECT o.id, a.k, a.m FROM o JOIN a ON o.k = a.k", ("id", "k", "m"), True, False),
        ("SELECT o.id, a.m FROM o JOIN a ON o.k = a.k", ("__key0",), False, False),
        ("SELECT o1.id, o2.id AS id2 FROM o AS o1 JOIN o AS o2 ON o1.k = o2.k", ("id", "id2"), True, True),
        ("SELECT t.y, w FROM t JOIN b ON t.k = b.k", ("__key0",), False, False),
        ("SELECT t.k, y FROM t", ("k", "y"), False, True),
        ("SELECT s.n FROM s", (), False, False),
        ("SELECT s.n, w FROM s LEFT JOIN b ON s.k = b.k", ("__key0",), False, False),
    ],
)
def test_keys(world: World, query: str, key: tuple[str, ...], unique: bool, exchanged: bool) -> None:
    made = world.plan(query).output
    assert made is not None
    assert (made.key, made.unique, made.exchanged) == (key, unique, exchanged)


def test_hidden_key_columns_are_named_after_their_source(world: World) -> None:
    made = world.plan("SELECT y, n FROM t FULL JOIN o ON t.k + 1 = o.k").output
    assert made is not None
    assert made.key_names == ("k",)
    made = world.plan("SELECT v, w FROM a JOIN b ON a.k = b.k").output
    assert made is not None
    assert made.key_names == ("k",)


@pytest.mark.parametrize(
    ("query", "updating"),
    [
        ("SELECT n FROM s", False),
        ("SELECT s.n, w FROM s JOIN b ON s.k = b.k", False),
        ("SELECT s.n, z.n AS m FROM s JOIN s AS z ON s.k = z.k", False),
        ("SELECT s.n, z.n AS m FROM s LEFT JOIN s AS z ON s.k = z.k", True),
        ("SELECT s.n, y FROM s JOIN t ON s.k = t.k", True),
        ("SELECT w FROM b", True),
    ],
)
def test_updating(world: World, query: str, updating: bool) -> None:
    assert world.plan(query).updating == updating


def test_emit_changelog_marks_rows_that_are_never_taken_back(world: World) -> None:
    assert not world.plan("SELECT n FROM s").dataflow.sink.updating
    assert world.plan("SELECT n FROM s EMIT CHANGELOG").dataflow.sink.updating
    assert world.plan("SELECT n, _tp_delta FROM s").dataflow.sink.columns == ("n",)


def test_the_fingerprint_changes_with_what_the_state_depends_on(world: World) -> None:
    query = "SELECT a.k, v, w FROM a JOIN b ON a.k = b.k"
    print_ = world.plan(query).fingerprint
    assert print_ == World.of(*DDL).plan(query).fingerprint
    for other in (query.replace("v,", ""), query.replace("JOIN", "LEFT JOIN"), query + " WHERE v > 1"):
        assert world.plan(other).fingerprint != print_
    wider = World.of(*(statement.replace("v int", "v int64") for statement in DDL))
    assert wider.plan(query).fingerprint != print_


def test_the_output_is_a_stream_for_others(world: World) -> None:
    stream = world.plan("SELECT a.k, a.m, v, w FROM a JOIN b ON a.k = b.k").stream()
    assert (stream.schema.kind.value, stream.schema.primary_key, stream.trusted) == ("changelog", ("k", "m"), True)
    upserts = world.plan("SELECT a.k, a.m, v FROM a", output_format="upsert").stream()
    assert upserts.schema.kind.value == "upsert"


@pytest.mark.parametrize("kind", ["LEFT", "RIGHT", "FULL"])
def test_upserts_are_refused_where_an_outer_join_leaves_the_key_open(kind: str) -> None:
    world = World.of(
        "CREATE MUTABLE STREAM l (id int, k int) PRIMARY KEY (id)",
        "CREATE MUTABLE STREAM r (id int, k int) PRIMARY KEY (id)",
    )
    query = f"SELECT l.id AS a, r.id AS b FROM l {kind} JOIN r ON l.k = r.k"
    with pytest.raises(Unsupported, match="without NULLs"):
        world.plan(query, output_format="upsert")
    assert world.plan("SELECT l.id FROM l LEFT JOIN r ON l.k = r.id", output_format="upsert").updating


def test_a_column_without_a_form_in_json_is_refused() -> None:
    world = World.of("CREATE STREAM s (a datetime64(3), b datetime64(3))")
    with pytest.raises(SqlError, match="interval, which has no form in JSON"):
        world.plan("SELECT a, INTERVAL 1 DAY AS lag FROM s")


@pytest.mark.parametrize(
    ("view", "message"),
    [
        ("CREATE MATERIALIZED VIEW m INTO s AS SELECT k, v FROM s", "forever"),
        ("CREATE MATERIALIZED VIEW m INTO texts AS SELECT k, v FROM s", "is int32, and the column"),
    ],
)
def test_into_a_stream_that_cannot_take_the_rows_is_refused(view: str, message: str) -> None:
    with pytest.raises(SqlError, match=message):
        World.of("CREATE STREAM s (k int, v int)", "CREATE STREAM texts (k string, v int)", view)
