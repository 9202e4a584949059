"""EXISTS and IN over streams that change, run in memory, against the batch result."""

from __future__ import annotations

import pytest

from dovetail.changelog.errors import SqlError
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
    "EXISTS (SELECT 1 FROM seen AS s JOIN marks AS m ON s.k = m.k AND m.w < held.v WHERE s.id = held.id)",
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_subqueries_add_up_to_the_batch_result(condition: str) -> None:
    query = f"SELECT * FROM held WHERE {condition}"
    assert_adds_up(query)


ANSWERS = [
    "SELECT * FROM held WHERE v > 1 OR EXISTS (SELECT 1 FROM seen AS s WHERE s.k = held.k)",
    "SELECT * FROM held WHERE v > 1 OR k IN (SELECT k FROM seen)",
    "SELECT * FROM held WHERE v > 1 OR k NOT IN (SELECT k FROM seen)",
    "SELECT * FROM held WHERE v > 1 OR NOT (k IN (SELECT k FROM marks) AND v < 2)",
    "SELECT id, k IN (SELECT k FROM seen) AS among FROM held",
    "SELECT id, k NOT IN (SELECT k FROM seen WHERE w > 0) AS apart FROM held",
    "SELECT id, (k + 1) IN (SELECT k * 2 FROM marks AS m WHERE m.w = held.v) AS among FROM held",
    "SELECT id, id IN (SELECT id FROM seen) AS among FROM held",
    "SELECT id, EXISTS (SELECT 1 FROM seen AS s WHERE s.k = held.k AND s.w > held.v) AS above FROM held",
    "SELECT id, EXISTS (SELECT 1 FROM marks) AS any_mark, v <> ALL (SELECT w FROM marks) AS new FROM held",
    (
        "SELECT id, CASE WHEN k IN (SELECT k FROM seen) THEN 'a' WHEN NOT EXISTS (SELECT 1 FROM seen) THEN 'b' END "
        "AS c FROM held"
    ),
    (
        "SELECT id, coalesce(k IN (SELECT k FROM marks), v = ANY (SELECT w FROM marks AS m WHERE m.k = held.k)) AS c "
        "FROM held"
    ),
    "SELECT k, count(*) AS n FROM held GROUP BY k HAVING k IN (SELECT k FROM seen) OR count(*) > 2",
    "SELECT k, count(*) AS n FROM held GROUP BY k HAVING NOT EXISTS (SELECT 1 FROM marks AS m WHERE m.k = held.k)",
    "SELECT k, max(v) IN (SELECT w FROM marks) AS top FROM held GROUP BY k",
    (
        "SELECT k, count(*) FILTER (WHERE EXISTS (SELECT 1 FROM seen AS s WHERE s.id = held.id AND s.w < held.v)) AS n "
        "FROM held GROUP BY k"
    ),
    "SELECT id IN (SELECT id FROM seen) AS among, count(*) AS n FROM held GROUP BY id IN (SELECT id FROM seen)",
    "SELECT k IN (SELECT k FROM marks) AS among, count(*) AS n FROM held GROUP BY among",
    "SELECT id, (SELECT max(w) + held.v FROM seen AS s WHERE s.k = held.k) AS most FROM held",
    "SELECT among, count(*) AS n FROM (SELECT k IN (SELECT k FROM marks) AS among FROM held) AS x GROUP BY among",
    (
        "SELECT id FROM held WHERE EXISTS (SELECT 1 FROM seen AS s WHERE s.id = held.id "
        "AND (s.w > 1 OR s.k IN (SELECT k FROM marks)))"
    ),
    "SELECT h.id, s.w FROM held AS h LEFT JOIN seen AS s ON h.id = s.id WHERE s.w > 1 OR h.k IN (SELECT k FROM marks)",
]
"""EXISTS and IN where they are values: of three, NULL is one."""


@pytest.mark.parametrize("query", ANSWERS)
def test_an_answer_of_a_subquery_is_a_value(query: str) -> None:
    assert_adds_up(query)


SAID_OTHERWISE = [
    (
        "SELECT id FROM held WHERE (SELECT max(k) FROM seen AS s WHERE s.id = held.id) IN (SELECT k FROM marks)",
        (
            "SELECT id FROM held JOIN (SELECT id AS sid, k AS sk FROM seen) AS s ON sid = id "
            "WHERE sk IN (SELECT k FROM marks)"
        ),
    ),
    (
        "SELECT k, sum(CASE WHEN id IN (SELECT id FROM seen) THEN 1 ELSE 0 END) AS n FROM held GROUP BY k",
        (
            "SELECT k, sum(CASE WHEN among THEN 1 ELSE 0 END) AS n "
            "FROM (SELECT k, id IN (SELECT id FROM seen) AS among FROM held) AS x GROUP BY k"
        ),
    ),
    (
        "SELECT sum(v - (SELECT max(w) FROM seen)) AS off FROM held",
        "SELECT sum(d) AS off FROM (SELECT v - (SELECT max(w) FROM seen) AS d FROM held) AS x",
    ),
]


