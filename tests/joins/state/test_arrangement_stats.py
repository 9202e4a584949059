"""What an arrangement says of its rows: how many, of how many keys, and under which keys most of them stand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.changelog.changes import Changes
from dovetail.joins.state.arrangement import Arrangement
from dovetail.joins.state.arrangement_stats import TOP, ArrangementStats, KeyRows, holdings
from dovetail.joins.state.durable_copy import DurableCopy
from dovetail.joins.state.store import RunStore

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.string())])
TIMED = pa.schema([("k", pa.int64()), ("t", pa.timestamp("ms"))])


def rows(keys: Sequence[int | None]) -> pa.Table:
    return pa.table([pa.array(keys, pa.int64()), pa.array(["x"] * len(keys))], schema=SCHEMA)


def timed(key: int, times: Sequence[int]) -> pa.Table:
    columns = [pa.array([key] * len(times), pa.int64()), pa.array(times, pa.int64()).cast(pa.timestamp("ms"))]
    return pa.table(columns, schema=TIMED)


def held(store: RunStore) -> ArrangementStats:
    return holdings(store)["a"]


def test_rows_keys_and_the_heaviest_of_one_run() -> None:
    store = RunStore()
    Arrangement(store, "a", SCHEMA, ["k"]).insert(Changes.of(rows([7] * 5 + [8] * 3 + [9, 10])))

    found = held(store)

    assert (found.rows, found.keys, found.fan_out) == (10, (4, 4), 5)
    assert found.top == (KeyRows("7", 5), KeyRows("8", 3))
    assert found.bytes == store.buffered_bytes > 0


def test_an_arrangement_that_holds_nothing_is_told_of() -> None:
    store = RunStore()
    Arrangement(store, "a", SCHEMA, ["k"])

    assert held(store) == ArrangementStats(0, 0, (0, 0), 0, ())


def test_a_key_whose_rows_lie_in_many_runs_is_counted_in_all_of_them() -> None:
    store = RunStore()
    arrangement = Arrangement(store, "a", SCHEMA, ["k"])
    for _ in range(3):
        arrangement.insert(Changes.of(rows([1])))

    assert len(store.runs["a"]) == 3
    assert (held(store).fan_out, held(store).keys, held(store).top) == (3, (1, 3), (KeyRows("1", 3),))


def test_rows_that_were_taken_back_do_not_count_for_their_key() -> None:
    store = RunStore()
    arrangement = Arrangement(store, "a", SCHEMA, ["k"], ["k", "v"])
    arrangement.insert(Changes.of(rows([1] * 20 + [2] * 9)))
    arrangement.insert(Changes.of(rows([1] * 15), -1))

    assert held(store).top == (KeyRows("2", 9), KeyRows("1", 5))


def test_rows_that_have_expired_do_not_count_for_their_key() -> None:
    store = RunStore()
    arrangement = Arrangement(store, "a", TIMED, ["k"], order="t")
    arrangement.insert(Changes.of(pa.concat_tables([timed(1, range(10)), timed(2, range(4, 10))])))

    arrangement.expire(3)

    assert [len(run) for run in store.runs["a"]] == [16]
    assert held(store).top == (KeyRows("1", 7), KeyRows("2", 6))


@pytest.mark.parametrize(("keys", "text"), [(["k", "v"], "NULL, x"), (["k"], "NULL"), (["v"], "x"), ([], "every row")])
def test_a_key_is_told_as_a_text(keys: list[str], text: str) -> None:
    store = RunStore()
    Arrangement(store, "a", SCHEMA, keys).insert(Changes.of(rows([None, None])))

    assert held(store).top == (KeyRows(text, 2),)


def test_rows_whose_key_is_null_are_named_and_meet_none() -> None:
    store = RunStore()
    Arrangement(store, "a", SCHEMA, ["k"]).insert(Changes.of(rows([None] * 9 + [4, 4])))
    Arrangement(store, "safe", SCHEMA, ["k"], null_safe=[True]).insert(Changes.of(rows([None] * 9)))

    assert (held(store).fan_out, held(store).top) == (2, (KeyRows("NULL", 9), KeyRows("4", 2)))
    assert holdings(store)["safe"].fan_out == 9


def test_a_long_key_is_cut() -> None:
    store = RunStore()
    long = pa.table([pa.array([1, 1], pa.int64()), pa.array(["y" * 1000] * 2)], schema=SCHEMA)
    Arrangement(store, "a", SCHEMA, ["v"]).insert(Changes.of(long))

    [key] = held(store).top
    assert len(key.key) == 60
    assert key.key.endswith("y..")


def test_what_was_restored_says_the_same() -> None:
    store, durable = RunStore(), DurableCopy()
    arrangement = Arrangement(store, "a", SCHEMA, ["k"])
    for n in range(40):
        arrangement.insert(Changes.of(rows([n % 3] * n + list(range(100, 100 + n)))))
    durable.save(store)

    again = durable.restored()
    Arrangement(again, "a", SCHEMA, ["k"])

    assert held(again).top == held(store).top
    assert held(again).rows == held(store).rows
    assert held(again).keys == (42, 42)


@given(st.lists(st.lists(st.integers(0, 40), max_size=30), max_size=12))
def test_bounds_and_counts_hold_of_any_batches(batches: list[list[int]]) -> None:
    store = RunStore()
    arrangement = Arrangement(store, "a", SCHEMA, ["k"])
    for keys in batches:
        arrangement.insert(Changes.of(rows(keys)))
    counted = Counter(key for keys in batches for key in keys)

    found = held(store)

    assert found.rows == counted.total()
    assert found.keys[0] <= len(counted) <= found.keys[1]
    assert [counted[int(key.key)] for key in found.top] == [key.rows for key in found.top]
    assert len(found.top) <= TOP


def test_the_heaviest_key_of_many_is_found() -> None:
    store, random = RunStore(), np.random.default_rng(7)
    arrangement = Arrangement(store, "a", SCHEMA, ["k"])
    for _ in range(50):
        keys = random.integers(1, 100_000, 2_000)
        keys[:200] = 0
        arrangement.insert(Changes.of(rows(keys.tolist())))

    assert held(store).top[0] == KeyRows("0", 10_000)
    assert held(store).fan_out == 10_000
