"""State files of attempts that never committed go; all others stay."""

from __future__ import annotations

from pathlib import Path

from dovetail.runtime.storage.local_folder import LocalFolder
from dovetail.spark_jobs.state.uncommitted import forget_uncommitted


def test_versions_behind_the_last_commit_are_removed(tmp_path: Path) -> None:
    partition = tmp_path / "state" / "0" / "1"
    kept = ["1.zip", ".1.zip.crc", "3.changelog", ".3.changelog.crc"]
    gone = [
        "4.changelog",
        ".4.changelog.crc",
        "4.zip",
        ".5.changelog.49601132.TID3.tmp",
        "..2.changelog.1.tmp.crc",
    ]
    _made(partition, [*kept, *gone])
    _made(partition / "SSTs", ["000008-64784810.sst"])
    _made(tmp_path / "state" / "0" / "_metadata" / "v2", ["9"])
    _made(tmp_path / "commits", ["0", "1", "2", ".2.crc"])
    forget_uncommitted(LocalFolder(tmp_path))
    assert sorted(path.name for path in partition.iterdir()) == sorted([*kept, "SSTs"])
    assert (partition / "SSTs" / "000008-64784810.sst").exists()
    assert (tmp_path / "state" / "0" / "_metadata" / "v2" / "9").exists()


def test_before_the_first_commit_no_version_is_kept(tmp_path: Path) -> None:
    partition = tmp_path / "state" / "0" / "0"
    _made(partition, ["1.changelog", ".1.changelog.crc"])
    forget_uncommitted(LocalFolder(tmp_path))
    assert list(partition.iterdir()) == []


def test_a_checkpoint_that_is_not_there_has_nothing_to_forget(tmp_path: Path) -> None:
    forget_uncommitted(LocalFolder(tmp_path / "absent"))


def _made(directory: Path, names: list[str]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name in names:
        (directory / name).touch()
