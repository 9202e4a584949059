"""A checkpoint in another folder: Spark's notes name the one that it is in."""

from __future__ import annotations

import shutil
from pathlib import Path

from dovetail.runtime.storage.local_folder import LocalFolder
from dovetail.spark_jobs.state.relocation import rewrite_schema_paths
from tests.spark.releases.write import CHECKPOINTS

KEPT = CHECKPOINTS / "0.1.0" / "release_pairs" / "checkpoint"


def paths_in(folder: Path) -> list[str]:
    return [path.read_text() for path in sorted((folder / "state").glob("*/_metadata/v2/[0-9]*"))]


def test_the_notes_of_every_level_name_the_folder_they_are_in(tmp_path: Path) -> None:
    moved = tmp_path / "with a blank"
    shutil.copytree(KEPT / "spark", moved)
    sums = [folder / ".0.crc" for folder in (moved / "state").glob("*/_metadata/v2")]
    for path in sums:
        path.write_bytes(b"crc\0\0\2\0\0\xb8")
    rewrite_schema_paths(LocalFolder(moved))
    assert not any(path.exists() for path in sums)
    notes = paths_in(moved)
    assert len(notes) == 2
    for level, note in enumerate(notes):
        assert f'"file:{moved}/state/{level}/_stateSchema/default/' in note
        assert "elsewhere" not in note


def test_notes_that_name_it_already_stay_as_they_are(tmp_path: Path) -> None:
    shutil.copytree(KEPT / "spark", tmp_path / "spark")
    rewrite_schema_paths(LocalFolder(tmp_path / "spark"))
    before = {path: path.stat().st_ino for path in (tmp_path / "spark" / "state").glob("*/_metadata/v2/*")}
    rewrite_schema_paths(LocalFolder(tmp_path / "spark"))
    assert {path: path.stat().st_ino for path in before} == before
