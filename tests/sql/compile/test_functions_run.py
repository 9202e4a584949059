"""Functions in Python in whole queries, run in memory: wherever an expression stands, against the batch result."""

from __future__ import annotations

import pytest

from dovetail.changelog.errors import SqlError, UnknownName, Unsupported
from dovetail.sql.catalog import Catalog
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateFunction, CreateView, Drop
from tests.sql.compile.changing import TABLES, assert_adds_up
from tests.sql.planner import Planner
from tests.sql.world import Row, World

TWICE = """CREATE FUNCTION twice(x int) RETURNS bigint LANGUAGE python AS $$
def twice(x):
    return [None if n is None else 2 * n for n in x.to_pylist()]
$$"""
NEAR = """CREATE FUNCTION near(double, double) RETURNS bool LANGUAGE python IMMUTABLE AS $$
def near(left, right):
    pairs = zip(left.to_pylist(), right.to_pylist())
    return [a is not None and b is not None and abs(a - b) < 1 for a, b in pairs]
$$"""
RISKY = """CREATE FUNCTION risky(x double) RETURNS double LANGUAGE python AS $$
def risky(x):
    return [1 / n for n in x.to_pylist()]
$$"""
DICE = """CREATE FUNCTION dice(x int) RETURNS int LANGUAGE python VOLATILE AS $$
import random

def dice(x):
    return [random.randrange(6) for _ in range(len(x))]
$$"""
FUNCTIONS = (TWICE, NEAR, RISKY, DICE)
QUERIES = [
    "SELECT id, twice(k) + 1 AS d, risky(v) AS r FROM held",
    "SELECT id FROM held WHERE twice(k) = 2 AND NOT near(v, 0.0)",
    "SELECT l.id, r.id AS other FROM held AS l JOIN seen AS r ON l.k = r.k AND near(l.v, r.w)",
    "SELECT l.id, r.id AS other FROM held AS l LEFT JOIN seen AS r ON twice(l.k) = twice(r.k) AND near(l.v, r.w)",
    "SELECT k, sum(twice(k)) AS s, count(*) FILTER (WHERE near(w, 1.0)) AS c, max(risky(w)) AS m FROM marks GROUP BY k",
    "SELECT twice(k) AS d, median(risky(w)) AS m FROM marks GROUP BY twice(k) HAVING twice(count(*)::int) > 2",
    "SELECT id FROM held WHERE EXISTS (SELECT 1 FROM seen WHERE seen.k = held.k AND near(held.v, seen.w))",
    "SELECT k, twice(k) AS d FROM marks UNION ALL SELECT id, twice(id) FROM held",
]


@pytest.mark.parametrize("query", QUERIES)
def test_they_add_up_to_the_batch_result(query: str) -> None:
    assert_adds_up(query, made=FUNCTIONS)


def test_a_call_is_found_however_it_is_written() -> None:
    planner = Planner.of(*TABLES, TWICE.replace("def twice", "def Twice").replace("twice(x int)", "Twice(x int)"))
    plan = planner.plan("SELECT TWICE(k) AS a, twice(k) AS b FROM held")
    assert plan.dependencies.functions == ("twice",)


def test_people_see_its_name_and_not_its_code() -> None:
    plan = Planner.of(*TABLES, *FUNCTIONS).plan("SELECT k, sum(twice(k)) FROM held WHERE risky(v) > 1 GROUP BY k")
    assert "sum(twice(held.k))" in plan.explain()
    assert "where risky(held.v) > " in plan.explain()
    assert "python" not in plan.explain()


def test_it_is_a_part_of_the_fingerprint() -> None:
    query = "SELECT id, twice(k) AS d FROM held"
    same = TWICE.replace("FUNCTION twice(x int) RETURNS bigint", "FUNCTION twice(int) RETURNS int64")
    other = TWICE.replace("2 * n", "3 * n")
    prints = [Planner.of(*TABLES, made).plan(query).fingerprint for made in (TWICE, same, other)]
    assert prints[0] == prints[1] != prints[2]


