"""A lookup query over a real broker, from its plan to its output."""

from __future__ import annotations

import pytest

from tests.services.worker.conftest import World

pytestmark = pytest.mark.services


def orders_and_products(world: World, partitions: int = 2, products: int = 100) -> tuple[str, str]:
    """The stream and the view of an order enriched by a dictionary over SQLite."""
    orders, view = f"orders{world.number}", f"priced{world.number}"
    world.fill("products", [(n, f"name{n}") for n in range(products)], "id INTEGER PRIMARY KEY, name TEXT")
    world.execute(f"CREATE STREAM {orders} (n int, k int) SETTINGS shards = {partitions}")
    world.execute(
        f"CREATE DICTIONARY products{world.number} (id int, name string) PRIMARY KEY id "
        f"SOURCE(SQLITE(PATH '{world.database}' TABLE 'products')) LAYOUT(DIRECT())"
    )
    world.view(
        f"CREATE MATERIALIZED VIEW {view} AS SELECT o.n, o.k, p.name FROM {orders} AS o "
        f"LEFT JOIN products{world.number} AS p ON o.k = p.id SETTINGS join_algorithm = 'direct', seek_to = 'earliest'"
    )
    return orders, view


def test_rows_are_answered_and_the_process_leaves_when_told(world: World) -> None:
    orders, view = orders_and_products(world)
    world.send(orders, [{"n": n, "k": n % 150} for n in range(2000)])
    child = world.start(view)
    world.drained(view, orders)
    found = {row["n"]: row["name"] for row in world.values(view)}
    assert found == {n: f"name{n % 150}" if n % 150 < 100 else None for n in range(2000)}
    counts = world.catalog.query(view).progress["counts"]
    assert counts["rows_in"] == counts["rows_out"] == 2000
    assert world.stop(child) == 0
