"""A value that would be made in one long step, deaf to its interruption, is NULL instead."""

from __future__ import annotations

from typing import Any

import pytest

from dovetail.sql.functions.sizes import COMPARED, LARGEST
from tests.sql.world import World

LONG = f"repeat('a', {COMPARED + 1})"
TIMEPLUS, RISINGWAVE = "CREATE STREAM s (n int)", "CREATE TABLE s (n int)"


def answered(ddl: str, call: str) -> Any:
    [row] = World.of(ddl).engine.snapshot(f"SELECT {call} AS a FROM (SELECT count(*) AS c FROM table(s)) AS t")
    return row["a"]


@pytest.mark.parametrize(
    ("ddl", "call"),
    [
        (TIMEPLUS, f"repeat('x', {LARGEST + 1})"),
        (TIMEPLUS, f"space({LARGEST + 1})"),
        (TIMEPLUS, f"left_pad('x', {LARGEST + 1})"),
        (TIMEPLUS, f"range({LARGEST + 1})"),
        (TIMEPLUS, "range(-9223372036854775807, 9223372036854775807)"),
        (TIMEPLUS, f"range({4 * LARGEST}, 0, -3)"),
        (TIMEPLUS, f"array_resize([1], {LARGEST + 1})"),
        (TIMEPLUS, f"array_with_constant({LARGEST + 1}, 1)"),
        (TIMEPLUS, f"edit_distance({LONG}, 'b')"),
        (TIMEPLUS, f"damerau_levenshtein_distance('b', {LONG})"),
        (RISINGWAVE, f"repeat('x', {LARGEST + 1})"),
        (RISINGWAVE, f"lpad('x', {LARGEST + 1})"),
    ],
)
def test_beyond_the_bound_there_is_none(ddl: str, call: str) -> None:
    assert answered(ddl, call) is None


@pytest.mark.parametrize(
    ("ddl", "call", "expected"),
    [
        (TIMEPLUS, f"length(repeat('x', {LARGEST}))", LARGEST),
        (TIMEPLUS, "repeat('x', -1)", ""),
        (TIMEPLUS, "range(1, 10, 4)", [1, 5, 9]),
        (TIMEPLUS, "range(5, 1)", []),
        (TIMEPLUS, "range(10, 1, -3)", [10, 7, 4]),
        (TIMEPLUS, "array_resize([1], 2)", [1, 0]),
        (TIMEPLUS, "array_with_constant(-1, 1)", []),
        (TIMEPLUS, "edit_distance('kitten', 'sitting')", 3),
        (RISINGWAVE, "repeat('x', -1)", ""),
        (RISINGWAVE, "rpad('x', 3, 'y')", "xyy"),
    ],
)
def test_within_it_nothing_is_other(ddl: str, call: str, expected: object) -> None:
    assert answered(ddl, call) == expected
