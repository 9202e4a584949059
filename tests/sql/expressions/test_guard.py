"""A call that fails for a row is NULL there, by itself, and is counted."""

from __future__ import annotations

import pyarrow as pa
import pytest

from dovetail.joins.dataflow.failed_calls import taken
from dovetail.sql.expressions.evaluate import evaluate, run

ROWS = pa.table({"t": ["12", "x", None, "7"], "n": pa.array([1, 2**63 - 1, 3, None], pa.int64())})


@pytest.mark.parametrize(
    ("sql", "values", "failed"),
    [
        ("CAST(t AS INT)", [12, None, None, 7], 1),
        ("coalesce(CAST(t AS INT), 0)", [12, 0, 0, 7], 1),
        ("n = 1 OR CAST(t AS INT) > 5", [True, None, None, True], 1),
        ("CAST(t AS INT) + CAST(t AS INT)", [24, None, None, 14], 1),
        ("CASE WHEN t = 'x' THEN 0 ELSE CAST(t AS INT) END", [12, 0, None, 7], 0),
        ("n + 1", [2, None, 4, None], 1),
        ("map([n], [t])", [[(1, "12")], [(2**63 - 1, "x")], [(3, None)], None], 1),
        ("coalesce(length(substring(t, 1, n)), 0)", [1, 0, 0, 0], 1),
        ("json_extract('[' || t || ']', CAST(regexp_extract('a', 'b') AS INT) + 1)", [None] * 4, 4),
        ("coalesce(n + 1, -1) * 2", [4, -2, 8, -2], 1),
        ("list_transform([t], lambda x: coalesce(CAST(x AS INT), 0))", [[12], [0], [0], [7]], 1),
        ("coalesce(TRY_CAST(t AS INT), 0)", [12, 0, 0, 7], 1),
        (
            "CASE WHEN DATE '2024-03-02' - CAST(5000000000 AS INT) > DATE '2020-01-01' THEN 1 ELSE 2 END",
            [2, 2, 2, 2],
            4,
        ),
        ("coalesce(CAST(CAST(t AS INT) AS VARCHAR) LIKE '1%' ESCAPE '!', false)", [True, False, False, False], 1),
        ("CAST(t AS INT) IN (7, 8, 9, 10, 11, 13)", [False, None, None, True], 1),
        ("NULLIF(TRY_CAST(t AS INT), NULL)", [12, None, None, 7], 0),
        ("coalesce(t IN (7, 12), false)", [True, False, False, True], 1),
        ("t NOT IN (7, 13)", [True, None, None, False], 1),
        ("DATE '2024-03-02' IN (t)", [None, None, None, None], 3),
        ("CASE 12 WHEN t THEN 'a' ELSE 'b' END", ["a", None, "b", "b"], 1),
        ("coalesce(CAST(n AS DECIMAL(38, 0)) > CAST(0.5 AS DECIMAL(38, 25)), true)", [True, True, True, True], 1),
        ("n BETWEEN CAST(0.5 AS DECIMAL(38, 25)) AND 2", [True, None, False, None], 1),
        ("coalesce(CASE t WHEN 12 THEN CAST(t AS INT) END, 0)", [12, 0, 0, 0], 1),
    ],
)
def test_one_bad_value_spoils_one_call(sql: str, values: list[object], failed: int) -> None:
    taken()
    assert evaluate(ROWS, [sql])[0].to_pylist() == values
    assert taken() == failed


def test_two_expressions_that_share_a_call_that_fails() -> None:
    first, second = evaluate(ROWS, ["CAST(t AS INT)", "CAST(t AS INT) + 1"])
    assert (first.to_pylist(), second.to_pylist()) == ([12, None, None, 7], [13, None, None, 8])


def test_a_query_over_tables_goes_on_beside_a_call_that_fails() -> None:
    total = run("SELECT sum(CAST(t AS INT)) AS total, count(*) AS rows FROM r WHERE n + 1 > 0 OR t = 'x'", {"r": ROWS})
    assert [(int(row["total"]), row["rows"]) for row in total.to_pylist()] == [(12, 3)]


TIMES = ("infinity", "-infinity", "290000-01-01", "0044-03-15 (BC)", "10000-01-01", "2026-01-31")


@pytest.mark.parametrize("kind", ["DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP_S", "TIMESTAMP_MS"])
@pytest.mark.parametrize("around", ["{}", "[{}]", "{{'at': {}}}"])
def test_a_time_that_no_row_can_hold_is_a_call_that_fails(kind: str, around: str) -> None:
    rows = pa.table({"t": pa.array(TIMES)})
    sql = around.format(f"CAST(t AS {kind})")
    taken()
    expected = [True] * 5 + [False]
    assert evaluate(rows, [sql])[0].is_null().to_pylist() == expected
    assert taken() == 5
    assert run(f"SELECT {sql} AS v FROM r", {"r": rows}).column("v").is_null().to_pylist() == expected
