"""Names, scopes and refusals."""

from __future__ import annotations

import pytest

from dovetail.changelog.errors import SqlError, UnknownName, Unsupported
from dovetail.sql.plan.nodes import Scan
from dovetail.sql.plan.properties import walk
from dovetail.sql.planner import Plan, plan_query
from dovetail.sql.syntax.parse import parse
from dovetail.sql.syntax.statements import CreateView, Select
from tests.sql.world import World, statements

DDL = (
    "CREATE STREAM l (k int, v int, at datetime64(3))",
    "CREATE STREAM r (k int, w string, at datetime64(3))",
    "CREATE MUTABLE STREAM m (k int, x int) PRIMARY KEY k",
    "CREATE TABLE t (k INT, y INT, PRIMARY KEY (k))",
    "CREATE TABLE u (k INT, z INT)",
    "CREATE DICTIONARY d (k int, name string) PRIMARY KEY k SOURCE(MYSQL(HOST 'db' TABLE 'd')) LAYOUT(FLAT())",
)


@pytest.fixture(scope="module")
def world() -> World:
    return World.of(*DDL)


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("SELECT * FROM l", ["k", "v", "at", "_tp_time"]),
        ("SELECT *, _tp_delta FROM m", ["k", "x", "_tp_time"]),
        ("SELECT * FROM t", ["k", "y"]),
        ("SELECT * FROM t JOIN u ON t.k = u.k", ["k", "y", "u.k", "z"]),
        ("SELECT * FROM t AS a JOIN t AS b ON a.k = b.k", ["k", "y", "b.k", "b.y"]),
        ("SELECT b.*, a.y FROM t AS a JOIN t AS b ON a.k = b.k", ["k", "y", "a.y"]),
        ("SELECT * except(v, at) FROM l", ["k", "_tp_time"]),
        ("SELECT l.* except(_tp_time, at), r.w FROM l JOIN r ON l.k = r.k", ["k", "v", "w"]),
        ("SELECT * FROM t JOIN u USING (k)", ["k", "y", "z"]),
        (
            "SELECT * FROM t JOIN (SELECT k AS q, z FROM u) AS v ON t.k = v.q JOIN u USING (z)",
            ["z", "k", "y", "q", "u.k"],
        ),
        (
            "SELECT * FROM t JOIN t AS o USING (k) JOIN (SELECT z AS y, k AS q FROM u) AS v ON t.k = v.q",
            ["k", "y", "o.y", "v.y", "q"],
        ),
        ("SELECT * FROM m JOIN t USING (k)", ["k", "x", "_tp_time", "y"]),
        ("SELECT * FROM l JOIN m USING (k)", ["k", "v", "at", "_tp_time", "x", "m._tp_time"]),
        ("SELECT v + 1, upper('x'), v AS n, l.v, _tp_sn FROM l", ["v + 1", "upper('x')", "n", "v", "_tp_sn"]),
        ("SELECT s.n FROM (SELECT k + 1 AS n FROM l) AS s", ["n"]),
        ("WITH a AS (SELECT k AS q FROM t), b AS (SELECT q FROM a) SELECT * FROM b", ["q"]),
        ("SELECT K, V FROM l", ["K", "V"]),
    ],
)
def test_output_columns(world: World, query: str, columns: list[str]) -> None:
    assert list(world.plan(query).columns) == columns


