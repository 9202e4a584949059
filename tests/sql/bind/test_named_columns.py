"""Names of columns from outside: behind the alias of whatever stands in FROM, of a CTE, of a view."""

from __future__ import annotations

import pytest

from dovetail.changelog.errors import SqlError
from tests.sql.planner import Planner
from tests.sql.world import World

DDL = (
    "CREATE STREAM s (k int, n int, t datetime64(3))",
    "CREATE STREAM o (k int, m int)",
    "CREATE STREAM r (k int, other int)",
    "CREATE TABLE source (k INT, n INT) APPEND ONLY",
    "CREATE MUTABLE STREAM keyed (k int, n int) PRIMARY KEY k",
    "CREATE INDEX by_n ON keyed (n)",
    "CREATE VIEW plain AS SELECT k, n FROM s",
    "CREATE VIEW fixed AS SELECT k, n FROM table(keyed)",
    "CREATE MATERIALIZED VIEW kept AS SELECT k, n FROM s",
    """CREATE DICTIONARY d (k int, n int) PRIMARY KEY k LAYOUT(HASHED()) LIFETIME(300)
       SOURCE(MYSQL(HOST 'db' PORT 3306 USER 'u' PASSWORD 'w' DB 'shop' TABLE 'd'))""",
)
CTES = {
    "cte": "WITH cte AS (SELECT k, n FROM s) ",
    "named": "WITH named (one, two) AS (SELECT k, n FROM s) ",
    "read": "WITH read AS (SELECT k, n FROM table(s)) ",
}
STREAMED = (
    "s",
    "source",
    "keyed",
    "plain",
    "kept",
    "cte",
    "(SELECT k, n FROM s)",
    "((SELECT k, n FROM s))",
    "(s JOIN r ON s.k = r.k)",
    "(table(s) AS y JOIN r ON y.k = r.k)",
    "changelog(s, k)",
    "TUMBLE(s, t, INTERVAL '1' MINUTE)",
    "HOP(changelog(s, k), t, INTERVAL '1' MINUTE, INTERVAL '5' MINUTE)",
)
"""What emits rows, all of them with the columns k and n first."""
LOOKED_UP = (
    "d",
    "keyed FOR SYSTEM_TIME AS OF PROCTIME()",
    "by_n FOR SYSTEM_TIME AS OF PROCTIME()",
)
READ_ONCE = (
    "table(s)",
    "table(keyed)",
    "table(kept)",
    "table(plain)",
    "fixed",
    "read",
    "(SELECT k, n FROM table(s))",
    "(table(s) AS y JOIN table(r) AS z ON y.k = z.k)",
    "TUMBLE(table(s), t, INTERVAL '1' MINUTE)",
)


@pytest.fixture(scope="module")
def world() -> World:
    world = World.of(*DDL)
    rows = [{"k": 1, "n": 3, "t": "2024-01-01 00:00:12"}, {"k": 2, "n": 4, "t": "2024-01-01 00:00:13"}]
    world.insert("s", *rows)
    world.insert("o", {"k": 1, "m": 3}, {"k": 2, "m": 4}, {"k": 3, "m": 3})
    world.insert("r", {"k": 1, "other": 3}, {"k": 2, "other": 4})
    world.insert("source", {"k": 1, "n": 3})
    world.insert("keyed", {"k": 1, "n": 3}, {"k": 2, "n": 5})
    return world


@pytest.mark.parametrize("item", STREAMED)
def test_what_emits_rows_has_the_same_plan_by_other_names(world: World, item: str) -> None:
    own = world.explain(f"{CTES.get(item, '')}SELECT x.n AS b, x.k AS a FROM {item} AS x")
    assert world.explain(f"{CTES.get(item, '')}SELECT x.q AS b, p AS a FROM {item} AS x(p, q)") == own
    assert world.explain(f"{CTES.get(item, '')}SELECT x.n AS b, p AS a FROM {item} AS x(p)") == own


