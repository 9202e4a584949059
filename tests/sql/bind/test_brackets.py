"""Joins in brackets: any number of pairs, beside each other and within each other, with an alias and without one."""

from __future__ import annotations

import pytest

from dovetail.changelog.errors import SqlError
from tests.sql.world import World

DDL = ("CREATE STREAM a (k int, n int)", "CREATE STREAM b (k int, m int)", "CREATE STREAM c (k int, v int)")
PLAIN = "SELECT a.n, b.m, c.v FROM {a} JOIN {b} ON a.k = b.k JOIN {c} ON b.k = c.k"
SHAPES = (
    "({a} JOIN {b} ON a.k = b.k) JOIN {c} ON b.k = c.k",
    "(({a} JOIN {b} ON a.k = b.k)) JOIN {c} ON b.k = c.k",
    "({a} JOIN {b} ON a.k = b.k JOIN {c} ON b.k = c.k)",
    "(({a} JOIN {b} ON a.k = b.k) JOIN {c} ON b.k = c.k)",
    "((({a} JOIN {b} ON a.k = b.k)) JOIN {c} ON b.k = c.k)",
    "(({a})) JOIN (({b})) ON a.k = b.k JOIN ({c}) ON b.k = c.k",
    "({a} JOIN {b} USING (k)) JOIN {c} USING (k)",
)
"""Ways to write the three items."""
ON_THE_RIGHT = (
    "{a} JOIN ({b} JOIN {c} ON b.k = c.k) ON a.k = b.k",
    "{a} JOIN (({b} JOIN {c} ON b.k = c.k)) ON a.k = b.k",
    "{a} JOIN ({b} JOIN {c} USING (k)) USING (k)",
    "(({a} JOIN (({b} JOIN {c} ON b.k = c.k)) ON a.k = b.k))",
)
STREAMED = {"a": "a", "b": "b", "c": "c"}
READ = {name: f"table({name}) AS {name}" for name in STREAMED}
MIXED = STREAMED | {"b": READ["b"]}


@pytest.fixture(scope="module")
def world() -> World:
    world = World.of(*DDL)
    world.insert("a", {"k": 1, "n": 3}, {"k": 1, "n": 4}, {"k": 2, "n": 5}, {"k": 3, "n": 6})
    world.insert("b", {"k": 1, "m": 7}, {"k": 2, "m": 8}, {"k": 4, "m": 9})
    world.insert("c", {"k": 1, "v": 10}, {"k": 2, "v": 11}, {"k": 2, "v": 12})
    return world


@pytest.mark.parametrize("shape", [*SHAPES, *ON_THE_RIGHT])
def test_of_streams_and_of_what_is_read_once(world: World, shape: str) -> None:
    own = world.over_content(PLAIN.format(**STREAMED))
    assert len(own) == 4
    for items in (STREAMED, READ):
        written = shape.format(**items)
        assert world.over_content(f"SELECT a.n, b.m, c.v FROM {written}") == own
        assert world.over_content(f"SELECT x.n, x.m, x.v FROM ({written}) AS x") == own
        assert world.over_content(f"SELECT p, m, v FROM (({written})) AS x(k, p)") == own


@pytest.mark.parametrize("shape", [*SHAPES, *ON_THE_RIGHT])
def test_streams_have_the_columns_of_those_read_once(world: World, shape: str) -> None:
    for written in (shape, f"({shape}) AS x"):
        read = world.plan(f"SELECT * FROM {written.format(**READ)}")
        assert read.bounded
        assert world.plan(f"SELECT * FROM {written.format(**STREAMED)}").columns == read.columns


@pytest.mark.parametrize("shape", SHAPES)
def test_a_table_among_streams(world: World, shape: str) -> None:
    own = world.plan(PLAIN.format(**MIXED))
    written = shape.format(**MIXED)
    assert world.plan(f"SELECT a.n, b.m, c.v FROM {written}").schema == own.schema
    assert world.plan(f"SELECT x.n, x.m, x.v FROM ({written}) AS x").schema == own.schema


def test_an_item_in_brackets_keeps_its_alias(world: World) -> None:
    for read in ("a", "table(a)"):
        assert world.plan(f"SELECT y.k FROM ((SELECT k FROM {read}) AS y)").columns == ("k",)
        assert world.plan(f"SELECT y.p FROM (({read} AS y(p)))").columns == ("p",)
        assert world.plan(f"SELECT x.k FROM ((SELECT k FROM {read}) AS y) AS x").columns == ("k",)
        with pytest.raises(SqlError, match='no "y" in FROM'):
            world.plan(f"SELECT y.k FROM ((SELECT k FROM {read}) AS y) AS x")


def test_values_in_brackets_first(world: World) -> None:
    for read in ("b", "table(b) AS b"):
        query = f"SELECT y.p, b.m FROM ((VALUES (1), (4)) AS y(p) JOIN {read} ON y.p = b.k)"
        assert world.over_content(query) == {(1, 7): 1, (4, 9): 1}
        assert world.plan(query).columns == ("p", "m")


def test_a_subquery_without_an_alias(world: World) -> None:
    for read in ("a", "table(a)"):
        assert world.plan(f"SELECT k, subquery.n FROM (SELECT k, n FROM {read})").columns == ("k", "n")


def test_an_alias_stands_once(world: World) -> None:
    for first, second in (("a", "b"), ("table(a)", "table(b)")):
        for again in ("x", "X"):
            with pytest.raises(SqlError, match="twice in FROM"):
                world.plan(f"SELECT m FROM {first} AS x JOIN ({second} AS {again}) ON n = m")
