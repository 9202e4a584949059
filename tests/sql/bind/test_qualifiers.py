"""What stands before the name of a relation: a CTE has none, and the engine sees no table but those it is given."""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.changelog.errors import SqlError
from tests.sql.world import World

WITH = "WITH csv AS (SELECT 'x' AS column0) "
ANSWERED = "SELECT column0 FROM {} AS t"
PLACES = (
    ANSWERED,
    "SELECT 1 AS one FROM table(dim) AS d JOIN {} AS t ON d.k = t.column0",
    "SELECT 1 AS one FROM table(dim) AS d, {} AS t",
    "SELECT d.k FROM table(dim) AS d LEFT SEMI JOIN {} AS t ON d.k = t.column0",
    "SELECT u.column0 FROM (SELECT column0 FROM {} AS t) AS u",
    "SELECT u.column0 FROM (WITH csv AS (SELECT 'y' AS column0) SELECT column0 FROM {} AS t) AS u",
    "SELECT k FROM table(dim) WHERE k IN (SELECT column0 FROM {} AS t)",
    "SELECT k FROM table(dim) WHERE EXISTS (SELECT 1 FROM {} AS t WHERE t.column0 = k)",
    "SELECT (SELECT max(column0) FROM {} AS t) AS m",
    "SELECT column0 FROM csv UNION ALL SELECT column0 FROM {} AS t",
    "SELECT column0 FROM csv ORDER BY (SELECT max(column0) FROM {} AS t)",
    "SELECT column0 FROM csv LIMIT (SELECT 1 FROM {} AS t)",
    "SELECT i FROM flow JOIN {} AS t ON flow.k = t.column0",
    "SELECT i FROM flow JOIN (SELECT column0 FROM {} AS t) AS u ON flow.k = u.column0",
    "SELECT i FROM flow WHERE k IN (SELECT column0 FROM {} AS t)",
    "SELECT column0 FROM {} AS t UNION ALL SELECT k FROM flow",
)
QUALIFIED = (
    "a.csv",
    "a.b.csv",
    "main.csv",
    "temp.csv",
    "memory.csv",
    "memory.main.csv",
    "pg_catalog.csv",
    "information_schema.csv",
    "table({}.csv)",
    "changelog({}.csv)",
    "changelog({}.csv, column0)",
    '{}."csv"',
    "{}.csv",
    "pg_catalog.table(csv)",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    (folder / "x.csv").write_text("column0\nfrom a file\n")
    return folder


@pytest.fixture(scope="module")
def world() -> World:
    world = World.of(
        "CREATE STREAM flow (i int, k string)", "CREATE MUTABLE STREAM dim (k string, v int) PRIMARY KEY k"
    )
    world.insert("dim", {"k": "a", "v": 10})
    return world


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("named", QUALIFIED)
def test_a_cte_has_no_qualifier(world: World, folder: Path, place: str, named: str) -> None:
    with pytest.raises(SqlError):
        world.plan(WITH + place.format(named.format(f'"{folder / "x"}"')))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("named", ['"{}.csv"', "'{}.csv'", "read_csv('{}.csv')", "table('{}.csv')", 'table("{}.csv")'])
def test_no_file_is_a_table(world: World, folder: Path, place: str, named: str) -> None:
    with pytest.raises(SqlError):
        world.plan(WITH + place.format(named.format(folder / "x")))


@pytest.mark.parametrize("name", ["dim", "public.dim", "default.dim", '"PUBLIC".dim', "table(public.dim)"])
def test_the_one_database_may_be_named(world: World, name: str) -> None:
    assert rows(world, f"SELECT k FROM {name if 'table' in name else f'table({name})'}") == [("a",)]
    assert world.plan(f"SELECT k FROM {name} AS d").columns == ("k",)


@pytest.mark.parametrize("name", ["table(dim)", "table(public.dim)"])
def test_a_cte_does_not_hide_what_is_named_otherwise(world: World, name: str) -> None:
    assert rows(world, f"WITH dim AS (SELECT 'of the CTE' AS k) SELECT k FROM {name}") == [("a",)]
    assert rows(world, f"WITH dim AS (SELECT upper(k) AS k FROM {name}) SELECT dim.k FROM dim") == [("A",)]


@pytest.mark.parametrize("name", ["a.system.dictionaries", "main.system.dictionaries", "system.csv"])
def test_the_system_is_named_by_itself(world: World, name: str) -> None:
    with pytest.raises(SqlError):
        world.plan(f"WITH dictionaries AS (SELECT 1 AS name), csv AS (SELECT 1 AS name) SELECT name FROM {name}")


def test_a_cte_does_not_hide_a_relation_of_the_system(world: World) -> None:
    query = "WITH dictionaries AS (SELECT 1 AS name) SELECT status FROM system.dictionaries"
    assert world.plan(query).columns == ("status",)


def rows(world: World, query: str) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in world.engine.snapshot(query)]
