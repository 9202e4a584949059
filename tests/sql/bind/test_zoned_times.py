"""A time that is put into a zone and given as it is: said, since the column is shown in UTC."""

from __future__ import annotations

import pytest

from tests.sql.world import World


@pytest.fixture(scope="module")
def world() -> World:
    return World.of(
        "CREATE STREAM visits (id int, at datetime64(3))", "CREATE TABLE calls (id INT, at TIMESTAMPTZ) APPEND ONLY"
    )


@pytest.mark.parametrize("alias", ["", " AS x", ' as "a b"', " x"])
@pytest.mark.parametrize("source", ["visits", "table(visits)"])
@pytest.mark.parametrize("written", ["at AT TIME ZONE 'Europe/Berlin'", "to_timezone(at, 'Europe/Berlin')"])
def test_it_is_said_and_the_fix_is_not(world: World, source: str, written: str, alias: str) -> None:
    [note] = world.plan(f"SELECT id, {written}{alias} FROM {source}").warnings
    assert note.startswith(f"{written} is a time, which is shown in UTC; ")
    fix = note.partition("; ")[2].partition(" is its text in Europe/Berlin")[0]
    assert fix == f"to_string({written})"
    assert world.plan(f"SELECT id, {fix} AS local FROM {source}").warnings == ()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT to_hour(at AT TIME ZONE 'Europe/Berlin') AS h FROM visits",
        "SELECT to_timezone(at, 'UTC') AS at FROM visits",
        "SELECT at AT TIME ZONE 'Europe/Berlin' AS local FROM calls",
    ],
)
def test_where_nothing_is_lost_nothing_is_said(world: World, query: str) -> None:
    assert world.plan(query).warnings == ()
