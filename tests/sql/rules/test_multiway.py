"""Which joins of a chain become one, and which stay joins of two."""

from __future__ import annotations

import pytest

from dovetail.sql.plan.nodes import Join, MultiwayJoin, Output
from dovetail.sql.plan.properties import walk
from tests.sql.planner import Planner

DDL = (
    "CREATE TABLE a (k INT, m INT, v INT)",
    "CREATE TABLE b (k INT, m INT, v INT)",
    "CREATE TABLE c (k INT, m INT, v INT)",
    "CREATE TABLE wide (k BIGINT, v INT)",
    "CREATE TABLE p (k INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '5 seconds') APPEND ONLY",
    "CREATE STREAM s (k int, v int)",
    "CREATE MUTABLE STREAM keyed (k int, v int) PRIMARY KEY k",
)


def joins(query: str, **settings: bool) -> list[str]:
    """The joins of the plan, the uppermost first: ``2`` for an n-way join of two, ``inner`` for one of two inputs."""
    tree: Output = Planner.of(*DDL).only(query, **settings).output
    found = [node for node in walk(tree) if isinstance(node, Join | MultiwayJoin)]
    return [str(node.joins) if isinstance(node, MultiwayJoin) else node.kind.value for node in found]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k", ["2"]),
        ("FROM a JOIN b ON a.k = b.k JOIN c ON a.k = c.k JOIN a AS d ON c.k = d.k", ["3"]),
        ("FROM a JOIN b ON a.k = b.k AND a.m = b.m JOIN c ON c.m = b.m AND c.k = a.k", ["2"]),
        ("FROM a, b, c WHERE a.k = b.k AND b.k = c.k AND a.v < c.v", ["2"]),
        ("FROM a JOIN b ON a.k = b.k LEFT JOIN c ON b.k = c.k", ["2"]),
        ("FROM a LEFT JOIN b ON a.k = b.k LEFT JOIN c ON a.k = c.k JOIN p ON a.k = p.k", ["3"]),
        ("FROM (SELECT k, v FROM a JOIN b USING (k, v)) AS d JOIN b ON d.k = b.k JOIN c ON d.k = c.k", ["2", "inner"]),
        # Another key: what is one goes into the next as a side of it.
        ("FROM a JOIN b ON a.k = b.k JOIN c ON b.m = c.m", ["inner", "inner"]),
        ("FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k JOIN a AS d ON c.m = d.m", ["inner", "2"]),
        ("FROM a JOIN b ON a.k = b.k AND a.m = b.m JOIN c ON b.k = c.k", ["inner", "inner"]),
        ("FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k AND b.m = c.m", ["inner", "inner"]),
        # A column that may be NULL is not of the key.
        ("FROM a LEFT JOIN b ON a.k = b.k LEFT JOIN c ON b.k = c.k", ["left", "left"]),
        ("FROM a LEFT JOIN b ON a.k = b.k JOIN c ON b.k = c.k", ["inner", "left"]),
        # Rows that have matches of their own, under one key.
        ("FROM a JOIN b ON a.k = b.k LEFT JOIN c ON b.k = c.k AND a.v < c.v", ["left", "inner"]),
        ("FROM a LEFT JOIN b ON a.k = b.k AND a.v < b.v LEFT JOIN c ON a.k = c.k", ["left", "left"]),
        # Other kinds.
        ("FROM a RIGHT JOIN b ON a.k = b.k JOIN c ON b.k = c.k", ["inner", "right"]),
        ("FROM a JOIN b ON a.k = b.k FULL JOIN c ON b.k = c.k", ["full", "inner"]),
        ("FROM a JOIN b ON a.k = b.k JOIN (b AS d JOIN c ON d.k = c.k) ON a.k = d.k", ["2", "inner"]),
        ("FROM a JOIN b ON a.k = b.k WHERE EXISTS (SELECT 1 FROM c WHERE c.k = a.k)", ["semi", "inner"]),
        # NULL compared in two ways, columns of two types.
        ("FROM a JOIN b ON a.k = b.k JOIN c ON b.k IS NOT DISTINCT FROM c.k", ["inner", "inner"]),
        ("FROM a JOIN b ON a.k = b.k JOIN wide ON b.k = wide.k", ["inner", "inner"]),
        # Joins that go by time, or answer once, keep what they are for.
        ("FROM p JOIN p AS q ON p.k = q.k AND p.at BETWEEN q.at AND q.at + INTERVAL '5 seconds' JOIN a ON p.k = a.k",
         ["inner", "inner"]),
        ("FROM p ASOF JOIN p AS q ON p.k = q.k AND p.at >= q.at JOIN a ON p.k = a.k", ["inner", "inner"]),
        ("FROM s JOIN keyed ON s.k = keyed.k JOIN keyed AS l ON s.k = l.k", ["inner", "inner"]),
        ("FROM s JOIN s AS t ON s.k = t.k JOIN s AS u ON s.k = u.k", ["2"]),
        ("FROM s JOIN s AS t ON s.k = t.k JOIN keyed ON s.k = keyed.k", ["inner", "inner"]),
    ],
)  # fmt: skip
def test_a_chain_goes_as_far_as_its_key(query: str, found: list[str]) -> None:
    assert joins(f"SELECT 1 AS one {query}") == found


def test_the_setting_leaves_a_chain_of_joins_of_two() -> None:
    query = "SELECT a.v FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k"
    assert joins(query) == ["2"]
    assert joins(f"{query} SETTINGS multiway_join = 0") == joins(query, multiway_join=False) == ["inner", "inner"]


def test_the_topic_of_a_view_is_that_of_the_chain() -> None:
    """Its columns, their order, whether they are taken back, and its key."""
    planner = Planner.of(*DDL, "CREATE TABLE held (id INT, k INT, PRIMARY KEY (id))")
    for query in (
        "SELECT a.v, c.m FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k",
        "SELECT c.k, b.v FROM a JOIN b ON a.k = b.k LEFT JOIN c ON a.k = c.k",
        "SELECT h.id, i.id AS i, j.id AS j FROM held AS h JOIN held AS i ON h.k = i.k JOIN held AS j ON i.k = j.k",
        "SELECT h.id, h.k FROM held AS h JOIN held AS i ON h.id = i.id LEFT JOIN held AS j ON j.id = i.id",
        "SELECT p.at, q.at AS other FROM p JOIN p AS q ON p.k = q.k JOIN p AS r ON p.k = r.k",
    ):
        at_once, chain = (planner.only(query, multiway_join=setting).output for setting in (True, False))
        assert at_once.input != chain.input
        facts = [(one.columns, one.hidden, one.key, one.key_names, one.updating, one.exchanged, one.unique)
                for one in (at_once, chain)]  # fmt: skip
        assert facts[0] == facts[1]


def test_it_is_warned_of_as_of_the_chain() -> None:
    planner = Planner.of(*DDL)
    query = "SELECT s.v FROM s JOIN s AS t ON s.k = t.k JOIN s AS u ON s.k = u.k"
    warnings = planner.plan(query).warnings
    assert [one.partition(" keeps")[0] for one in warnings] == [
        "the join of s and s AS t with s AS u",
        "the join of s with s AS t",
    ]
    assert warnings == planner.plan(query, multiway_join=False).warnings
