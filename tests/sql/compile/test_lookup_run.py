"""Lookups run in memory: fragments in a row, and left sides that are taken back."""

from __future__ import annotations

from collections.abc import Mapping

from tests.sql.world import World

DDL = (
    "CREATE TABLE a (id INT PRIMARY KEY, c BIGINT, v INT)",
    "CREATE TABLE c (id INT PRIMARY KEY, name VARCHAR)",
    "CREATE TABLE p (id INT PRIMARY KEY, price INT)",
    "CREATE TABLE q (id INT PRIMARY KEY, rank INT)",
)
TEMPORAL = "FOR SYSTEM_TIME AS OF PROCTIME()"


def values(changes: list[tuple[Mapping[str, object], int]]) -> list[tuple[object, ...]]:
    return sorted(((*row.values(), delta) for row, delta in changes), key=repr)


def filled(query: str) -> World:
    world = World.of(*DDL)
    world.start(query)
    world.insert("c", {"id": 1, "name": "x"}, {"id": 2, "name": "y"})
    world.insert("p", {"id": 5, "price": 50})
    world.insert("q", {"id": 50, "rank": 3})
    assert world.drain() == []
    return world


def test_a_lookup_over_a_join() -> None:
    world = filled(f"SELECT a.id, name, price FROM a JOIN c ON a.c = c.id LEFT JOIN p {TEMPORAL} ON a.v = p.id")
    world.insert("a", {"id": 1, "c": 1, "v": 5}, {"id": 2, "c": 2, "v": 6})
    assert values(world.drain()) == [(1, "x", 50, 1), (2, "y", None, 1)]
    world.insert("p", {"id": 5, "price": 51})
    assert world.drain() == []
    world.insert("c", {"id": 1, "name": "z"})
    assert values(world.drain()) == [(1, "x", 50, -1), (1, "z", 51, 1)]
    world.delete("a", {"id": 1, "c": 1, "v": 5})
    assert values(world.drain()) == [(1, "z", 51, -1)]
    assert dict(world.table()) == {(2, "y", None): 1}


def test_a_join_between_lookups() -> None:
    world = filled(
        f"SELECT a.id, name, price, rank FROM a LEFT JOIN p {TEMPORAL} ON a.v = p.id JOIN c ON a.c = c.id "
        f"JOIN q {TEMPORAL} ON q.id = p.price"
    )
    world.insert("a", {"id": 1, "c": 1, "v": 5}, {"id": 2, "c": 2, "v": 6})
    assert values(world.drain()) == [(1, "x", 50, 3, 1)]
    world.insert("p", {"id": 5, "price": 51}, {"id": 6, "price": 50})
    world.insert("q", {"id": 50, "rank": 4})
    assert world.drain() == []
    world.insert("c", {"id": 1, "name": "z"})
    assert values(world.drain()) == [(1, "x", 50, 3, -1), (1, "z", 50, 4, 1)]
    world.insert("a", {"id": 2, "c": 2, "v": 6})
    assert values(world.drain()) == [(2, "y", 50, 4, 1)]


def test_a_left_row_that_no_longer_passes_is_taken_back() -> None:
    world = filled(f"SELECT a.id, price FROM a JOIN p {TEMPORAL} ON a.v = p.id WHERE a.c > 1")
    world.insert("a", {"id": 1, "c": 2, "v": 5})
    assert values(world.drain()) == [(1, 50, 1)]
    world.insert("p", {"id": 5, "price": 51})
    world.insert("a", {"id": 1, "c": 0, "v": 5})
    assert values(world.drain()) == [(1, 50, -1)]


def test_a_key_that_does_not_fit_matches_nothing() -> None:
    world = filled(f"SELECT a.id, name FROM a LEFT JOIN c {TEMPORAL} ON a.c = c.id")
    world.insert("a", {"id": 1, "c": 2**32 + 1, "v": 0}, {"id": 2, "c": None, "v": 0}, {"id": 3, "c": 1, "v": 0})
    assert values(world.drain()) == [(1, None, 1), (2, None, 1), (3, "x", 1)]
