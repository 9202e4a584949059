"""What is planned and can hardly be meant is told of."""

from __future__ import annotations

import pytest

from tests.sql.world import World

STREAM = "CREATE STREAM s (k int, t string, at datetime64(3))"
TABLE = "CREATE TABLE s (k INT, t VARCHAR, at TIMESTAMP)"


@pytest.mark.parametrize("ddl", [STREAM, TABLE])
@pytest.mark.parametrize(
    ("condition", "written"),
    [
        ("k = NULL", "k IS NULL"),
        ("NULL = t", "t IS NULL"),
        ("k != NULL", "k IS NOT NULL"),
        ("k > 1 AND (t <> NULL OR k < 5)", "t IS NOT NULL"),
        ("k > NULL", "k IS NULL"),
        ("k + 1 = NULL", "x IS NULL"),
    ],
)
def test_a_comparison_with_null(ddl: str, condition: str, written: str) -> None:
    [warning] = World.of(ddl).plan(f"SELECT k FROM s WHERE {condition}").warnings
    assert warning == f"a comparison with NULL holds for no row: write {written}"


def test_a_comparison_with_null_of_groups() -> None:
    plan = World.of(STREAM).plan("SELECT k, count() AS n FROM s GROUP BY k HAVING n = NULL")
    assert plan.warnings == ("a comparison with NULL holds for no row: write count(*) IS NULL",)


@pytest.mark.parametrize(
    "condition", ["k IS NULL", "k IS NOT NULL", "coalesce(k, NULL) = 1", "k IN (1, NULL)", "k = 1"]
)
def test_what_may_be_meant_is_not_told_of(condition: str) -> None:
    assert World.of(STREAM).plan(f"SELECT k FROM s WHERE {condition}").warnings == ()


@pytest.mark.parametrize(("slide", "size", "warns"), [(10, 5, True), (5, 5, False), (5, 10, False), (3, 10, False)])
def test_windows_with_gaps(slide: int, size: int, warns: bool) -> None:
    plan = World.of(STREAM).plan(f"SELECT k, window_start FROM hop(s, at, {slide}s, {size}s)")
    assert ("windows of 5 s every 10 s leave out the rows between them" in "".join(plan.warnings)) is warns
