"""Subqueries that stand for a value, and joins with one row that changes, run in memory, against the batch result."""

from __future__ import annotations

import pytest

from tests.sql.compile.changing import assert_adds_up

QUERIES = [
    "SELECT id FROM held WHERE v > (SELECT min(w) FROM seen)",
    "SELECT id FROM held WHERE id <= (SELECT max(id) FROM seen WHERE k = 1) AND v IS NOT NULL",
    "SELECT k, w FROM marks WHERE w >= (SELECT avg(w) FROM marks)",
    "SELECT id FROM held WHERE k = (SELECT max(k) FROM marks)",
    "SELECT id FROM held WHERE id + 1 BETWEEN (SELECT min(id) FROM seen) AND (SELECT max(id) FROM seen)",
    "SELECT id FROM held WHERE v < (SELECT max(w) FROM marks HAVING count(*) > 2) OR k = 2",
    "SELECT id, (SELECT count(*) FROM marks) - id AS d FROM held",
    "SELECT id, v - (SELECT max(w) FROM seen AS s WHERE s.k = held.k) AS d FROM held",
    "SELECT id, (SELECT count(*) + 1 FROM marks AS m WHERE m.k = held.k AND m.w > 0) AS n FROM held",
    "SELECT id FROM held WHERE v > (SELECT coalesce(min(w), 1) FROM marks AS m WHERE m.k = held.k)",
    "SELECT k, sum(v) AS s FROM held GROUP BY k HAVING sum(v) > (SELECT sum(v) * 0.4 FROM held)",
    "SELECT k, count(*) - (SELECT count(*) FROM seen) AS d FROM held GROUP BY k",
    "SELECT id, n FROM held, (SELECT count(*) AS n, max(w) AS m FROM marks) AS x WHERE v < m",
    "SELECT id, n FROM (SELECT count(*) AS n FROM marks) AS x CROSS JOIN held",
    "SELECT id, n FROM held LEFT JOIN (SELECT max(w) AS n FROM marks) AS x ON v < n",
    "SELECT a.n, b.m FROM (SELECT count(*) AS n FROM held) AS a CROSS JOIN (SELECT max(k) AS m FROM seen) AS b",
    "SELECT id, (SELECT w FROM seen AS s WHERE s.id = held.id) AS w FROM held",
    "SELECT id, (SELECT coalesce(w, 9) + held.id FROM seen AS s WHERE s.id = held.k) AS w FROM held",
    "SELECT id FROM held WHERE v < (SELECT w FROM seen AS s WHERE s.id = held.id AND s.k = held.k)",
    "SELECT k, max(v) - (SELECT w FROM seen AS s WHERE s.id = held.k) AS d FROM held GROUP BY k",
]
TOP = "SELECT id FROM held, (SELECT w AS m FROM marks ORDER BY w {order} LIMIT 1) AS x WHERE v > m"


@pytest.mark.parametrize("query", [*QUERIES, TOP.format(order="DESC"), TOP.format(order="")])
def test_values_add_up_to_the_batch_result(query: str) -> None:
    assert_adds_up(query)


def test_a_subquery_in_from_sees_what_is_around_the_query_that_it_is_in() -> None:
    around = "SELECT id, (SELECT sum(w) FROM (SELECT w FROM seen AS s WHERE s.k = held.k) AS x) AS w FROM held"
    assert_adds_up(around, "SELECT id, (SELECT sum(w) FROM seen AS s WHERE s.k = held.k) AS w FROM held")
