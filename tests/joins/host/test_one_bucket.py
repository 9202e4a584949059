"""A dataflow whose levels share one store, without an exchange: it gives what the levels give apart."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from dovetail.changelog.changes import DELTA, DELTA_TYPE
from dovetail.changelog.schema import ARRIVAL
from dovetail.joins.dataflow.graph import Dataflow
from dovetail.joins.dataflow.ports import transformed
from dovetail.joins.host.in_memory import LocalQuery
from dovetail.joins.host.level import Arrival
from dovetail.joins.host.one_bucket import LevelInput, OneBucket
from dovetail.joins.state.durable_copy import DurableCopy
from dovetail.joins.state.store import RunStore
from tests.spark.flows import orders_users

Batch = Mapping[int, pa.Table]
FLOW = orders_users("orders", "users")


def rows(columns: dict[str, object], deltas: list[int]) -> pa.Table:
    made = pa.table({**columns, ARRIVAL: range(len(deltas))})
    return made.append_column(pa.field(DELTA, DELTA_TYPE, nullable=False), pa.array(deltas, DELTA_TYPE))


def orders(first: int, count: int) -> pa.Table:
    numbers = range(first, first + count)
    return rows({"k": [n % 5 for n in numbers], "a": [f"order {n}" for n in numbers]}, [1] * count)


def users(word: str) -> pa.Table:
    moved = [(n + len(word)) % 5 for n in range(8)]
    return rows({"id": list(range(8)), "k": moved, "name": [f"{word} {n}" for n in range(8)]}, [1] * 8)


BATCHES: list[Batch] = [
    {0: orders(0, 10), 1: users("a")},
    {0: orders(10, 5)},
    {1: users("bb")},
    {0: orders(15, 5), 1: users("ccc")},
]


def inputs(dataflow: Dataflow, batch: Batch) -> dict[int, LevelInput]:
    found: dict[int, list[Arrival]] = {}
    for index, table in batch.items():
        scan = dataflow.scans[index]
        sent = transformed(table, scan.transforms)
        found.setdefault(dataflow.edge(scan.edge).level, []).append(Arrival(scan.edge, sent))
    return {level: LevelInput(arrivals) for level, arrivals in found.items()}


def shown(table: pa.Table | None) -> list[dict[str, object]]:
    return [] if table is None else sorted(table.to_pylist(), key=str)


def test_it_gives_what_its_levels_give_apart_over_restarts_and_beside_others() -> None:
    apart, kept = LocalQuery(FLOW, buckets=1), DurableCopy()
    for number, batch in enumerate(BATCHES):
        store = kept.restored()
        # Others have a part of the same store, and keep it.
        other = OneBucket(FLOW, store.part("8."), {})
        if number == 1:
            other.on_batch(inputs(FLOW, BATCHES[0]))
        output = OneBucket(FLOW, store.part("7."), {}).on_batch(inputs(FLOW, batch))
        kept.save(store)
        together = pa.concat_tables(output.changes).sort_by(DELTA) if output.changes else None
        assert shown(together) == shown(apart.feed(batch))
        assert set(output.levels) == ({1, 2} if 1 in batch else {2})
    assert {entry.arrangement.partition(".")[0] for entry in kept.entries.values()} == {"7", "8"}


def test_what_has_left_is_dropped_and_the_rest_stays() -> None:
    kept, store = DurableCopy(), RunStore()
    for part in ("7.", "8."):
        OneBucket(FLOW, store.part(part), {}).on_batch(inputs(FLOW, BATCHES[0]))
    kept.save(store)
    before = {number for number, entry in kept.entries.items() if entry.arrangement.startswith("8.")}
    for opened in (True, False):
        again = kept.restored()
        if opened:
            OneBucket(FLOW, again.part("7."), {})
        again.drop("7.")
        assert not [name for name in (*again.runs, *again.unsorted, *again.scalars) if name.startswith("7.")]
        left = DurableCopy(dict(kept.entries), kept.scalars)
        left.save(again)
        assert set(left.entries) == before


def test_a_part_measures_itself_alone() -> None:
    store = RunStore()
    bucket = OneBucket(FLOW, store.part("7."), {})
    bucket.on_batch(inputs(FLOW, {1: users("a")}))
    OneBucket(FLOW, store.part("8."), {}).on_batch(inputs(FLOW, BATCHES[0]))
    assert [bucket.stores[level].rows for level in (1, 2)] == [8, 8]
    assert store.rows > 16
    assert np.sum([bucket.stores[level].buffered_bytes for level in (1, 2)]) < store.buffered_bytes