@pytest.mark.parametrize(("query", "batch"), SAID_OTHERWISE)
def test_a_subquery_in_an_aggregate_or_before_in(query: str, batch: str) -> None:
    assert_adds_up(query, batch)


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


IN_ON = [
    (
        "SELECT h.id, s.w FROM held AS h JOIN seen AS s ON h.k = s.k AND EXISTS (SELECT 1 FROM marks AS m "
        "WHERE m.k = h.k AND m.w < s.w)"
    ),
    "SELECT h.id, s.w FROM held AS h JOIN seen AS s ON h.k = s.k AND h.v NOT IN (SELECT w FROM marks)",
    (
        "SELECT h.id, s.w FROM held AS h JOIN seen AS s ON h.id = s.id AND (s.w > (SELECT max(w) FROM marks) "
        "OR h.v > s.w)"
    ),
    (
        "SELECT * FROM seen AS s, held AS h JOIN marks AS m ON m.k = h.k AND h.id IN (SELECT id FROM seen) "
        "WHERE s.id = h.id"
    ),
    (
        "SELECT h.id FROM held AS h WHERE EXISTS (SELECT 1 FROM seen AS s JOIN marks AS m ON s.k = m.k AND m.w "
        "IN (SELECT w FROM seen) WHERE s.id = h.id)"
    ),
]


@pytest.mark.parametrize("query", IN_ON)
def test_a_subquery_in_on_of_an_inner_join_is_one_of_where(query: str) -> None:
    assert_adds_up(query, rounds=5)


IN_ON_OF_OUTER_JOINS = [
    (
        (
            "SELECT h.id, s.w FROM held AS h LEFT JOIN seen AS s ON h.k = s.k AND EXISTS (SELECT 1 FROM marks "
            "AS m WHERE m.k = s.id)"
        ),
        (
            "SELECT h.id, s.w FROM held AS h LEFT JOIN (SELECT * FROM seen AS s WHERE EXISTS (SELECT 1 FROM "
            "marks AS m WHERE m.k = s.id)) AS s ON h.k = s.k"
        ),
    ),
    (
        "SELECT h.id, s.w FROM held AS h LEFT JOIN seen AS s ON h.k = s.k AND h.v IN (SELECT w FROM marks)",
        (
            "SELECT h.id, s.w FROM (SELECT *, v IN (SELECT w FROM marks) AS a FROM held) AS h LEFT JOIN seen "
            "AS s ON h.k = s.k AND h.a"
        ),
    ),
    (
        ("SELECT h.id, s.w FROM held AS h LEFT JOIN seen AS s ON h.k = s.k AND h.v NOT IN (SELECT w FROM marks)"),
        (
            "SELECT h.id, s.w FROM (SELECT *, v NOT IN (SELECT w FROM marks) AS a FROM held) AS h LEFT JOIN "
            "seen AS s ON h.k = s.k AND h.a"
        ),
    ),
    (
        (
            "SELECT h.id, s.w FROM held AS h LEFT JOIN seen AS s ON h.id = s.id AND h.v > (SELECT max(w) FROM "
            "marks AS m WHERE m.k = s.k)"
        ),
        (
            "SELECT h.id, s.w FROM held AS h LEFT JOIN (SELECT *, (SELECT max(w) FROM marks AS m WHERE m.k = "
            "s.k) AS t FROM seen AS s) AS s ON h.id = s.id AND h.v > s.t"
        ),
    ),
    (
        (
            "SELECT h.id, s.id AS sid FROM held AS h FULL JOIN seen AS s ON h.id = s.id AND (h.k IN (SELECT k "
            "FROM marks) OR EXISTS (SELECT 1 FROM marks AS m WHERE m.k = s.k AND m.w = s.w))"
        ),
        (
            "SELECT h.id, s.id AS sid FROM (SELECT *, k IN (SELECT k FROM marks) AS a FROM held) AS h FULL "
            "JOIN (SELECT *, EXISTS (SELECT 1 FROM marks AS m WHERE m.k = s.k AND m.w = s.w) AS b FROM seen AS "
            "s) AS s ON h.id = s.id AND (h.a OR s.b)"
        ),
    ),
    (
        (
            "SELECT h.id, s.w FROM held AS h LEFT JOIN seen AS s ON h.k = s.k AND EXISTS (SELECT 1 FROM marks "
            "WHERE w > 1)"
        ),
        (
            "SELECT h.id, s.w FROM held AS h LEFT JOIN (SELECT * FROM seen WHERE EXISTS (SELECT 1 FROM marks "
            "WHERE w > 1)) AS s ON h.k = s.k"
        ),
    ),
    (
        ("SELECT h.id, s.w FROM seen AS s RIGHT JOIN held AS h ON h.k = s.k AND s.id IN (SELECT k FROM marks)"),
        (
            "SELECT h.id, s.w FROM held AS h LEFT JOIN (SELECT * FROM seen AS s WHERE s.id IN (SELECT k FROM "
            "marks)) AS s ON h.k = s.k"
        ),
    ),
    (
        (
            "SELECT h.id FROM held AS h LEFT ANTI JOIN seen AS s ON h.id = s.id AND (h.k IN (SELECT k FROM "
            "marks) OR s.w > 1)"
        ),
        (
            "SELECT h.id FROM held AS h WHERE NOT EXISTS (SELECT 1 FROM seen AS s WHERE h.id = s.id AND (h.k "
            "IN (SELECT k FROM marks) OR s.w > 1))"
        ),
    ),
]
"""With the same where DuckDB has it: computed on a side before it is joined."""


