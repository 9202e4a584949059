"""What a loss of power leaves at the end of a checkpoint is cut off; what is sound stays."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pytest

from dovetail.runtime.storage.local_folder import LocalFolder
from dovetail.spark_jobs.state.damaged_tail import cut_damaged_tail

OFFSETS = 'v1\n{"conf":{}}\n{"t":{"0":1}}'
COMMIT = 'v1\n{"nextBatchWatermarkMs":0}'
TABLE = b"\0rows of a table" + (0x88E241B785F4CFF7).to_bytes(8, "little")


def snapshot(table: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        described = {"sstFiles": [{"dfsSstFileName": table, "sizeBytes": len(TABLE)}]}
        file.writestr("metadata", f"v1\n{json.dumps(described)}")
    return content.getvalue()


@pytest.fixture
def spark(tmp_path: Path) -> Path:
    """Five batches that are committed, and one that has begun; two stores, with a snapshot of version 3."""
    for folder in ("offsets", "commits", "state/0/_metadata/v2", "state/0/0/SSTs", "state/0/1/SSTs"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "state/0/_metadata/v2/0").write_text('v2\n{"stateStoreInfo":[]}')
    for batch in range(6):
        (tmp_path / f"offsets/{batch}").write_text(OFFSETS)
        (tmp_path / f"offsets/.{batch}.crc").write_text("sum")
    for batch in range(5):
        (tmp_path / f"commits/{batch}").write_text(COMMIT)
        for store in range(2):
            (tmp_path / f"state/0/{store}/{batch + 1}.changelog").write_text("LZ4Block")
    for store in range(2):
        (tmp_path / f"state/0/{store}/3.zip").write_bytes(snapshot("8-a.sst"))
        (tmp_path / f"state/0/{store}/SSTs/8-a.sst").write_bytes(TABLE)
    return tmp_path


def numbers(folder: Path) -> list[int]:
    return sorted(int(path.name) for path in folder.iterdir() if path.name.isdigit())


def test_nothing_is_cut_off_a_sound_checkpoint(spark: Path) -> None:
    before = sorted(spark.rglob("*"))
    assert cut_damaged_tail(LocalFolder(spark)) == ""
    assert sorted(spark.rglob("*")) == before


@pytest.mark.parametrize("content", [b"", b"\0" * 60, b"v1\n"])
@pytest.mark.parametrize(
    ("damaged", "commits", "offsets"),
    [
        ("offsets/5", 4, 4),
        ("commits/4", 3, 4),
        ("offsets/4", 3, 3),
        ("commits/3", 2, 3),
        ("state/0/1/5.changelog", 3, 4),
        ("state/0/0/2.changelog", 4, 5),
        ("state/0/_metadata/v2/0", -1, 0),
    ],
)
def test_the_query_goes_on_behind_the_last_sound_batch(
    spark: Path, damaged: str, commits: int, offsets: int, content: bytes
) -> None:
    if damaged.endswith(".changelog") and content.startswith(b"v1"):
        content = b""
    (spark / damaged).write_bytes(content)
    assert f"goes on behind batch {commits}" in cut_damaged_tail(LocalFolder(spark))
    assert numbers(spark / "commits") == list(range(commits + 1))
    assert numbers(spark / "offsets") == list(range(offsets + 1))
    assert not (spark / f"offsets/.{offsets + 1}.crc").exists()
    assert cut_damaged_tail(LocalFolder(spark)) == ""


@pytest.mark.parametrize("harm", ["the snapshot", "its table", "its table is gone", "the end of its table"])
def test_a_snapshot_that_is_damaged_goes_where_the_changes_since_lead_there(spark: Path, harm: str) -> None:
    match harm:
        case "the snapshot":
            (spark / "state/0/0/3.zip").write_bytes(b"")
        case "its table":
            (spark / "state/0/0/SSTs/8-a.sst").write_bytes(b"")
        case "its table is gone":
            (spark / "state/0/0/SSTs/8-a.sst").unlink()
        case _:
            (spark / "state/0/0/SSTs/8-a.sst").write_bytes(TABLE[:-8] + bytes(8))
    assert "goes on behind batch 4" in cut_damaged_tail(LocalFolder(spark))
    assert not (spark / "state/0/0/3.zip").exists()
    assert (spark / "state/0/1/3.zip").exists()


def test_a_first_start_has_nothing_to_cut(tmp_path: Path) -> None:
    assert cut_damaged_tail(LocalFolder(tmp_path)) == ""
