"""Which sides of a join are one, and which stay two."""

from __future__ import annotations

import pytest

from dovetail.joins.operators.bidirectional import BidirectionalSpec
from dovetail.joins.operators.multiway import MultiwaySpec
from dovetail.sql.plan.nodes import Scan
from dovetail.sql.plan.properties import walk
from tests.sql.planner import Planner

DDL = (
    "CREATE TABLE t (id INT, k INT, v INT, w INT, PRIMARY KEY (id))",
    "CREATE TABLE u (id INT, k INT, PRIMARY KEY (id))",
    "CREATE TABLE p (k INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '5 seconds') APPEND ONLY",
    "CREATE STREAM s (id int, k int, v int)",
    "CREATE MUTABLE STREAM m (id int, k int, v int) PRIMARY KEY id",
    "CREATE STREAM kv (id int, k int, v int) PRIMARY KEY id SETTINGS mode = 'versioned_kv'",
    "CREATE STREAM kept (id int, k int, v int) PRIMARY KEY id SETTINGS mode = 'changelog_kv'",
    "CREATE FUNCTION twice(a int) RETURNS int LANGUAGE python AS $$def twice(a): return [2 * one for one in a]$$",
)
GROUPS = "(SELECT k, {} FROM s GROUP BY k)"


def repeated(query: str, **settings: bool) -> list[str]:
    """The scans that are kept with another one."""
    tree = Planner.of(*DDL).only(query, **settings).output
    scans = [node for node in walk(tree) if isinstance(node, Scan)]
    return [f"{scan.alias} with {scan.shared_with}" for scan in scans if scan.shared_with]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("FROM s AS a JOIN s AS b ON a.k = b.k", ["b with a"]),
        ("FROM s AS a LEFT JOIN s AS b ON a.k = b.k AND a.v < b.v", ["b with a"]),
        ("FROM s AS a RIGHT JOIN s AS b ON a.k = b.k AND a.v < b.v", ["b with a"]),
        ("FROM t AS a FULL JOIN t AS b ON a.k = b.k AND a.v < b.w", ["b with a"]),
        ("FROM m AS a JOIN m AS b ON a.k = b.k", ["b with a"]),
        ("FROM m AS a JOIN m AS b ON a.id = b.id", ["b with a"]),
        ("FROM kv AS a JOIN kv AS b ON a.k = b.k", ["b with a"]),
        ("FROM kept AS a JOIN kept AS b ON a.k = b.k", ["b with a"]),
        ("FROM t AS a JOIN t AS b ON a.k = b.k AND a.v = b.v", ["b with a"]),
        ("FROM t AS a JOIN t AS b ON a.k = b.v AND a.v = b.k", []),
        ("FROM t AS a JOIN t AS b ON a.k + 1 = b.k + 1", ["b with a"]),
        ("FROM t AS a JOIN t AS b ON a.k + 1 = b.k + 2", []),
        ("FROM s AS a JOIN s AS b ON twice(a.k) = twice(b.k)", ["b with a"]),
        ("FROM (SELECT k, v AS n FROM t) AS a JOIN t AS b ON a.k = b.k", ["b with t"]),
        ("FROM t AS a JOIN (SELECT k, v AS n FROM t) AS b ON a.k = b.k", ["t with a"]),
        ("FROM t AS a JOIN (SELECT k, v + 1 AS n FROM t) AS b ON a.k = b.k AND a.v < b.n", []),
        # A filter of one side: both would hold what one of them does not look at.
        ("FROM t AS a JOIN t AS b ON a.k = b.k WHERE a.v > 1 AND b.v > 1", ["b with a"]),
        ("FROM t AS a JOIN t AS b ON a.k = b.k WHERE b.v > 1", []),
        ("FROM t AS a JOIN t AS b ON a.k = b.k WHERE a.v > 1 AND b.v > 2", []),
        # Other keys, other streams.
        ("FROM t AS a JOIN t AS b ON a.k = b.id", []),
        ("FROM t AS a JOIN u AS b ON a.k = b.k", []),
        # Of three the first two, all, or those that an n-way join has another one between.
        ("FROM t AS a JOIN t AS b ON a.k = b.k JOIN t AS c ON b.id = c.id", ["b with a"]),
        ("FROM t AS a JOIN t AS b ON a.k = b.k LEFT JOIN t AS c ON a.k = c.k", ["b with a", "c with a"]),
        ("FROM t AS a JOIN u AS b ON a.k = b.k JOIN t AS c ON b.k = c.k JOIN u AS d ON c.k = d.k",
         ["c with a", "d with b"]),
        # Queries: the same steps, or others.
        ("FROM (SELECT k, v + 1 AS n FROM t) AS a JOIN (SELECT k, v + 1 AS n FROM t) AS b ON a.k = b.k",
         ["t#2 with t"]),
        ("FROM (SELECT k, v FROM t) AS a JOIN (SELECT v AS k, k AS v FROM t) AS b ON a.k = b.k", []),
        (f"FROM {GROUPS.format('count() AS n')} AS a JOIN {GROUPS.format('count() AS n')} AS b ON a.k = b.k",
         ["s#2 with s"]),
        (f"FROM {GROUPS.format('max(v) AS n')} AS a JOIN {GROUPS.format('min(v) AS n')} AS b ON a.k = b.k",
         ["s#2 with s"]),
        # Rows that are asked whether they are there.
        ("FROM t AS a WHERE EXISTS (SELECT 1 FROM t AS b WHERE b.k = a.k AND b.id <> a.id)", ["b with a"]),
        ("FROM t AS a WHERE NOT EXISTS (SELECT 1 FROM t AS b WHERE b.k = a.k AND b.v > a.v)", ["b with a"]),
        # Joins that go by time, or answer once.
        ("FROM p AS a JOIN p AS b ON a.k = b.k AND a.at BETWEEN b.at AND b.at + INTERVAL '5 seconds'", []),
        ("FROM p AS a JOIN p AS b ON a.k = b.k", ["b with a"]),
        ("FROM s AS a JOIN m AS b ON a.k = b.k", []),
    ],
)  # fmt: skip
def test_sides_are_one_that_have_the_same_rows(query: str, found: list[str]) -> None:
    assert repeated(f"SELECT a.k AS one {query}") == found