@pytest.mark.parametrize(
    ("query", "message", "fix"),
    [
        ("SELECT vv FROM l", 'no column "vv"', 'did you mean "v"?'),
        ('SELECT v FROM l WHERE k = "it\'s"', 'no column "it\'s"', "a text is written in single quotes: 'it''s'"),
        ("SELECT v FROM l WHERE k = dhl", 'no column "dhl"', "a text is written in single quotes: 'dhl'"),
        ("SELECT v FROM l WHERE k IN (dhl, ups)", 'no column "dhl"', "a text is written in single quotes: 'dhl'"),
        ('SELECT v FROM table(l) WHERE k = "de"', 'no column "de"', "a text is written in single quotes: 'de'"),
        ("SELECT l.w FROM l", '"l" has no column "w"', "there are:"),
        ("SELECT x.v FROM l", 'no "x" in FROM', "there are: l"),
        ("SELECT k FROM l JOIN r ON l.k = r.k", 'column "k" is ambiguous', "write one of: l.k, r.k"),
        (
            "SELECT k FROM l JOIN r USING (k) JOIN r AS s ON l.k = s.k",
            '"k" is ambiguous',
            "write one of: l.k, r.k, s.k",
        ),
        ("SELECT v FROM ll", 'no stream, view or dictionary "ll"', "did you mean"),
        ("SELECT v FROM l JOIN l ON true", '"l" stands twice', "its own alias"),
        ("SELECT uper(w) FROM r", "there is no function uper()", "did you mean upper(text)?"),
        ("SELECT v FROM changelog(l, kk)", '"l" has no column "kk"', "there are:"),
        ("SELECT v FROM l JOIN r USING (zz)", 'no column "zz"', "there are:"),
        ("SELECT * except(vv) FROM l", 'no column "vv"', 'did you mean "v"?'),
        ("SELECT v FROM l SETTINGS sek_to = 'earliest'", 'no setting "sek_to"', 'did you mean "seek_to"?'),
    ],
)
def test_unknown_names_are_told_with_the_nearest(world: World, query: str, message: str, fix: str) -> None:
    with pytest.raises(UnknownName) as unknown:
        world.plan(query)
    assert (
        message in unknown.value.what.replace("stream or view", "stream, view or dictionary")
        or "ll" in unknown.value.what
    )
    assert fix in unknown.value.fix
    assert unknown.value.where


def test_an_error_gives_line_column_and_clause(world: World) -> None:
    with pytest.raises(UnknownName) as unknown:
        world.plan("SELECT v\nFROM l\nWHERE  vx > 1")
    assert unknown.value.where == "line 3, column 8, in WHERE\n    WHERE  vx > 1\n           ^"


