"""LATERAL subqueries over tables that change, run in memory, against the batch result."""

from __future__ import annotations

import pytest

from dovetail.changelog.errors import SqlError
from tests.sql.compile.changing import TABLES, assert_adds_up
from tests.sql.world import World

QUERIES = [
    (
        "SELECT h.id, x.w FROM held AS h, LATERAL (SELECT w FROM seen AS s WHERE s.k = h.k ORDER BY w DESC, s.id "
        "LIMIT 1) AS x"
    ),
    (
        "SELECT h.id, x.w, x.i FROM held AS h LEFT JOIN LATERAL (SELECT w, s.id AS i FROM seen AS s WHERE s.k = "
        "h.k ORDER BY w DESC, s.id LIMIT 2) AS x ON true"
    ),
    (
        "SELECT h.id, x.m, x.c FROM held AS h, LATERAL (SELECT max(w) AS m, count(*) AS c FROM seen AS s WHERE "
        "s.k = h.k) AS x"
    ),
    (
        "SELECT h.id, x.m, x.c FROM held AS h LEFT JOIN LATERAL (SELECT max(w) AS m, count(*) AS c FROM seen AS s "
        "WHERE s.k = h.k HAVING count(*) > 1) AS x ON true"
    ),
    (
        "SELECT h.id, x.m FROM held AS h CROSS JOIN LATERAL (SELECT max(w) + h.v AS m FROM seen AS s WHERE s.k = "
        "h.k HAVING count(*) > 1) AS x"
    ),
    (
        "SELECT h.id, x.w, x.c FROM held AS h LEFT JOIN LATERAL (SELECT w, count(*) AS c FROM seen AS s WHERE s.k "
        "= h.k GROUP BY w) AS x ON true"
    ),
    (
        "SELECT h.id, x.d FROM held AS h LEFT JOIN LATERAL (SELECT coalesce(s.w, 7) - h.v AS d FROM seen AS s "
        "WHERE s.k = h.k AND s.w > h.v) AS x ON true"
    ),
    (
        "SELECT h.id, x.d FROM held AS h JOIN LATERAL (SELECT s.w - h.v AS d FROM seen AS s JOIN marks AS m ON "
        "m.k = s.k WHERE s.id = h.id) AS x ON x.d > 0"
    ),
    (
        "SELECT h.id, m.w, x.r FROM held AS h JOIN marks AS m ON h.k = m.k, LATERAL (SELECT row_number() OVER "
        "(ORDER BY s.id) AS r, s.id AS i FROM seen AS s WHERE s.k = h.k) AS x WHERE x.r <= 2"
    ),
    (
        "SELECT h.id, x.a, y.b FROM held AS h, LATERAL (SELECT max(w) AS a FROM seen AS s WHERE s.k = h.k) AS x, "
        "LATERAL (SELECT count(*) AS b FROM marks AS m WHERE m.w = x.a) AS y"
    ),
    (
        "SELECT h.id FROM held AS h WHERE EXISTS (SELECT 1 FROM seen AS s, LATERAL (SELECT max(w) AS m FROM marks "
        "AS m WHERE m.k = s.k) AS x WHERE s.id = h.id AND x.m > h.v)"
    ),
    (
        "SELECT h.id, x.w FROM held AS h LEFT JOIN LATERAL (SELECT s.w FROM seen AS s WHERE s.k = h.k ORDER BY w "
        "DESC LIMIT 1) AS x ON true"
    ),
    (
        "SELECT h.id, x.a FROM held AS h, LATERAL (SELECT array_agg(s.id ORDER BY s.id) AS a FROM seen AS s WHERE "
        "s.k = h.k) AS x"
    ),
    "SELECT h.id, x.m FROM held AS h, LATERAL (SELECT max(w) AS m FROM seen) AS x",
    "SELECT h.id, (SELECT w FROM seen AS s WHERE s.k = h.k ORDER BY s.id LIMIT 1) AS f FROM held AS h",
]


@pytest.mark.parametrize("query", QUERIES)
def test_lateral_adds_up_to_the_batch_result(query: str) -> None:
    assert_adds_up(query, rounds=5)


@pytest.mark.parametrize(
    ("lateral", "said"),
    [
        (", LATERAL (SELECT w FROM seen AS s WHERE s.w > h.v ORDER BY w, id LIMIT 2) AS x", "by no equality"),
        (", LATERAL (SELECT max(w) AS m FROM seen AS s WHERE s.w > h.v) AS x", "a value of the rows for which"),
        (" LEFT JOIN LATERAL (SELECT w FROM seen AS s WHERE s.k = h.k) AS x ON x.w > 1", "with a condition"),
        (" RIGHT JOIN LATERAL (SELECT w FROM seen AS s WHERE s.k = h.k) AS x ON true", "CROSS JOIN, JOIN"),
        (", LATERAL (SELECT w FROM table(seen) AS s WHERE s.k = h.k) AS x", "over table"),
        (", LATERAL (SELECT w FROM seen AS s WHERE s.k = x.k) AS x", 'no "x" in FROM'),
        (" CROSS APPLY (SELECT w FROM seen AS s WHERE s.k = h.k) AS x", "APPLY"),
    ],
)
def test_what_lateral_cannot_be(lateral: str, said: str) -> None:
    with pytest.raises(SqlError, match=said) as refused:
        World.of(*TABLES).plan(f"SELECT h.id FROM held AS h{lateral}")
    assert refused.value.fix
