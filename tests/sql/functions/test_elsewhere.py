"""Functions of other systems: what is offered in the place of each can be planned, and none of them is one here."""

from __future__ import annotations

import pytest

from dovetail.changelog.errors import UnknownName
from dovetail.sql.functions.dialects import DIALECTS
from dovetail.sql.functions.elsewhere import OF_STREAMS, OF_TABLES
from dovetail.sql.syntax.rules import Rules
from tests.sql.world import World

OFFERED = [
    *((Rules.TIMEPLUS, name, here) for name, here in OF_STREAMS.items()),
    *((Rules.RISINGWAVE, name, here) for name, here in OF_TABLES.items()),
]


@pytest.fixture(scope="module")
def world() -> World:
    return World.of(
        "CREATE STREAM of_timeplus (n int, s string, doc string, tags array(string), t datetime64(3), u datetime64(3))",
        "CREATE TABLE of_risingwave (n INT, s VARCHAR, doc VARCHAR, tags VARCHAR[], t TIMESTAMP, u TIMESTAMP)",
    )


@pytest.mark.parametrize(("rules", "name", "here"), OFFERED)
def test_what_is_offered_can_be_planned(world: World, rules: Rules, name: str, here: str) -> None:
    assert not DIALECTS[rules].registry.knows(name), "it is a function here"
    world.plan(f"SELECT {here} AS x FROM table(of_{rules.value})")


@pytest.mark.parametrize(
    ("query", "fix"),
    [
        ("SELECT nvl(n, 0) AS x FROM of_timeplus", "if_null(n, 0), for one"),
        ("SELECT NVL(n, 0) AS x FROM of_risingwave", "coalesce(n, 0), for one"),
        ("SELECT date_format(t, 'yyyy') AS x FROM of_risingwave", "to_char(t, 'YYYY-MM-DD'), for one"),
        ("SELECT lenght(s) AS x FROM of_risingwave", "did you mean length(text)?"),
    ],
)
def test_the_offer_comes_before_the_nearest_name(world: World, query: str, fix: str) -> None:
    with pytest.raises(UnknownName) as fault:
        world.plan(query)
    assert fault.value.fix == fix
