"""The durable state of a fused query: what it keeps, and that what is damaged is passed over."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from dovetail.changelog.changes import Changes
from dovetail.changelog.errors import CheckpointMismatch
from dovetail.joins.state.arrangement import Arrangement
from dovetail.joins.state.store import RunStore
from dovetail.runtime.storage.local_folder import LocalFolder
from dovetail.spark_jobs.state.durable_runs import DurableRuns
from dovetail.spark_jobs.state.store_manifest import FileNames

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.string())])


def insert(store: RunStore, *keys: int) -> None:
    rows = pa.table([pa.array(keys, pa.int64()), pa.array(["v"] * len(keys))], schema=SCHEMA)
    Arrangement(store, "left", SCHEMA, ("k",)).insert(Changes.of(rows))


def keys_of(store: RunStore | None) -> list[int]:
    assert store is not None
    return sorted(key for _, run in store.all_runs() for key in run.table.column("k").to_pylist())


@pytest.fixture
def durable(tmp_path: Path) -> DurableRuns:
    return DurableRuns(LocalFolder(tmp_path))


def test_the_state_of_a_place_comes_back_as_it_was(durable: DurableRuns) -> None:
    store = RunStore(scalars={"watermark.0": 5})
    insert(store, 3, 1)
    durable.save(store, FileNames(), 7, "here")

    back = durable.at("here")

    assert keys_of(back) == [1, 3]
    assert (back.scalars, back.next_id) == (store.scalars, store.next_id)
    assert [(one.number, one.place) for one in durable.versions()] == [(7, "here")]
    assert durable.saved_s > 0
    with pytest.raises(CheckpointMismatch, match="the state of the last batch is not there"):
        durable.at("there")


def test_the_last_two_versions_are_kept_and_their_runs_once(durable: DurableRuns, tmp_path: Path) -> None:
    store, names = RunStore(), FileNames()
    insert(store, *range(1000))
    for number in range(1, 5):
        insert(store, 1000 + number)
        durable.save(store, names, number, f"place {number}")

    assert [one.place for one in durable.versions()] == ["place 4", "place 3"]
    large = names.of(next(run for _, run in store.all_runs() if len(run) >= 1000))
    manifests = sorted((tmp_path / "state").glob("*.json"))
    assert all(large in manifest.read_text() for manifest in manifests)
    named = {name for manifest in manifests for name in manifest.read_text().split('"') if name.endswith(".arrow")}
    assert {path.name for path in (tmp_path / "state").glob("*.arrow")} == named


def test_another_attempt_at_a_batch_writes_files_of_its_own(durable: DurableRuns) -> None:
    """Its run has the same number, and other rows."""
    first, second = RunStore(), RunStore()
    insert(first, 1)
    insert(second, 2)
    durable.save(first, FileNames(), 1, "first")
    durable.save(second, FileNames(), 1, "second")

    assert (keys_of(durable.at("first")), keys_of(durable.at("second"))) == ([1], [2])


@pytest.mark.parametrize("damage", ["a run is gone", "a run is cut off", "the manifest is cut off"])
def test_a_damaged_version_is_passed_over(durable: DurableRuns, tmp_path: Path, damage: str) -> None:
    store, names = RunStore(), FileNames()
    insert(store, 1)
    durable.save(store, names, 1, "sound")
    damaged = RunStore()
    insert(damaged, *range(500))
    other = FileNames()
    durable.save(damaged, other, 2, "damaged")
    [run] = [tmp_path / "state" / other.of(run) for _, run in damaged.all_runs()]
    [manifest] = (tmp_path / "state").glob(f"{2:012d}-*.json")
    match damage:
        case "a run is gone":
            run.unlink()
        case "a run is cut off":
            run.write_bytes(run.read_bytes()[:100])
        case _:
            manifest.write_text(manifest.read_text()[:50])

    found = [(one.place, durable.load(one, FileNames())) for one in durable.versions()]

    assert [(place, keys_of(state)) for place, state in found if state is not None] == [("sound", [1])]