@pytest.mark.parametrize("item", [*STREAMED, *LOOKED_UP, *READ_ONCE])
def test_a_right_side_has_the_same_plan_by_other_names(world: World, item: str) -> None:
    head, joined = f"{CTES.get(item, '')}SELECT l.m, x.n AS b, x.k AS a FROM o AS l", "ON l.k = x.k AND l.m = x.n"
    renamed, on = f"{CTES.get(item, '')}SELECT l.m, q AS b, x.p AS a FROM o AS l", "ON l.k = x.p AND l.m = x.q"
    assert world.explain(f"{renamed} JOIN {item} AS x(p, q) {on}") == world.explain(f"{head} JOIN {item} AS x {joined}")


@pytest.mark.parametrize("item", [*STREAMED, *LOOKED_UP, *READ_ONCE])
def test_a_condition_goes_by_the_names_from_outside(world: World, item: str) -> None:
    joined = world.explain(
        f"{CTES.get(item, '')}SELECT l.m AS a, x.k AS b FROM o AS l JOIN {item} AS x ON l.m = x.n AND l.k = x.k"
    )
    using = world.explain(
        f"{CTES.get(item, '')}SELECT l.m AS a, x.k AS b FROM o AS l JOIN {item} AS x(k, m) USING (m, k)"
    )
    comma = f"{CTES.get(item, '')}SELECT l.m AS a, p AS b FROM o AS l, {item} AS x(p, q) WHERE l.m = q AND l.k = p"
    assert using == joined
    assert world.plan(comma).columns == ("a", "b")


@pytest.mark.parametrize("item", [*STREAMED, *READ_ONCE])
def test_a_bounded_query_has_the_same_rows_by_other_names(world: World, item: str) -> None:
    own = world.over_content(f"{CTES.get(item, '')}SELECT x.n AS b, x.k AS a FROM {item} AS x WHERE x.k < 9")
    assert own or "kept" in item
    assert world.over_content(f"{CTES.get(item, '')}SELECT q AS b, x.p AS a FROM {item} AS x(p, q) WHERE p < 9") == own
    joined = world.over_content(f"{CTES.get(item, '')}SELECT l.k, x.k FROM o AS l JOIN {item} AS x ON l.m = x.n")
    assert joined or "kept" in item
    assert (
        world.over_content(f"{CTES.get(item, '')}SELECT l.k, x.p FROM o AS l JOIN {item} AS x(p, m) USING (m)")
        == joined
    )


@pytest.mark.parametrize("item", [*STREAMED, *READ_ONCE, "(VALUES (1, 2))", "system.dictionaries"])
def test_a_star_has_the_names_from_outside(world: World, item: str) -> None:
    plan = world.plan(f"{CTES.get(item, '')}SELECT * FROM {item} AS x(p, q)")
    own = world.plan(f"{CTES.get(item, '')}SELECT * FROM {item} AS x")
    assert plan.columns == ("p", "q", *own.columns[2:])
    assert plan.schema.types == own.schema.types


@pytest.mark.parametrize("item", [*STREAMED, *READ_ONCE, "(VALUES (1, 2))", "system.dictionaries"])
def test_too_many_names_are_refused_with_what_is_there(world: World, item: str) -> None:
    own = world.plan(f"{CTES.get(item, '')}SELECT * FROM {item} AS x").columns
    more = [f"c{number}" for number in range(len(own) + 1)]
    with pytest.raises(SqlError, match=f"{len(more)} names? for {len(own)} columns?") as refused:
        world.plan(f"{CTES.get(item, '')}SELECT * FROM {item} AS x({', '.join(more)})")
    assert refused.value.fix == f"a name for each of {', '.join(own)}"
    with pytest.raises(SqlError, match="is the name of two columns"):
        world.plan(f"{CTES.get(item, '')}SELECT * FROM {item} AS x(p, P)")


def test_an_alias_names_the_columns_of_a_cte_that_has_names(world: World) -> None:
    assert world.plan(f"{CTES['named']}SELECT * FROM named AS x(p)").columns == ("p", "two")
    assert world.plan("WITH c (p) AS (SELECT k FROM table(s)) SELECT * FROM c AS x(q)").columns == ("q",)