def test_an_error_in_a_later_statement_quotes_its_own_line(world: World) -> None:
    _, second = parse("SELECT v FROM l;\nSELECT w,\n\tvx FROM l")
    assert isinstance(second, Select)
    with pytest.raises(UnknownName) as unknown:
        plan_query("q", second, world.engine.catalog)
    assert unknown.value.where.startswith("line 2, column 8, in SELECT\n    SELECT w,\n           ^")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT v FROM l ORDER BY v", "ORDER BY"),
        ("SELECT v FROM (SELECT v FROM l LIMIT 1) AS x", "LIMIT without ORDER BY"),
        ("SELECT v FROM l LIMIT 1 OFFSET 1", "LIMIT without ORDER BY"),
        ("SELECT v FROM l LIMIT v", "LIMIT takes a whole number"),
        ("SELECT v FROM l LIMIT 1 - 2", "LIMIT takes a whole number"),
        ("SELECT v FROM l LIMIT 'x'", "LIMIT takes a whole number"),
        ("SELECT v FROM l LIMIT (SELECT 1)", "LIMIT takes a whole number"),
        ("SELECT v FROM l EXCEPT SELECT k FROM table(r)", "a part of an EXCEPT of streams is read once"),
        (
            "SELECT v FROM l WHERE EXISTS (SELECT 1 FROM r WHERE r.k = l.v INTERSECT SELECT 1 FROM r)",
            "a part of INTERSECT",
        ),
        ("SELECT median(k) OVER (PARTITION BY k) FROM l", "OVER (..) is not supported"),
        ("SELECT v FROM l WHERE EXISTS (SELECT 1 FROM r WHERE r.k > l.v)", "nested-loop"),
        ("SELECT v FROM l WHERE v > (SELECT k FROM r)", "has one row"),
        ("SELECT v FROM l CROSS JOIN r", "CROSS JOIN of two streams"),
        ("SELECT v FROM l, r", "CROSS JOIN of two streams"),
        ("SELECT v FROM l JOIN r ON l.v > r.k", "needs an equality"),
        ("SELECT v FROM l ANY JOIN r ON l.k = r.k", "ANY JOIN"),
        ("SELECT t.y FROM u JOIN t FOR SYSTEM_TIME AS OF PROCTIME() ON t.y = u.k", "looked up by its primary key (k)"),
        ("SELECT v FROM d JOIN l ON l.k = d.k", '"d" is looked up and emits no rows'),
        ("SELECT v FROM dedup(l, k, 1h)", "dedup forgets no key"),
        ("SELECT x FROM m JOIN l ON m.k = l.k", "INNER JOIN of an updating stream with an append stream"),
        ("SELECT x FROM l FULL JOIN m ON m.k = l.k", "FULL JOIN of an append stream with an updating one"),
        ("SELECT v FROM l ASOF JOIN r ON l.k = r.k", "exactly one inequality"),
        (
            "SELECT v FROM table(l) AS a RIGHT JOIN m ON a.k = m.k WHERE 1 = 1 AND _tp_delta > 0",
            "_tp_delta is the sign",
        ),
        ("SELECT v FROM m RIGHT JOIN table(l) AS a ON a.k = m.k", "keeps the rows of the stream"),
        ("SELECT y FROM t SETTINGS output = 'append'", "no append form"),
        ("SELECT y FROM t JOIN u ON t.k = u.k SETTINGS output_format = 'upsert'", "no two rows share"),
        ("SELECT x FROM changelog(m, x)", "a changelog already"),
        ("SELECT v FROM l EMIT PERIODIC 1s", "EMIT PERIODIC is for aggregates"),
    ],
)
def test_what_is_not_supported_is_refused_with_a_way_on(world: World, query: str, message: str) -> None:
    with pytest.raises(Unsupported) as refused:
        world.plan(query)
    assert message in refused.value.what
    assert refused.value.fix


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT v FROM l JOIN r ON l.k = r.w", "k (int32) cannot be compared with w (string)"),
        ("SELECT v + at FROM l", "takes numbers, not time"),
        ("SELECT v FROM l ASOF JOIN r ON l.k = r.k AND upper('x') > r.w", "inequality"),
        ("SELECT v FROM l JOIN r ON l.k = r.k AND date_diff_within(l.at, r.at)", "one positive interval"),
        ("SELECT v FROM l SETTINGS keep_versions = 'many'", "keep_versions cannot be"),
        ("SELECT v FROM l SETTINGS output = 'table'", "output cannot be"),
        ("SELECT v FROM l SETTINGS seek_to = 'yesterday'", "seek_to cannot be"),
    ],
)
def test_what_does_not_fit_is_an_error(world: World, query: str, message: str) -> None:
    with pytest.raises(SqlError) as fault:
        world.plan(query)
    assert message in fault.value.what


def _scans(plan: Plan) -> list[Scan]:
    assert plan.output is not None
    return [node for node in walk(plan.output) if isinstance(node, Scan)]


def test_only_columns_that_are_read_travel(world: World) -> None:
    plan = world.plan("SELECT y FROM t JOIN u ON t.k = u.k WHERE u.z > 1")
    assert [[name for _, name in scan.columns] for scan in _scans(plan)] == [["k", "y"], ["k", "z"]]


@pytest.mark.parametrize(
    ("query", "starts"),
    [
        ("SELECT v FROM l", [(True, "")]),
        ("SELECT v FROM l WHERE _tp_time > '2026-01-01'", [(False, "")]),
        ("SELECT v FROM l WHERE _tp_time > earliest_ts()", [(False, "")]),
        ("SELECT v FROM l SETTINGS seek_to = 'earliest'", [(False, "")]),
        ("SELECT v FROM l SETTINGS seek_to = '2026-01-01'", [(False, "1767225600000")]),
        ("SELECT v FROM l SETTINGS seek_to = '-2h'", [(False, "-7200000")]),
        ("SELECT v FROM l SETTINGS seek_to = '5,3,11'", [(False, "5,3,11")]),
        ("SELECT v FROM l JOIN m ON l.k = m.k", [(True, ""), (False, "")]),
        ("SELECT v FROM l JOIN changelog(r, k) AS c ON l.k = c.k", [(True, ""), (False, "")]),
        ("SELECT z FROM u", [(False, "")]),
    ],
)
def test_where_reading_begins(world: World, query: str, starts: list[tuple[bool, str]]) -> None:
    assert [(scan.latest, scan.seek) for scan in _scans(world.plan(query))] == starts


