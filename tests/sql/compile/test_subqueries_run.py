"""EXISTS and IN over streams that change, run in memory, against the batch result."""

from __future__ import annotations

import pytest

from changelog.errors import SqlError
from tests.sql.compile.changing import TABLES, assert_adds_up
from tests.sql.world import World

CONDITIONS = [
    "id IN (SELECT k FROM seen)",
    "k IN (SELECT k FROM marks WHERE w > 0)",
    "k NOT IN (SELECT k FROM seen WHERE w > 0)",
    "id NOT IN (SELECT id FROM seen)",
    "k NOT IN (SELECT k FROM marks WHERE marks.w = held.v)",
    "(k, v) IN (SELECT k, w FROM marks)",
    "k IS NOT NULL AND (id, k) NOT IN (SELECT id, k FROM seen WHERE k IS NOT NULL)",
    "k + 1 NOT IN (SELECT k * 2 FROM marks)",
    "k = ANY (SELECT k FROM seen)",
    "k <> ALL (SELECT k FROM seen)",
    "EXISTS (SELECT 1 FROM seen)",
    "NOT EXISTS (SELECT 1 FROM marks WHERE w > 1) AND id > 1",
    "NOT EXISTS (SELECT 1 FROM seen WHERE held.v > 1)",
    (
        "EXISTS (SELECT 1 FROM seen AS s WHERE s.k = held.k AND s.w > held.v) "
        "AND NOT EXISTS (SELECT 1 FROM marks AS m WHERE m.k = held.k AND m.w < held.v)"
    ),
    "EXISTS (SELECT k FROM marks AS m WHERE m.k = held.k GROUP BY k HAVING count(*) > 1)",
    "EXISTS (SELECT DISTINCT w FROM marks AS m WHERE m.k = held.k)",
    "EXISTS (SELECT 1 FROM seen AS s JOIN marks AS m ON s.k = m.k WHERE s.id = held.id AND m.w < held.v)",
    "EXISTS (SELECT 1 FROM seen AS s WHERE s.id = held.id AND s.k IN (SELECT k FROM marks))",
    "v IN (SELECT w + held.id FROM marks AS m WHERE m.k = held.k)",
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_subqueries_add_up_to_the_batch_result(condition: str) -> None:
    query = f"SELECT * FROM held WHERE {condition}"
    assert_adds_up(query)


@pytest.mark.parametrize(
    ("query", "order"),
    [
        ("SELECT id, k AS grade FROM held {}", "ORDER BY grade DESC, 1, v * 2"),
        ("SELECT k, count(*) AS n FROM held GROUP BY k {}", "ORDER BY count(*), max(k), n"),
        ("SELECT id FROM (SELECT id FROM held {}) AS x", "ORDER BY id"),
        ("SELECT id FROM held UNION ALL SELECT id FROM seen {}", "ORDER BY id"),
    ],
)
def test_the_order_of_a_set_says_nothing(query: str, order: str) -> None:
    """As in RisingWave: a view has no order, and ORDER BY without LIMIT is read and left."""
    world = World.of(*TABLES)
    assert world.explain(query.format(order)) == world.explain(query.format(""))


@pytest.mark.parametrize(("order", "said"), [("nothing", "no column"), ("3", "no position"), ("l.id", "in FROM")])
def test_what_an_order_names_is_there(order: str, said: str) -> None:
    with pytest.raises(SqlError, match=said):
        World.of(*TABLES).plan(f"SELECT id, k FROM held ORDER BY {order}")