@pytest.mark.parametrize("inner", ["SELECT p FROM c", "WITH e AS (SELECT p FROM c) SELECT p FROM e"])
def test_a_subquery_that_is_read_once_knows_the_names_of_a_cte_around_it(world: World, inner: str) -> None:
    query = f"WITH c (p) AS (SELECT n FROM table(keyed)) SELECT o.k, y.p FROM o JOIN ({inner}) AS y ON o.m = y.p"
    assert world.over_content(query) == {(1, 3): 1, (3, 3): 1}
    assert world.plan(query).columns == ("k", "p")


def test_two_columns_of_one_name_are_refused_however_they_are_named(world: World) -> None:
    for query in ("WITH c (n) AS (SELECT k, n FROM s) SELECT n FROM c", "SELECT n FROM s AS x(n)"):
        with pytest.raises(SqlError, match='"n" is the name of two columns'):
            world.plan(query)


def test_ties_of_an_asof_join_are_broken_by_a_key_of_another_name() -> None:
    world = World.of("CREATE STREAM l (k int, t int)", "CREATE MUTABLE STREAM r (id int, k int, t int) PRIMARY KEY id")
    world.insert("l", {"k": 1, "t": 10})
    world.insert("r", {"id": 8, "k": 1, "t": 9}, {"id": 7, "k": 1, "t": 9})
    query = "SELECT {0} FROM table(l) AS l ASOF JOIN table(r) AS x{1} ON l.k = x.{2} AND l.t >= x.{3}"
    own = world.over_content(query.format("x.id", "", "k", "t"))
    assert own == {(7,): 1}
    assert world.over_content(query.format("x.a", "(a, b, c)", "b", "c")) == own


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("SELECT DISTINCT k+1, /* n */ upper( b )  AS u, k || 'a, b' -- c\n FROM s", ("k+1", "u", "k || 'a, b'")),
        ("SELECT k+1 FROM s UNION ALL SELECT k FROM s", ("k+1",)),
        ("SELECT count( * ) FROM table(s)", ("count( * )",)),
        ("SELECT * FROM v", ("k+1",)),
        ("SELECT * FROM (SELECT k+1 FROM s)", ("k + 1",)),
    ],
)
def test_an_item_of_the_outermost_list_is_called_as_it_is_written(query: str, columns: tuple[str, ...]) -> None:
    planner = Planner.of("CREATE STREAM s (k int, b string)", "CREATE VIEW v AS SELECT k+1 FROM s")
    assert planner.plan(query).columns == columns


@pytest.mark.parametrize(
    ("items", "names"),
    [
        ("s.k, o.k", ["k", "o.k"]),
        ("s.n AS x, o.m AS x", ["x", "x_1"]),
        ("s.n + 1, s.n + 1", ["n + 1", "n + 1_1"]),
        ("*", ["k", "n", "t", "_tp_time", "o.k", "m", "o._tp_time"]),
    ],
)
@pytest.mark.parametrize("sides", ["{} AS s JOIN {} AS o", "table({}) AS s JOIN table({}) AS o"])
@pytest.mark.parametrize(
    "around", ["{}", "CREATE MATERIALIZED VIEW v AS {}", "CREATE VIEW v AS {}", "SELECT * FROM ({}) AS q"]
)
def test_equal_names_are_told_apart_in_one_way(items: str, names: list[str], sides: str, around: str) -> None:
    query = f"SELECT {items} FROM {sides.format('s', 'o')} ON s.k = o.k"
    if around.startswith("CREATE VIEW"):
        made = Planner.of(*DDL[:2], around.format(query)).plan("SELECT * FROM v")
    elif around.startswith("CREATE") and "table(" in sides:
        return
    else:
        made = Planner.of(*DDL[:2]).plan(around.format(query))
    shown = [name.replace("s.n + 1", "n + 1") for name in made.columns]
    assert shown == names