def test_the_buffer_is_limited_where_nothing_else_bounds_it(world: World) -> None:
    def limit(query: str) -> int | None:
        operator = world.plan(query).dataflow.nodes[-1].operator
        return getattr(operator, "max_buffered_bytes", None)

    assert limit("SELECT v FROM l JOIN r ON l.k = r.k") == 524_288_000
    assert limit("SELECT v FROM l JOIN m ON l.k = m.k") is None
    assert limit("SELECT y FROM t JOIN u ON t.k = u.k") is None
    assert limit("SELECT y FROM t JOIN u ON t.k = u.k SETTINGS join_max_buffered_bytes = 4") == 4


@pytest.mark.parametrize(
    ("query", "limit"),
    [
        ("SELECT v FROM l LIMIT 3", 3),
        ("SELECT y FROM t FETCH FIRST 2 ROWS ONLY", 2),
        ("SELECT y FROM t UNION ALL SELECT z FROM u LIMIT 4", 4),
        ("SELECT v FROM l UNION ALL SELECT v FROM l LIMIT 0", 0),
        ("SELECT v, count() FROM l GROUP BY v LIMIT 5 EMIT CHANGELOG", 5),
        ("SELECT y FROM t ORDER BY y LIMIT 3", None),
        ("SELECT v FROM l LIMIT 3 BY v", None),
        ("SELECT v FROM l", None),
    ],
)
def test_a_select_ends_after_so_many_changes(world: World, query: str, limit: int | None) -> None:
    """Unless LIMIT says which rows stand."""
    plan = world.plan(query)
    assert plan.limit == limit
    assert plan.explain().startswith(f"Limit {limit} ") is (limit is not None)


def test_a_view_does_not_end(world: World) -> None:
    (view,) = statements("CREATE MATERIALIZED VIEW v AS SELECT v FROM l LIMIT 3")
    with pytest.raises(Unsupported, match="LIMIT without ORDER BY") as refused:
        plan_query("v", view, world.engine.catalog)  # type: ignore[arg-type]
    assert "a SELECT by itself" in refused.value.fix


def test_a_view_goes_into_a_stream_that_takes_its_rows() -> None:
    world = World.of(*DDL, "CREATE STREAM rows_only (k int)", "CREATE STREAM kept (k int) SETTINGS mode='changelog'")

    def planned(text: str) -> Plan:
        (view,) = statements(text)
        assert isinstance(view, CreateView)
        return plan_query(view.name, view, world.engine.catalog)

    with pytest.raises(Unsupported, match="append-only"):
        planned("CREATE MATERIALIZED VIEW v INTO rows_only AS SELECT t.k FROM t")
    with pytest.raises(SqlError, match='has no column "y"'):
        planned("CREATE MATERIALIZED VIEW v INTO kept AS SELECT t.y FROM t")
    plan = planned("CREATE MATERIALIZED VIEW v INTO kept AS SELECT t.k FROM t")
    assert plan.output is not None
    assert plan.output.topic == "kept"
    plan = planned("CREATE MATERIALIZED VIEW v INTO m AS SELECT u.k, u.z AS x FROM u JOIN t ON t.k = u.z")
    assert plan.output is not None
    assert (plan.output.key, plan.output.exchanged) == (("k",), True)
    with pytest.raises(SqlError, match="primary key"):
        planned("CREATE MATERIALIZED VIEW v INTO m AS SELECT u.z AS x FROM u")
