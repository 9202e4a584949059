"""What is said of joins that keep two inputs forever: with what it offers, nothing is said any more."""

from __future__ import annotations

import pytest

from tests.sql.planner import Planner

DDL = (
    "CREATE STREAM a (k int, v int)",
    "CREATE STREAM b (k int, v int, at datetime64(3)) SETTINGS event_time_column = 'at'",
    "CREATE MUTABLE STREAM m (k int, v int) PRIMARY KEY k",
    "CREATE TABLE p (k INT, at TIMESTAMP) APPEND ONLY",
    "CREATE TABLE r (k INT, since TIMESTAMP) APPEND ONLY",
    "CREATE TABLE q (k INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '5 seconds') APPEND ONLY",
)
WATERMARKS = (
    "CREATE TABLE p (k INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '5 seconds') APPEND ONLY",
    "CREATE TABLE r (k INT, since TIMESTAMP, WATERMARK FOR since AS since - INTERVAL '5 seconds') APPEND ONLY",
)
"""What is offered for the tables that lack one."""
MINUTES = "INTERVAL '10 minutes'"


@pytest.mark.parametrize(
    ("query", "names", "offered"),
    [
        ("SELECT a.k FROM a JOIN b ON a.k = b.k", "a with b", "AND date_diff_within(10m, a._tp_time, b.at)"),
        (
            "SELECT x.k FROM a AS x LEFT JOIN a ON x.k = a.k",
            "a AS x with a",
            "AND date_diff_within(10m, x._tp_time, a._tp_time)",
        ),
        (
            "SELECT p.k FROM p JOIN r ON p.k = r.k",
            "p with r",
            f"AND p.at BETWEEN r.since - {MINUTES} AND r.since + {MINUTES}",
        ),
        (
            "SELECT p.k FROM p FULL JOIN q ON p.k = q.k",
            "p with q",
            f"AND p.at BETWEEN q.at - {MINUTES} AND q.at + {MINUTES}",
        ),
        ("SELECT p.k FROM p ASOF JOIN r ON p.k = r.k AND p.at >= r.since", "p with r", ""),
        (
            "SELECT p.k FROM p JOIN r ON p.k = r.k AND p.at BETWEEN r.since AND r.since + INTERVAL '1 minute'",
            "p with r",
            "",
        ),
        (
            "SELECT k FROM (SELECT DISTINCT k FROM p) AS d LEFT SEMI JOIN r ON d.k = r.k",
            "p with r",
            None,
        ),
    ],
)  # fmt: skip
def test_it_is_told_with_what_would_bound_it(query: str, names: str, offered: str | None) -> None:
    (said,) = Planner.of(*DDL).plan(query).warnings
    assert said.startswith(f"the join of {names} keeps all rows of both forever: ")
    if offered is None:
        return
    assert offered in said
    others = [one for one in DDL if not one.startswith(("CREATE TABLE p", "CREATE TABLE r"))]
    assert Planner.of(*others, *WATERMARKS).plan(f"{query} {offered}").warnings == ()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.k FROM a JOIN m ON a.k = m.k",
        "SELECT x.k FROM m AS x JOIN m ON x.v = m.v",
        "SELECT q.k FROM q JOIN q AS o ON q.k = o.k AND q.at BETWEEN o.at AND o.at + INTERVAL '1 minute'",
        "SELECT a.k FROM a ASOF JOIN b ON a.k = b.k AND a._tp_time >= b.at",
        "SELECT k, count() FROM a GROUP BY k",
        "SELECT a.k FROM table(a) AS a JOIN table(b) AS b ON a.k = b.k",
    ],
)
def test_of_others_nothing_is_said(query: str) -> None:
    assert Planner.of(*DDL).plan(query).warnings == ()


def test_each_join_is_told_of_once() -> None:
    said = Planner.of(*DDL).plan("SELECT a.k FROM a JOIN b ON a.k = b.k JOIN a AS c ON b.v = c.v").warnings
    assert [one.partition(" keeps")[0] for one in said] == ["the join of a and b with a AS c", "the join of a with b"]