def test_the_setting_leaves_two() -> None:
    query = "SELECT a.v, b.w FROM t AS a JOIN t AS b ON a.k = b.k"
    assert repeated(query) == ["b with a"]
    assert repeated(f"{query} SETTINGS share_state = 0") == repeated(query, share_state=False) == []


def test_one_scan_and_one_port_are_left() -> None:
    """With the columns that either side needs; the stages before the join are one too."""
    planner = Planner.of(*DDL)
    flow = planner.only("SELECT a.v, b.w FROM t AS a JOIN t AS b ON a.k = b.k").dataflow
    [scan], [keyed, join] = flow.scans, flow.nodes
    assert scan.columns == ("id", "k", "v", "w")
    assert isinstance(join.operator, BidirectionalSpec)
    assert join.operator.right_as_left == (("b.id", "a.id"), ("b.k", "a.k"), ("b.w", "a.w"))
    assert (join.inputs, keyed.inputs) == (keyed.outputs, (scan.edge,))

    flow = planner.only("SELECT a.v, b.w, c.id FROM t AS a JOIN t AS b ON a.k = b.k JOIN t AS c ON a.k = c.k").dataflow
    [scan], [keyed, join] = flow.scans, flow.nodes
    assert isinstance(join.operator, MultiwaySpec)
    assert [(one.place, one.of) for one in join.operator.repetitions] == [(1, 0), (2, 0)]
    assert len(join.operator.ports) == len(join.inputs) == 1


def test_what_only_the_other_side_needs_goes_no_further() -> None:
    """Else the next join would keep it."""
    query = "SELECT a.v, b.w, u.id FROM t AS a JOIN t AS b ON a.k = b.k JOIN u ON b.v = u.k"
    once, twice = (Planner.of(*DDL).only(query, share_state=setting).dataflow for setting in (True, False))
    [first, second] = (flow.nodes[-1].operator.ports[0].schema.names for flow in (once, twice))
    assert first == second
    assert "a.w" not in first


def test_the_topic_of_a_view_is_the_same() -> None:
    """Its columns, their order, whether they are taken back, and its key."""
    for query in (
        "SELECT a.id, b.id AS other FROM t AS a JOIN t AS b ON a.k = b.k",
        "SELECT a.k, b.v FROM t AS a LEFT JOIN t AS b ON a.k = b.k AND a.v < b.v",
        "SELECT * FROM s AS a JOIN s AS b ON a.k = b.k",
        "SELECT a.id, b.v, c.w FROM t AS a JOIN t AS b ON a.k = b.k JOIN t AS c ON a.k = c.k",
    ):
        once, twice = (Planner.of(*DDL).only(query, share_state=setting).output for setting in (True, False))
        assert once.input != twice.input
        facts = [(one.columns, one.hidden, one.key, one.key_names, one.updating, one.exchanged, one.unique)
                for one in (once, twice)]  # fmt: skip
        assert facts[0] == facts[1]
