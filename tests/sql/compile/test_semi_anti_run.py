"""SEMI and ANTI joins of inputs that change, run in memory, against the batch result."""

from __future__ import annotations

import pytest

from tests.sql.compile.changing import assert_adds_up

JOINS = [
    ("held AS l", "seen AS r", "l.k = r.k"),
    ("held AS l", "marks AS r", "l.k = r.k"),
    ("marks AS l", "held AS r", "l.k = r.k AND l.w < r.v"),
    ("held AS l", "seen AS r", "l.id = r.id AND l.v <> r.w AND r.w > 0"),
    ("held AS l", "marks AS r", "l.k IS NOT DISTINCT FROM r.k AND l.v > 0"),
    ("(SELECT k, count(*) AS n FROM marks GROUP BY k) AS l", "held AS r", "l.k = r.k AND l.n > r.v"),
]


@pytest.mark.parametrize("kind", ["SEMI", "ANTI"])
@pytest.mark.parametrize(("left", "right", "on"), JOINS)
def test_they_add_up_to_the_batch_result(kind: str, left: str, right: str, on: str) -> None:
    join = f"SELECT l.* FROM {left} LEFT {kind} JOIN {right} ON {on}"
    batch = f"SELECT l.* FROM {left} WHERE {'NOT ' if kind == 'ANTI' else ''}EXISTS (SELECT 1 FROM {right} WHERE {on})"
    assert_adds_up(join, batch)