@pytest.mark.parametrize(
    ("query", "said", "kind"),
    [
        ("SELECT twice(v) AS d FROM held", "", None),
        ("SELECT twice(id, k) FROM held", "takes 1 argument, not 2", SqlError),
        ("SELECT near('1.5', v) AS n FROM held", "", None),
        ("SELECT near(true, v) FROM held", "takes double precision, not boolean", SqlError),
        ("SELECT twice(k) FROM logged", "", None),
        ("SELECT twice(text) FROM logged", "takes int32, not string", SqlError),
        ("SELECT twice('5') FROM logged", "takes int32, not string", SqlError),
        ("SELECT thrice(k) FROM held", "there is no function thrice()", UnknownName),
        ("SELECT dice(k) FROM held", "VOLATILE", Unsupported),
        ("SELECT k FROM twice", "has no rows", Unsupported),
        ("SELECT held.k FROM held JOIN twice ON held.k = twice.k", "has no rows", Unsupported),
        ("SELECT k FROM table(twice)", "has no rows", Unsupported),
    ],
)
def test_what_a_call_takes(query: str, said: str, kind: type[SqlError] | None) -> None:
    planner = Planner.of(*TABLES, *FUNCTIONS, "CREATE STREAM logged (k int8, text string)")
    if kind is None:
        assert planner.plan(query).dependencies.functions
        return
    with pytest.raises(kind) as refused:
        planner.plan(query)
    assert said in refused.value.what
    assert refused.value.where


def test_a_volatile_one_is_for_queries_that_are_computed_once() -> None:
    world = World.of(*TABLES, *FUNCTIONS)
    rows: list[Row] = [{"id": number, "k": 1, "v": 0.0} for number in range(40)]
    world.insert("held", *rows)
    thrown = world.recomputed("SELECT id, dice(k) AS d, dice(k) AS e FROM table(held)")
    assert {row[1] for row in thrown} <= set(range(6))
    assert any(row[1] != row[2] for row in thrown)


class TestCatalog:
    def test_it_stays_while_a_view_uses_it(self) -> None:
        planner = Planner.of(*TABLES, TWICE)
        view = parse_one("CREATE MATERIALIZED VIEW v AS SELECT id, twice(k) AS d FROM held")
        assert isinstance(view, CreateView)
        plan = planner.plan(view.text)
        planner.catalog.create(view, now_ms=0, uses=plan.uses)
        with pytest.raises(Unsupported, match='the function "twice" is used by v'):
            planner.catalog.drop(Drop("function", "twice"), now_ms=0)
        replacing = parse_one(TWICE.replace("CREATE", "CREATE OR REPLACE"))
        assert isinstance(replacing, CreateFunction)
        with pytest.raises(Unsupported, match='the function "twice" is used by v'):
            planner.catalog.create(replacing, now_ms=0)
        gone = planner.catalog.drop(Drop("function", "twice", cascade=True), now_ms=0)
        assert [one.name for one in gone] == ["v", "twice"]

    def test_what_another_view_calls_is_its_own(self) -> None:
        planner = Planner.of(*TABLES, TWICE, NEAR)
        planner.create("CREATE VIEW plain AS SELECT id, twice(k) AS d FROM held")
        planner.create("CREATE MATERIALIZED VIEW kept AS SELECT id, near(v, 1.0) AS n FROM held")
        assert planner.plan("SELECT id, d FROM plain").dependencies.functions == ("twice",)
        assert planner.plan("SELECT id, n FROM kept").dependencies.functions == ()

    def test_where_they_are_off_none_is_made_or_called(self) -> None:
        planner = Planner(Catalog.open("sqlite://", python_functions=False))
        with pytest.raises(Unsupported, match="this process runs none"):
            planner.create(TWICE)

    def test_a_call_is_refused_where_they_are_off(self, tmp_path: object) -> None:
        url = f"sqlite:///{tmp_path}/catalog.db"
        allowed = Planner(Catalog.open(url))
        for statement in (*TABLES, TWICE):
            allowed.create(statement)
        refusing = Planner(Catalog.open(url, python_functions=False))
        assert refusing.plan("SELECT id FROM held").dependencies.functions == ()
        with pytest.raises(Unsupported, match="this process runs none"):
            refusing.plan("SELECT twice(k) FROM held")
        for planner in (allowed, refusing):
            planner.catalog.close()
