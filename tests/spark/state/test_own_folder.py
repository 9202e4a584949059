"""What a machine keeps of queries: whose it is, how much, and for how long."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dovetail.broker.query_origin import QueryOrigin
from dovetail.changelog.errors import EnvironmentFault
from dovetail.runtime.storage.local_folder import LocalFolder
from dovetail.spark_jobs.state.own_folder import SNAPSHOTS, of_executor, opened, own_copy, tidy

LARGE = 1 << 30


def checkpoint(folder: Path, name: str) -> tuple[str, Path]:
    """The identity of a query that has started, and its checkpoint."""
    identity = QueryOrigin.new_identity(name)
    place = folder / "checkpoints" / name
    place.mkdir(parents=True)
    (place / "query.json").write_text(QueryOrigin(identity, "1", "", ({},), buckets=1, topic_ids={}, history={}).text)
    return identity, place


def kept(root: Path, tmp_path: Path, name: str, *copies: str, touched_s: int = 1, size: int = 100) -> Path:
    """The folder of a query with files of ``size``, the first one touched longest ago."""
    identity, place = checkpoint(tmp_path, name)
    folder = opened(root, identity, LocalFolder(place))
    for number, copy in enumerate(copies):
        (folder / copy).mkdir()
        (folder / copy / "run.arrow").write_bytes(b"x" * size)
        os.utime(folder / copy, (touched_s + number, touched_s + number))
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "copies"


def test_the_folder_of_an_executor_is_where_spark_has_its_own_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path}/a,{tmp_path}/b")
    assert of_executor() == tmp_path / "a" / "dovetail"


def test_a_checkpoint_that_a_machine_does_not_see_is_refused(root: Path, tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match="does not see the checkpoint") as refused:
        opened(root, "view-1", LocalFolder(tmp_path / "not-mounted"))
    assert str(tmp_path / "not-mounted") in refused.value.where
    assert "DOVETAIL_CHECKPOINT_DIR" in refused.value.fix
    _, place = checkpoint(tmp_path, "another")
    with pytest.raises(EnvironmentFault, match="does not see the checkpoint"):
        opened(root, "view-1", LocalFolder(place))


def test_what_is_kept_of_queries_that_are_gone_is_removed(root: Path, tmp_path: Path) -> None:
    stays, dropped, again = (kept(root, tmp_path, name, "1-0", SNAPSHOTS) for name in ("stays", "dropped", "again"))
    (tmp_path / "checkpoints" / "dropped" / "query.json").unlink()
    other = QueryOrigin(QueryOrigin.new_identity("again"), "1", "", ({},), buckets=1, topic_ids={}, history={})
    (tmp_path / "checkpoints" / "again" / "query.json").write_text(other.text)

    tidy(root, LARGE, LocalFolder(tmp_path))

    assert [folder.exists() for folder in (stays, dropped, again)] == [True, False, False]
    assert (stays / "1-0" / "run.arrow").exists()


def test_a_query_whose_checkpoint_stands_elsewhere_now_keeps_its_copies(root: Path, tmp_path: Path) -> None:
    identity, place = checkpoint(tmp_path, "moved")
    folder = opened(root, identity, LocalFolder(place))
    moved = place.rename(tmp_path / "restored")
    assert opened(root, identity, LocalFolder(moved)) == folder

    tidy(root, LARGE, LocalFolder(tmp_path))

    assert folder.exists()


def test_of_too_many_copies_those_go_that_were_not_touched_for_longest(root: Path, tmp_path: Path) -> None:
    old = kept(root, tmp_path, "old", "1-0", "1-1", SNAPSHOTS, touched_s=10)
    new = kept(root, tmp_path, "new", "1-0", "1-1", touched_s=20)
    notes = sum((folder / "checkpoint").stat().st_size for folder in (old, new))

    tidy(root, notes + 300, LocalFolder(tmp_path))

    assert sorted(str(path.relative_to(root)) for path in root.glob("*/*") if path.is_dir()) == sorted(
        [f"{old.name}/{SNAPSHOTS}", f"{new.name}/1-0", f"{new.name}/1-1"]
    )


def test_nothing_goes_as_long_as_there_is_room(root: Path, tmp_path: Path) -> None:
    folder = kept(root, tmp_path, "view", "1-0", "1-1")
    tidy(root, (folder / "checkpoint").stat().st_size + 200, LocalFolder(tmp_path))
    assert (folder / "1-0").exists()


def test_a_static_table_is_copied_once_and_a_broken_copy_again(tmp_path: Path) -> None:
    source = tmp_path / "colours.arrow"
    source.write_bytes(b"content")
    copy = own_copy(LocalFolder(tmp_path), "colours.arrow", tmp_path / "own")
    made_ns = copy.stat().st_mtime_ns
    assert (copy.parent, copy.read_bytes()) == (tmp_path / "own", b"content")
    assert own_copy(LocalFolder(tmp_path), "colours.arrow", tmp_path / "own").stat().st_mtime_ns == made_ns

    copy.write_bytes(b"cont")

    assert own_copy(LocalFolder(tmp_path), "colours.arrow", tmp_path / "own").read_bytes() == b"content"
    assert [path.name for path in copy.parent.iterdir()] == ["colours.arrow"]
