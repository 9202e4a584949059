"""What a checkpoint begins with: written by former buckets, read by new ones."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from dovetail.changelog.changes import DELTA, DELTA_TYPE
from dovetail.joins.state.durable_copy import DurableCopy
from dovetail.joins.state.store import ENTRY_ROWS, RunEntry, RunStore
from dovetail.runtime.storage.local_folder import LocalFolder
from dovetail.spark_jobs.state.seed import Seed, SeedWriter


def rows(*keys: int) -> pa.Table:
    schema = pa.schema([pa.field("k", pa.int64()), pa.field(DELTA, DELTA_TYPE, nullable=False)])
    return pa.table([pa.array(keys, pa.int64()), pa.array([1] * len(keys), DELTA_TYPE)], schema=schema)


@pytest.fixture
def seed(tmp_path: Path) -> Seed:
    found = Seed(LocalFolder(tmp_path))
    for former, keys in ((10, [3]), (2, [1, 2])):
        with SeedWriter(found, 1) as writer:
            for key in keys:
                writer.write(former, 0, RunEntry("0.left", rows(key)))
            writer.write(former, 1, RunEntry("0.right.current", rows(former)))
    found.put_scalars(1, {"watermark.0": 5})
    return found


def keys_of(store: RunStore) -> dict[str, list[int]]:
    durable = DurableCopy()
    durable.save(store)
    return {entry.arrangement: entry.table.column("k").to_pylist() for entry in durable.entries.values()}


def test_a_bucket_begins_with_the_rows_that_came_to_it_in_their_order(seed: Seed) -> None:
    assert seed.there
    assert (seed.rows, seed.bytes > 0) == (5, True)
    assert keys_of(seed.store(1, 0)) == {"0.left": [1, 2, 3]}
    assert keys_of(seed.store(1, 1)) == {"0.right.current": [2, 10]}
    assert seed.store(1, 1).scalars == {"watermark.0": 5}
    assert keys_of(seed.store(1, 2)) == {}


def test_it_goes_with_the_first_commit_and_not_before(seed: Seed, tmp_path: Path) -> None:
    for log in ("offsets", "commits"):
        (tmp_path / "spark" / log).mkdir(parents=True)
    (tmp_path / "spark" / "offsets" / "0").write_text('v1\n{}\n{"orders":{"0":9}}')
    seed.drop_once_committed()
    assert seed.there
    (tmp_path / "spark" / "commits" / "0").write_text("v1\n{}")
    seed.drop_once_committed()
    assert not seed.there
    assert keys_of(seed.store(1, 0)) == {}


def test_a_large_arrangement_is_made_durable_in_pieces() -> None:
    store = RunStore.seeded([RunEntry("0.left", rows(*range(ENTRY_ROWS))), RunEntry("0.left", rows(7))], {"next_id": 9})
    assert [len(entry.table) for entry in store.flush().written.values()] == [ENTRY_ROWS, 1]
