"""What of ON is a key and what a residual condition: an equality one side of which reads both streams is none."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.sql.world import World

STREAMS = ("CREATE STREAM l (k int, a string, n int)", "CREATE STREAM r (k int, b string, n int)")
TABLES = (
    "CREATE TABLE l (k INT, a TEXT, n INT, PRIMARY KEY (k))",
    "CREATE TABLE r (k INT, b TEXT, n INT, PRIMARY KEY (k))",
)
LEFT = [(1, "x", 1), (2, "y", 2), (3, "z", 3)]
RIGHT = [(1, "x-x", 1), (2, "no", 2), (3, "z-z-z", 3)]


@pytest.mark.parametrize("ddl", [STREAMS, TABLES], ids=["timeplus", "risingwave"])
@pytest.mark.parametrize(
    "term",
    ["concat_ws('-', l.a, r.b) = concat(l.a, '-', r.b)", "CONCAT_WS('-', l.a, l.a) = r.b", "l.n + r.n - l.k = r.n"],
)
@pytest.mark.parametrize(("kind", "padded"), [("JOIN", False), ("LEFT JOIN", True)])
def test_it_is_tested_on_the_rows_that_meet(ddl: tuple[str, str], term: str, kind: str, padded: bool) -> None:
    world = World.of(*ddl)
    query = f"SELECT l.k, r.b FROM l {kind} r ON l.k = r.k AND {term} AND length(r.b) + l.n > 0"
    world.start(query)
    world.insert("l", *({"k": k, "a": a, "n": n} for k, a, n in LEFT))
    world.insert("r", *({"k": k, "b": b, "n": n} for k, b, n in RIGHT))
    world.drain()
    met: dict[tuple[object, ...], int] = (
        {(1, "x-x"): 1} if term.startswith("CONCAT_WS") else {(k, b): 1 for k, b, _ in RIGHT}
    )
    unmet: dict[tuple[object, ...], int] = {(k, None): 1 for k, _, _ in LEFT if k not in {key for key, _ in met}}
    assert world.table() == Counter({**met, **(unmet if padded else {})})
    assert world.table() == world.recomputed(query)


@pytest.mark.parametrize("kind", ["JOIN", "FULL JOIN", "LEFT SEMI JOIN"])
def test_it_is_no_key(kind: str) -> None:
    plan = World.of(*STREAMS).explain(f"SELECT l.k FROM l {kind} r ON l.k = r.k AND l.n + r.n = l.k")
    assert "on=l.k=r.k  and " in plan
