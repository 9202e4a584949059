"""Aggregates that are made of the array of a group's values, beside the same in plain loops."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sql.world import Row, World
from tests.tries import tries

ROWS = st.lists(st.tuples(st.integers(0, 2), st.none() | st.integers(-2, 2), st.booleans()), max_size=25)
QUERY = (
    "SELECT k, top_k(v, 2) AS a, min_k(v, 2) AS b, max_k(v, 2) AS c, group_array(3)(v) AS d, top_k_if(v, 1, c) AS e, "
    "group_uniq_array(v) FILTER (WHERE c) AS f, group_bit_xor(v) AS g FROM s GROUP BY k"
)


def most_frequent(values: list[int], count: int) -> tuple[int, ...]:
    return tuple(value for value, _ in sorted(Counter(values).items(), key=lambda one: (-one[1], one[0])))[:count]


def by_hand(key: int, rows: list[tuple[int, int | None, bool]]) -> tuple[object, ...]:
    values = sorted(v for k, v, _ in rows if k == key and v is not None)
    chosen = [v for k, v, c in rows if k == key and v is not None and c]
    bits = 0
    for value in values:
        bits ^= value
    return (
        key,
        most_frequent(values, 2),
        tuple(values[:2]),
        tuple(values[::-1][:2]),
        tuple(values[:3]),
        most_frequent(chosen, 1),
        tuple(sorted(set(chosen))),
        bits if values else None,
    )


@settings(max_examples=tries(20))
@given(rows=ROWS, cut=st.integers(0, 25))
def test_they_are_what_loops_make_of_the_rows(rows: list[tuple[int, int | None, bool]], cut: int) -> None:
    world = World.of("CREATE STREAM s (k int, v int, c bool)")
    world.start(QUERY)
    for part in (rows[:cut], rows[cut:]):
        if part:
            given_rows: list[Row] = [{"k": k, "v": v, "c": c} for k, v, c in part]
            world.insert("s", *given_rows)
            world.drain()
            assert min(world.net.values(), default=0) >= 0
    assert world.table() == Counter(by_hand(key, rows) for key in {k for k, _, _ in rows})