@pytest.mark.parametrize(("query", "batch"), IN_ON_OF_OUTER_JOINS)
def test_a_subquery_in_on_of_an_outer_join_is_of_one_side(query: str, batch: str) -> None:
    assert_adds_up(query, batch, rounds=5)


FURTHER_OUT = [
    (
        "SELECT id FROM held AS h WHERE EXISTS (SELECT 1 FROM seen AS s WHERE s.k = h.k AND EXISTS (SELECT 1 FROM "
        "marks AS m WHERE m.k = s.id AND m.w = h.v))"
    ),
    (
        "SELECT id FROM held AS h WHERE NOT EXISTS (SELECT 1 FROM seen AS s WHERE s.k = h.k AND EXISTS (SELECT 1 "
        "FROM marks AS m WHERE m.k = s.k AND m.w < h.v))"
    ),
    (
        "SELECT id FROM held AS h WHERE EXISTS (SELECT 1 FROM seen AS s WHERE s.k = h.k AND s.w IN (SELECT w FROM "
        "marks AS m WHERE m.k = h.id))"
    ),
    (
        "SELECT id FROM held AS h WHERE k IN (SELECT k FROM seen AS s WHERE EXISTS (SELECT 1 FROM marks AS m "
        "WHERE m.k = s.k AND m.w + s.w > h.v))"
    ),
    (
        "SELECT id, EXISTS (SELECT 1 FROM seen AS s WHERE s.k = h.k AND EXISTS (SELECT 1 FROM marks AS m WHERE "
        "m.w = s.w AND m.k <> h.id)) AS e FROM held AS h"
    ),
    (
        "SELECT id FROM held AS h WHERE EXISTS (SELECT DISTINCT s.k FROM seen AS s WHERE s.k = h.k AND EXISTS "
        "(SELECT 1 FROM marks AS m WHERE m.k = s.k AND m.w = h.v))"
    ),
    (
        "SELECT id FROM held AS h WHERE EXISTS (SELECT 1 FROM seen AS s WHERE EXISTS (SELECT 1 FROM marks AS m "
        "WHERE m.k = s.k AND EXISTS (SELECT 1 FROM seen AS t WHERE t.w = m.w AND t.id = h.id AND t.k = s.k)))"
    ),
]


@pytest.mark.parametrize("query", FURTHER_OUT)
def test_a_subquery_reads_the_query_around_the_one_around_it(query: str) -> None:
    assert_adds_up(query, rounds=5)


@pytest.mark.parametrize(
    "query",
    [
        (
            "SELECT id FROM held AS h WHERE EXISTS (SELECT s.k FROM seen AS s WHERE s.k = h.k AND EXISTS (SELECT 1 "
            "FROM marks AS m WHERE m.k = s.k AND m.w = h.v) GROUP BY s.k HAVING count(*) > 1)"
        ),
        (
            "SELECT id, (SELECT count(*) FROM seen AS s WHERE s.k = h.k AND EXISTS (SELECT 1 FROM marks AS m WHERE "
            "m.k = s.k AND m.w = h.v)) AS c FROM held AS h"
        ),
        (
            "SELECT id FROM held AS h WHERE EXISTS (SELECT 1 FROM seen AS s WHERE s.k = h.k AND NOT EXISTS (SELECT 1 "
            "FROM marks AS m WHERE m.k = s.id AND m.w = h.v))"
        ),
        (
            "SELECT id FROM held AS h WHERE EXISTS (SELECT 1 FROM seen AS s WHERE s.k = h.k AND (s.w > 1 OR EXISTS "
            "(SELECT 1 FROM marks AS m WHERE m.k = s.id AND m.w = h.v)))"
        ),
    ],
)
def test_what_counts_rows_or_asks_for_none_does_not_read_so_far_out(query: str) -> None:
    with pytest.raises(SqlError, match="the side of a join"):
        World.of(*TABLES).plan(query)
