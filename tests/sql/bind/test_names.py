"""Names that get in the way: of columns of our own, of each other, of the reserved ones."""

from __future__ import annotations

import pytest

from dovetail.changelog.errors import SqlError, SyntaxFault
from tests.sql.world import World

KEYED = "CREATE MUTABLE STREAM u (id int, delta int, arrival int) PRIMARY KEY (id)"
PLAIN = "CREATE STREAM s (id int, v int)"


def test_columns_may_be_called_delta_and_arrival() -> None:
    world = World.of(KEYED, PLAIN)
    world.start("SELECT s.id AS arrival, u.delta, u.delta + u.arrival AS total FROM s JOIN u ON s.id = u.id")
    world.insert("u", {"id": 1, "delta": 5, "arrival": 6})
    world.insert("s", {"id": 1, "v": 7})
    assert world.drain() == [({"arrival": 1, "delta": 5, "total": 11}, 1)]


def test_hidden_key_columns_of_one_name_are_told_apart() -> None:
    world = World.of("CREATE STREAM a (x int, v int)", "CREATE STREAM b (x int, v int)", PLAIN)
    query = "SELECT a.v FROM a JOIN b ON a.v = b.v JOIN s ON a.x = s.id AND b.x = s.v"
    assert world.plan(query).dataflow.sink.key_names == ("x", "b.x")
    world.start(query)
    world.insert("a", {"x": 1, "v": 5})
    world.insert("b", {"x": 2, "v": 5})
    world.insert("s", {"id": 1, "v": 2})
    assert world.drain() == [({"v": 5}, 1)]


@pytest.mark.parametrize("name", ["_tp_delta", "__delta", "__arrival", "__key0", "_tp_time"])
def test_a_reserved_name_is_refused_as_an_alias(name: str) -> None:
    with pytest.raises(SqlError, match=name):
        World.of(PLAIN).plan(f"SELECT id, v AS {name} FROM s")


def test_names_that_differ_in_letter_case_alone_are_refused_or_renamed() -> None:
    with pytest.raises(SyntaxFault, match="letter case"):
        World.of("CREATE STREAM c (x int, X int)")
    world = World.of(PLAIN)
    with pytest.raises(SqlError, match="twice in FROM"):
        world.plan("SELECT t.v FROM s AS t JOIN s AS T ON t.id = T.v")
    assert world.plan("SELECT id AS x, v AS X FROM s").columns == ("x", "X_1")
