"""What is said of operators that other views keep; the views that are proposed are what they are said to be."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.sql.across_views.kept_elsewhere import KeptElsewhere, OtherView, kept_elsewhere, subplans_of
from dovetail.sql.plan.nodes import Node
from dovetail.sql.plan.state.shapes import shape
from dovetail.sql.planner import Plan, plan_query
from dovetail.sql.rules.kept_once.subplans import together
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateView
from tests.sql.compile.changing import TABLES, assert_adds_up
from tests.sql.compile.test_subplans_run import RANDOM
from tests.sql.planner import Planner

DDL = (
    *TABLES,
    "CREATE TABLE orders (id INT, customer INT, amount INT, PRIMARY KEY (id))",
    "CREATE TABLE users (id INT, name VARCHAR, city VARCHAR, PRIMARY KEY (id))",
    "CREATE STREAM l (id int, k int, v string)",
    "CREATE STREAM r (id int, k int, v string)",
    'CREATE TABLE "My Table" ("The Key" INT, "select" INT, PRIMARY KEY ("The Key"))',
)
JOIN = "FROM orders AS o JOIN users AS u ON o.customer = u.id"
BY_CITY = f"SELECT u.city AS city, sum(o.amount) AS total {JOIN} GROUP BY u.city"
BY_NAME = "SELECT x.name AS name, count(*) AS n FROM orders AS y JOIN users AS x ON y.customer = x.id GROUP BY x.name"
WHOLE = f"SELECT o.id AS nr, o.amount AS amount, u.name AS called, u.city AS place {JOIN}"
GROUPS = "SELECT customer, {} FROM orders GROUP BY customer"
PADDED = "FROM l LEFT JOIN r ON l.k = r.k AND l.v < r.v"
FROM_THE_BEGINNING = "SETTINGS seek_to = 'earliest'"


def found(views: dict[str, str], asked: str, rows: int = 0, into: str = "") -> list[KeptElsewhere]:
    """What is said of the view ``asked`` in a world of ``views``, each operator of which holds ``rows``."""
    planner = Planner.of(*DDL)
    plans = {name: _planned(planner, name, query) for name, query in views.items()}
    others = [_other(name, plan, rows, name == into) for name, plan in plans.items() if name != asked]
    return kept_elsewhere(plans[asked], others, planner.catalog)


def _planned(planner: Planner, name: str, query: str) -> Plan:
    text = f"CREATE MATERIALIZED VIEW {name} AS {query}"
    planner.create(text)
    statement = parse_one(text)
    assert isinstance(statement, CreateView)
    return plan_query(name, statement, planner.catalog)


def _other(name: str, plan: Plan, rows: int, into: bool) -> OtherView:
    held: list[tuple[Node, int]] = [(node, rows) for one in plan.fragments for node in subplans_of(one.output)]
    return OtherView(name, plan, tuple(held), into)


def test_a_view_that_is_the_join() -> None:
    (one,) = found({"a": BY_CITY, "b": BY_NAME, "enriched": WHOLE}, "a", rows=1000)
    assert (one.read, one.by, one.statement) == ("enriched", ("enriched",), "")
    assert one.readable == (
        "the join of orders and users is the view enriched (2,000 rows held): FROM enriched would read it instead of "
        "keeping it again"
    )
    assert one.short("a") == "the join of orders and users is the view enriched already: EXPLAIN a says more"


def test_views_that_have_it_inside() -> None:
    (one,) = found({"a": BY_CITY, "b": BY_NAME, "c": BY_NAME.replace("count(*)", "max(y.id)")}, "a")
    assert (one.by, one.read) == (("b", "c"), "")
    assert one.statement == (
        "CREATE MATERIALIZED VIEW orders_users AS SELECT o.id AS id, o.amount AS amount, u.city AS city, "
        "u.name AS name FROM orders AS o INNER JOIN users AS u ON o.customer = u.id"
    )
    assert one.readable.endswith(f"it would be kept once\n{one.statement}")
    assert "kept by the views b and c too: EXPLAIN a" in one.short("a")


def test_others_could_read_the_new_view() -> None:
    (one,) = found({"a": BY_CITY, "b": BY_NAME, "enriched": WHOLE}, "enriched")
    assert one.own
    assert one.by == ("a", "b")
    assert "created anew, FROM this view, they would read it" in one.readable


@pytest.mark.parametrize(
    "lacking",
    [
        f"SELECT o.id AS id, u.name AS name {JOIN}",
        f"SELECT o.id AS id, o.amount + 1 AS amount, u.city AS city {JOIN}",
        f"{WHOLE} WHERE o.amount + u.id > 1",
    ],
)
def test_a_view_without_the_columns_or_the_rows_is_not_read_instead(lacking: str) -> None:
    for one in found({"a": BY_CITY, "other": lacking}, "a"):
        assert not one.read
        assert one.statement


def test_a_view_that_writes_into_a_stream_is_not_read_instead() -> None:
    (one,) = found({"a": BY_CITY, "enriched": WHOLE}, "a", into="enriched")
    assert not one.read
    assert one.statement


@pytest.mark.parametrize(
    "other",
    [
        BY_NAME.replace("y.customer", "y.id"),
        BY_NAME.replace("JOIN", "LEFT JOIN"),
        BY_NAME.replace("GROUP", "WHERE y.amount > 3 GROUP"),
        "SELECT id, city FROM users",
    ],
)
def test_what_differs_is_not_told_of(other: str) -> None:
    assert found({"a": BY_CITY, "b": other}, "a") == []


def test_streams_by_key_are_told_of_where_they_are_large() -> None:
    views = {"a": BY_CITY, "b": BY_NAME.replace("y.customer", "y.amount")}
    assert found(views, "a", rows=9_999) == []
    (one,) = found(views, "a", rows=10_000)
    assert one.title == "the current row of each key of orders"
    assert one.statement.startswith("CREATE MATERIALIZED VIEW orders_kept AS SELECT o.id AS id")


def test_streams_that_each_view_reads_from_its_own_moment_on() -> None:
    query = f"SELECT l.v AS v, {{}} AS n {PADDED} GROUP BY l.v"
    (one,) = found(
        {"a": query.format("count()"), "b": query.format("max(r.id)").replace("l.v AS", "l.id AS") + ", l.id"}, "a"
    )
    assert one.from_now_on == ("l", "r")
    assert "the rows of l and r since that view was made" in one.readable
    assert "SETTINGS" not in one.statement


PAIRS = [
    (BY_CITY, BY_NAME),
    (BY_CITY, WHOLE.replace("o.amount", "o.amount + 1")),
    (GROUPS.format("sum(amount) AS s"), GROUPS.format("count(*) AS n, max(id) AS m") + " HAVING count(*) > 1"),
    (GROUPS.format("count(DISTINCT amount) AS s"), GROUPS.format("avg(amount) AS n, 1 AS one") + " HAVING max(id) > 1"),
    (f"SELECT l.id AS a, count() AS n {PADDED} GROUP BY l.id {FROM_THE_BEGINNING}",
     f"SELECT l.k AS a, max(r.v) AS m {PADDED} GROUP BY l.k {FROM_THE_BEGINNING}"),
    (f"SELECT sum(o.amount) AS n {JOIN} AND (o.amount > u.id OR u.city = 'x''y') WHERE u.name <> 'Z'",
     f"SELECT max(o.id) AS m {JOIN} AND (o.amount > u.id OR u.city = 'x''y') WHERE u.name <> 'Z'"),
    ('SELECT max(t."select") AS m FROM "My Table" AS t JOIN orders AS o ON t."select" = o.amount',
     'SELECT min(o.id) AS m FROM "My Table" AS s JOIN orders AS o ON s."select" = o.amount'),
    ("SELECT max(o.id) AS m FROM orders AS o JOIN users AS u ON o.id = u.id LEFT JOIN held AS h ON o.id = h.id",
     "SELECT min(h.v) AS m FROM orders AS o JOIN users AS u ON o.id = u.id LEFT JOIN held AS h ON o.id = h.id"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_what_is_proposed_can_be_planned_and_is_read_instead(one: str, other: str) -> None:
    for asked in ("a", "b"):
        (told,) = found({"a": one, "b": other}, asked)
        assert told.statement
        proposed = told.statement.partition(" AS ")[2]
        (again,) = found({"a": one, "b": other, "proposed": proposed}, asked)
        assert again.read == "proposed"


def test_a_name_that_is_taken() -> None:
    views = {
        "a": BY_CITY,
        "b": BY_NAME,
        "orders_users": "SELECT id FROM users",
        "orders_users_kept2": "SELECT 1 AS x FROM l",
    }
    (one,) = found(views, "a")
    assert one.statement.startswith("CREATE MATERIALIZED VIEW orders_users_kept3 AS ")


HELD = "FROM held AS a {} JOIN seen AS b ON a.k = b.k {}"


@pytest.mark.parametrize("kind", ["", "LEFT", "RIGHT", "FULL"])
@pytest.mark.parametrize("condition", ["", "AND a.v < b.w", "AND (a.v > 1 OR b.w > 1)"])
@pytest.mark.parametrize("where", ["", "WHERE a.v > 0", "WHERE b.w > 1"])
def test_it_has_the_rows_that_it_is_said_to_have(kind: str, condition: str, where: str) -> None:
    join = HELD.format(kind, condition)
    groups = f"SELECT a.id AS i, sum(b.w) AS n {join} {where} GROUP BY a.id"
    for told in found({"a": groups, "b": f"SELECT max(b.id) AS m {join} {where}"}, "a"):
        proposed = told.statement.partition(" AS ")[2]
        # Of an outer join a condition may stand above it, and is then that of its readers.
        own = where if " WHERE " in proposed else ""
        if proposed:
            assert_adds_up(proposed, batch=f"{proposed.partition(' FROM ')[0]} {join} {own}", rounds=4)


@settings(max_examples=25, deadline=None)
@given(st.lists(RANDOM, min_size=2, max_size=3))
def test_whatever_is_kept_twice_has_one_shape(queries: list[str]) -> None:
    planner = Planner.of(*TABLES)
    kept = [[*subplans_of(planner.only(query).output)] for query in queries]
    for some, others in permutations(kept, 2):
        for one in some:
            assert all(shape(one) == shape(other) != "" for other in others if together(one, other) is not None)


@settings(max_examples=15, deadline=None)
@given(st.lists(RANDOM, min_size=2, max_size=3))
def test_what_is_proposed_for_any_views_is_read_instead(queries: list[str]) -> None:
    views = {f"v{number}": query for number, query in enumerate(queries)}
    for one in found(views, "v0", rows=10_000):
        assert set(one.by) <= set(views) - {"v0"}
        if one.statement:
            again = found({**views, "proposed": one.statement.partition(" AS ")[2]}, "v0", rows=10_000)
            assert "proposed" in {told.read for told in again if told.node == one.node}
