"""Arrangements: what is found, what a merge forgets, and what the durable copy costs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from dovetail.changelog.changes import Changes
from dovetail.changelog.errors import StateLimitExceeded
from dovetail.changelog.hashing import row_hashes
from dovetail.joins.dataflow.ports import Ingest, JoinKind, Port
from dovetail.joins.host.exchange import cut
from dovetail.joins.operators.bidirectional import BidirectionalSpec
from dovetail.joins.state.arrangement import Arrangement
from dovetail.joins.state.durable_copy import DurableCopy
from dovetail.joins.state.store import ENTRY_ROWS, RunStore
from tests.joins.harness import LEFT, RIGHT, port
from tests.joins.hosted import Hosted

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.string())])


def table(keys: range | list[int], value: str = "x") -> pa.Table:
    return pa.table({"k": pa.array(keys, pa.int64()), "v": pa.array([value] * len(keys))}, schema=SCHEMA)


def test_a_probe_finds_every_row_of_its_key() -> None:
    arrangement = Arrangement(RunStore(), "a", SCHEMA, ["k"])
    for n in range(20):
        arrangement.insert(Changes.of(table(range(5), str(n))))
    found = arrangement.probe(table([3, 9]))
    assert sorted(found.rows.column("v").to_pylist()) == sorted(str(n) for n in range(20))
    assert set(found.probe.tolist()) == {0}
    assert arrangement.counts(table([3, 9])).tolist() == [20, 0]


def test_overridden_rows_are_forgotten_by_merges() -> None:
    store = RunStore()
    arrangement = Arrangement(store, "a", SCHEMA, ["k"], ["k", "v"])
    arrangement.insert(Changes.of(table(range(100), "0")))
    for n in range(200):
        old, new = table(range(100), str(n)), table(range(100), str(n + 1))
        arrangement.insert(Changes.concat([Changes.of(old, -1), Changes.of(new)]))
    assert store.rows < 100 * 10
    assert arrangement.equal(table([1], "200")).deltas.tolist() == [1]
    assert len(arrangement.equal(table([1], "100")).probe) == 0


def test_the_durable_copy_rebuilds_the_same_rows_and_stays_below_twice_their_number() -> None:
    store, durable = RunStore(), DurableCopy()
    arrangement = Arrangement(store, "a", SCHEMA, ["k"], ["k", "v"])
    for n in range(60):
        arrangement.insert(Changes.of(table(range(n * 4000, n * 4000 + 4000), "live")))
        arrangement.insert(Changes.of(table(range(n * 4000, n * 4000 + 3000), "live"), -1))
        durable.save(store)
    sizes = [entry.table.num_rows for entry in durable.entries.values()]
    assert sum(sizes) <= 2 * store.rows
    assert max(sizes) <= ENTRY_ROWS
    again = durable.restored()
    rebuilt = Arrangement(again, "a", SCHEMA, ["k"], ["k", "v"])
    everything = table(range(240_000), "live")
    assert np.array_equal(rebuilt.counts(everything), arrangement.counts(everything))
    assert again.new_id() > max(durable.entries)


def test_large_runs_are_written_once() -> None:
    store = RunStore()
    arrangement = Arrangement(store, "a", SCHEMA, ["k"])
    written = 0
    for n in range(16):
        arrangement.insert(Changes.of(table(range(n * ENTRY_ROWS, (n + 1) * ENTRY_ROWS))))
        written += sum(entry.table.num_rows for entry in store.flush().written.values())
    assert written == 16 * ENTRY_ROWS


def test_null_keys_match_only_where_null_safe() -> None:
    rows = pa.table({"k": pa.array([None, 1], pa.int64()), "v": ["n", "one"]}, schema=SCHEMA)
    for null_safe, expected in ((False, [0, 1]), (True, [1, 1])):
        arrangement = Arrangement(RunStore(), "a", SCHEMA, ["k"], null_safe=[null_safe])
        arrangement.insert(Changes.of(rows))
        assert arrangement.counts(rows).tolist() == expected
        assert len(arrangement.probe(rows).probe) == sum(expected)


def test_hashes_are_part_of_the_checkpoint_format() -> None:
    rows = pa.table(
        {
            "i": pa.array([1, None], pa.int32()),
            "s": pa.array(["a text of some length", ""], pa.string()),
            "f": pa.array([-0.0, 1.5], pa.float64()),
            "t": pa.array([0, 1], pa.timestamp("us", tz="UTC")),
            "l": pa.array(["x" * 300, None], pa.string()),
        }
    )
    assert row_hashes(rows, rows.column_names).tolist() == GOLDEN
    assert row_hashes(rows.slice(1), rows.column_names).tolist() == GOLDEN[1:]


GOLDEN = [5674061960337173574, 12516465839627684002]


def test_hashes_do_not_depend_on_the_integer_width_or_on_slicing() -> None:
    narrow, wide = pa.table({"k": pa.array([5, 7], pa.int32())}), pa.table({"k": pa.array([5, 7], pa.int64())})
    assert row_hashes(narrow, ["k"]).tolist() == row_hashes(wide, ["k"]).tolist()


def test_an_exchange_loses_nothing_and_keeps_keys_together() -> None:
    rows = table([n % 50 for n in range(1000)])
    parts = cut(rows, ("k",), 4)
    assert sum(part.num_rows for _, part in parts) == 1000
    seen: dict[int, int] = {}
    for bucket, part in parts:
        for key in part.column("k").to_pylist():
            assert seen.setdefault(key, bucket) == bucket
    assert len({bucket for bucket, _ in parts}) == 4


def test_a_limit_on_buffered_bytes_aborts() -> None:
    sides = port(LEFT, Ingest.APPEND), port(RIGHT, Ingest.APPEND)
    hosted = Hosted(BidirectionalSpec(JoinKind.INNER, *sides, max_buffered_bytes=4))
    with pytest.raises(StateLimitExceeded, match="join_max_buffered_bytes"):
        hosted.on_batch([((1, "a", 1), 1)], [])


def test_dangling_retractions_are_counted_and_left_out() -> None:
    sides = port(LEFT, Ingest.CHANGELOG), port(RIGHT, Ingest.CHANGELOG)
    hosted = Hosted(BidirectionalSpec(JoinKind.LEFT, *sides))
    assert not hosted.on_batch([((1, "a", 1), -1)], [])
    assert hosted.query.counters["dangling"] == 1


def test_a_retraction_takes_a_row_that_differs_only_in_its_time() -> None:
    """The time (here ``v``) of a retraction is its own; the row held longest goes first."""
    left = Port(LEFT, ("l.k",), Ingest.CHANGELOG, identity=("l.k", "l.id"))
    hosted = Hosted(BidirectionalSpec(JoinKind.LEFT, left, port(RIGHT, Ingest.APPEND)))
    assert hosted.on_batch([((1, "a", 10), 1), ((1, "a", 11), 1)], [])
    gone = hosted.on_batch([((1, "a", 99), -1)], [])
    assert gone == {(1, "a", 10, None, None, None): -1}
    both = hosted.on_batch([((1, "a", 50), 1), ((1, "a", 60), -1), ((1, "a", 61), -1), ((1, "a", 62), -1)], [])
    assert both == {(1, "a", 11, None, None, None): -1}
    assert hosted.query.counters["dangling"] == 1


def test_a_null_list_is_equal_to_none_but_where_null_safe() -> None:
    schema = pa.schema([("k", pa.list_(pa.int64()))])
    rows = pa.table({"k": pa.array([None, [1]], pa.list_(pa.int64()))}, schema=schema)
    for null_safe, expected in ((False, [1]), (True, [0, 1])):
        arrangement = Arrangement(RunStore(), "a", schema, ["k"], null_safe=[null_safe])
        arrangement.insert(Changes.of(rows))
        assert sorted(arrangement.probe(rows).probe.tolist()) == expected
