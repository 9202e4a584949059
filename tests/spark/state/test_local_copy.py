"""The local copy of the state: what it keeps, and that anything doubtful is a miss."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from dovetail.broker.query_origin import FORMAT
from dovetail.changelog.changes import Changes
from dovetail.joins.state.arrangement import Arrangement
from dovetail.joins.state.store import RunStore
from dovetail.spark_jobs.state import local_copy, store_manifest
from dovetail.spark_jobs.state.local_copy import LocalCopy, StateVersion

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.string())])


def insert(store: RunStore, *rows: tuple[int, str]) -> None:
    keys, values = zip(*rows, strict=True)
    Arrangement(store, "left", SCHEMA, ("k",)).insert(
        Changes.of(pa.table([pa.array(keys, pa.int64()), pa.array(values)], schema=SCHEMA))
    )


def rows(store: RunStore | None) -> list[tuple[int, str]]:
    assert store is not None
    tables = [run.table for _, run in store.all_runs()]
    return sorted((row["k"], row["v"]) for table in tables for row in table.to_pylist())


@pytest.fixture
def copy(tmp_path: Path) -> LocalCopy:
    return LocalCopy(tmp_path / "1-0", max_bytes=1 << 20)


@pytest.fixture
def store() -> RunStore:
    store = RunStore(scalars={"mark.0.0": 17})
    insert(store, (1, "a"), (2, "b"))
    return store


FIRST, SECOND, THIRD = (StateVersion(number, f"token{number}") for number in (1, 2, 3))


def test_a_store_comes_back_as_it_was(tmp_path: Path, copy: LocalCopy, store: RunStore) -> None:
    copy.save(store, FIRST)

    back = LocalCopy(tmp_path / "1-0", 1 << 20).load(FIRST)

    assert rows(back) == [(1, "a"), (2, "b")]
    assert back is not None
    assert (back.scalars, back.next_id) == (store.scalars, store.next_id)
    assert [(name, run.entries) for name, run in back.all_runs()] == [
        (name, run.entries) for name, run in store.all_runs()
    ]


def test_a_copy_that_another_release_has_written_is_a_miss(
    tmp_path: Path, copy: LocalCopy, store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy.save(store, FIRST)
    monkeypatch.setattr(store_manifest, "FORMAT", FORMAT + 1)
    assert LocalCopy(tmp_path / "1-0", 1 << 20).load(FIRST) is None


def test_another_attempt_at_the_same_version_is_a_miss(copy: LocalCopy, store: RunStore) -> None:
    copy.save(store, FIRST)

    assert copy.load(StateVersion(1, "another")) is None


def test_a_run_is_written_once(tmp_path: Path, copy: LocalCopy) -> None:
    store = RunStore()
    insert(store, *((n, "x") for n in range(1000)))
    copy.save(store, FIRST)
    before = {path.name for path in (tmp_path / "1-0").glob("*.arrow")}

    insert(store, (1, "new"))
    copy.save(store, SECOND)

    assert before < {path.name for path in (tmp_path / "1-0").glob("*.arrow")}
    assert len(rows(copy.load(SECOND))) == 1001


def test_the_last_two_versions_are_kept(tmp_path: Path, copy: LocalCopy, store: RunStore) -> None:
    for version in (FIRST, SECOND, THIRD):
        insert(store, (version.number, "later"))
        copy.save(store, version)

    assert sorted(path.name for path in (tmp_path / "1-0").glob("*.json")) == [SECOND.manifest, THIRD.manifest]
    assert copy.load(FIRST) is None
    assert len(rows(copy.load(SECOND))) == 4


@pytest.mark.parametrize("harm", ["truncate", "remove", "manifest"])
def test_a_damaged_copy_is_a_miss(tmp_path: Path, copy: LocalCopy, store: RunStore, harm: str) -> None:
    copy.save(store, FIRST)
    [run] = (tmp_path / "1-0").glob("*.arrow")
    if harm == "truncate":
        run.write_bytes(run.read_bytes()[:-10])
    elif harm == "remove":
        run.unlink()
    else:
        (tmp_path / "1-0" / FIRST.manifest).write_text("{")

    assert copy.load(FIRST) is None


def test_a_copy_from_before_a_crash_of_the_machine_is_a_miss(
    tmp_path: Path, copy: LocalCopy, store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy.save(store, FIRST)
    (tmp_path / "boot").write_text("another boot")
    monkeypatch.setattr(local_copy, "_BOOT", tmp_path / "boot")

    assert copy.load(FIRST) is None


@pytest.mark.parametrize("content", ["", "\0" * 40, "{}", "[]"])
def test_a_manifest_that_a_loss_of_power_has_emptied_stands_in_nobody_s_way(
    tmp_path: Path, copy: LocalCopy, store: RunStore, content: str
) -> None:
    folder = tmp_path / "1-0"
    folder.mkdir()
    (folder / "000000000005-before.json").write_text(content)
    assert copy.save(store, StateVersion(5, "now"))
    assert copy.load(StateVersion(5, "now")) is not None
    assert not (folder / "000000000005-before.json").exists()


def test_a_state_above_the_limit_leaves_no_copy(tmp_path: Path, store: RunStore) -> None:
    small = LocalCopy(tmp_path / "1-0", max_bytes=10)
    small.save(store, FIRST)

    assert small.load(FIRST) is None
    assert list((tmp_path / "1-0").glob("*")) == []


def test_a_folder_that_cannot_be_made_is_a_miss(tmp_path: Path, store: RunStore) -> None:
    (tmp_path / "file").write_text("in the way")
    copy = LocalCopy(tmp_path / "file" / "1-0", 1 << 20)
    copy.save(store, FIRST)

    assert copy.load(FIRST) is None
