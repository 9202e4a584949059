"""``->`` and ``->>`` of a row or a tuple, which has fields and no members: what is offered works as it is written."""

from __future__ import annotations

import pytest

from dovetail.changelog.errors import DovetailError
from tests.sql.world import World


@pytest.fixture(scope="module")
def world() -> World:
    return World.of(
        "CREATE STREAM parcels (id int, address tuple(city string, zip string))",
        "CREATE TABLE people (id INT, address STRUCT<city VARCHAR, zip VARCHAR>, PRIMARY KEY (id))",
    )


@pytest.mark.parametrize("operator", ["->", "->>"])
@pytest.mark.parametrize(("member", "field"), [("zip", "zip"), ("street", "city")])
@pytest.mark.parametrize(
    "query", ["SELECT {} AS x FROM people", "SELECT {} AS x FROM people AS p JOIN people AS q ON p.id = q.id"]
)
def test_of_a_row_its_field_is_offered(world: World, operator: str, member: str, field: str, query: str) -> None:
    row = "p.address" if "JOIN" in query else "address"
    with pytest.raises(DovetailError, match="fields city, zip") as refused:
        world.plan(query.format(f"{row} {operator} '{member}'"))
    assert refused.value.fix.endswith(f"address).{field}")
    world.plan(query.format(refused.value.fix))


def test_of_a_tuple_its_field_is_offered(world: World) -> None:
    with pytest.raises(DovetailError) as refused:
        world.plan("SELECT address ->> 'city' AS x FROM parcels")
    assert "of a tuple address.city;" in refused.value.fix
    world.plan("SELECT address.city AS x FROM parcels")
