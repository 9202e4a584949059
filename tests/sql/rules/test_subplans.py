"""Which operators of a query are one, and which stay several."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dovetail.sql.plan.nodes import Node, Output, Shared
from tests.sql.planner import Planner

DDL = (
    "CREATE TABLE t (id INT, k INT, v INT, w INT, PRIMARY KEY (id))",
    "CREATE TABLE u (id INT, k INT, PRIMARY KEY (id))",
    "CREATE STREAM s (id int, k int, v int)",
    "CREATE STREAM p (k int, at datetime64(3), WATERMARK FOR at AS at - INTERVAL 5 SECOND)",
    "CREATE STREAM kv (id int, k int, v int) PRIMARY KEY id SETTINGS mode = 'versioned_kv', version_column = 'v'",
    "CREATE STREAM kept (id int, k int, v int) PRIMARY KEY id SETTINGS mode = 'changelog_kv'",
)
SUMS = "WITH c AS (SELECT k, sum(v) AS n, count(*) AS m FROM t GROUP BY k)"
PAIRS = "WITH c AS (SELECT t.id AS id, u.k AS k, t.v AS v FROM t JOIN u ON t.k = u.id)"


COUNTED = "SELECT window_start, k, count(*) AS n FROM tumble(p, at, {}) GROUP BY window_start, k"
GROUPS = "SELECT a.n FROM (SELECT {}) AS a JOIN (SELECT {}) AS b ON a.n = b.m"


def twice(joined: str) -> str:
    return f"SELECT t.k FROM {joined} UNION ALL SELECT t.k + 1 FROM {joined}"


def windows(emit: str) -> str:
    groups = f"({COUNTED.format('10s')})"
    return (
        f"SELECT a.k, b.n FROM {groups} AS a JOIN {groups} AS b ON a.window_start = b.window_start AND a.n = b.k {emit}"
    )


def shared(query: str, **settings: bool) -> list[str]:
    """The operators that stand above already, each with what is below it."""
    return list(_again(Planner.of(*DDL).only(query, **settings).output, set()))


def _again(node: Output | Node, met: set[str]) -> Iterator[str]:
    if isinstance(node, Shared):
        if node.name in met:
            yield type(node.input).__name__
            return
        met.add(node.name)
    for below in node.inputs:
        yield from _again(below, met)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        # A stream by its primary key, for joins by other keys.
        ("SELECT a.v FROM t AS a JOIN t AS b ON a.k = b.v", ["Keyed"]),
        ("SELECT a.v FROM t AS a JOIN u ON a.k = u.k JOIN t AS b ON u.id = b.w", ["Keyed"]),
        ("SELECT a.v FROM kept AS a JOIN kept AS b ON a.k = b.v", ["Keyed"]),
        # Sides of one join by one key are one before; a third reader has its own.
        ("SELECT a.v FROM t AS a JOIN t AS b ON a.k = b.k", []),
        # With a condition: of one reader, the same of both, another of each.
        ("SELECT a.v FROM t AS a JOIN t AS b ON a.k = b.v WHERE b.w > 1", ["Keyed"]),
        ("SELECT a.v FROM t AS a JOIN t AS b ON a.k = b.v WHERE a.w > 1", ["Keyed"]),
        ("SELECT a.v FROM t AS a JOIN t AS b ON a.k = b.v WHERE a.w > 1 AND b.w > 1", ["Keyed"]),
        ("SELECT a.v FROM t AS a JOIN t AS b ON a.k = b.v WHERE a.w > 1 AND b.w > 2", []),
        ("SELECT a.v FROM t AS a JOIN t AS b ON a.k = b.v JOIN t AS c ON b.w = c.w WHERE a.w > 1 AND b.w > 2",
         ["Keyed", "Keyed"]),
        # Of versions a row that fails is no delete: the condition is above already.
        ("SELECT a.v FROM kv AS a JOIN kv AS b ON a.k = b.v WHERE b.k > 1", ["Keyed"]),
        # Queries that stand several times.
        (f"{SUMS} SELECT a.n FROM c AS a JOIN c AS b ON a.n = b.m", ["Aggregate"]),
        (f"{SUMS} SELECT n FROM c WHERE m = (SELECT max(m) FROM c)", ["Aggregate"]),
        (GROUPS.format("k, sum(v) AS n FROM t GROUP BY k", "k, max(w) AS m FROM t GROUP BY k"), ["Aggregate"]),
        (GROUPS.format("k, sum(v) AS n FROM s GROUP BY k", "v, sum(k) AS m FROM s GROUP BY v"), []),
        (f"{PAIRS} SELECT a.v FROM c AS a JOIN c AS b ON a.k = b.v", ["Join"]),
        (f"{PAIRS} SELECT id FROM c WHERE NOT EXISTS (SELECT 1 FROM c AS d WHERE d.v = c.k)", ["Join"]),
        (f"{PAIRS} SELECT k FROM c UNION ALL SELECT v FROM c", ["Join"]),
        (f"{PAIRS} SELECT k, sum(v) FROM c GROUP BY k UNION ALL SELECT k, max(id) FROM c GROUP BY k", ["Aggregate"]),
        # Another condition, another key, another kind of join.
        ("SELECT t.v FROM t JOIN u ON t.k = u.id UNION ALL SELECT t.v FROM t LEFT JOIN u ON t.k = u.id", ["Keyed"]),
        ("SELECT t.v FROM t JOIN u ON t.k = u.id AND t.v > u.k UNION ALL SELECT t.v FROM t JOIN u ON t.k = u.id",
         ["Keyed"]),
        ("SELECT t.v FROM t JOIN u ON t.k = u.id UNION ALL SELECT t.v FROM t JOIN u ON t.k = u.id", ["Join"]),
        # An n-way join, and a self join, whole.
        (twice("t JOIN u ON t.k = u.k JOIN s ON u.k = s.k"), ["MultiwayJoin"]),
        (twice("t JOIN t AS b ON t.k = b.k"), ["Join"]),
        # Groups by a window, that go with its watermark, if both go with the same one.
        (windows(""), ["Aggregate"]),
        (windows("EMIT ON WINDOW CLOSE"), ["Aggregate"]),
        (f"{COUNTED.format('10s')} UNION ALL {COUNTED.format('20s')}", []),
        # Joins that go by time keep what their own bound asks for.
        (twice("p AS t JOIN p AS b ON t.k = b.k AND t.at BETWEEN b.at AND b.at + INTERVAL 5 SECOND"), []),
    ],
)  # fmt: skip
def test_operators_are_one_that_would_keep_the_same_rows(query: str, found: list[str]) -> None:
    assert shared(query) == found


def test_the_setting_leaves_them_for_themselves() -> None:
    query = f"{PAIRS} SELECT a.v FROM c AS a JOIN c AS b ON a.k = b.v"
    apart = Planner.of(*DDL).only(query, share_state=False)
    assert shared(f"{query} SETTINGS share_state = 0") == shared(query, share_state=False) == []
    assert len(apart.dataflow.nodes) == 5
    assert len(Planner.of(*DDL).only(query).dataflow.nodes) == 3


def test_one_stage_feeds_an_edge_for_each_reader() -> None:
    """With the columns that any of them needs; each gets its own."""
    flow = Planner.of(*DDL).only("SELECT a.w FROM t AS a JOIN t AS b ON a.k = b.v WHERE b.w > 1").dataflow
    [scan], [keyed, join] = flow.scans, flow.nodes
    assert scan.columns == ("id", "k", "w", "v")
    assert keyed.outputs == join.inputs
    assert [flow.edge(edge).keys for edge in keyed.outputs] == [("a.k",), ("b.v",)]
    assert [port.schema.names for port in join.operator.ports] == [["a.id", "a.k", "a.w"], ["b.id", "b.v", "b.w"]]


def test_the_fingerprint_of_what_shares_nothing_is_what_it_was() -> None:
    planner = Planner.of(*DDL)
    for query, alike in (
        (f"{SUMS} SELECT n FROM c", True),
        (f"{SUMS} SELECT a.n FROM c AS a JOIN c AS b ON a.n = b.m", False),
    ):
        once, apart = (planner.only(query, share_state=setting).fingerprint for setting in (True, False))
        assert (once == apart) == alike


def test_the_topic_of_a_view_is_the_same() -> None:
    """Its columns, their order, whether they are taken back, and its key."""
    for query in (
        "SELECT a.id, b.id AS other FROM t AS a JOIN t AS b ON a.k = b.v",
        f"{PAIRS} SELECT * FROM c AS a JOIN c AS b ON a.k = b.v",
        f"{SUMS} SELECT n, m FROM c WHERE m = (SELECT max(m) FROM c)",
        f"{SUMS} SELECT a.k, a.n, b.m FROM c AS a LEFT JOIN c AS b ON a.n = b.m",
    ):
        once, apart = (Planner.of(*DDL).only(query, share_state=setting).output for setting in (True, False))
        assert once.input != apart.input
        facts = [(one.columns, one.hidden, one.key, one.key_names, one.updating, one.exchanged, one.unique)
                for one in (once, apart)]  # fmt: skip
        assert facts[0] == facts[1]
