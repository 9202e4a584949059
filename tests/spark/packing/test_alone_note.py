"""A view that is to run alone for a while."""

from __future__ import annotations

from pathlib import Path

from dovetail.runtime.storage.local_folder import LocalFolder
from dovetail.spark_jobs.packing.alone_note import is_to_be_alone, note_alone


def test_a_note_holds_until_its_time(tmp_path: Path) -> None:
    checkpoint = LocalFolder(tmp_path)
    assert not is_to_be_alone(checkpoint, 0)
    note_alone(checkpoint, 1000)
    assert is_to_be_alone(checkpoint, 999)
    assert not is_to_be_alone(checkpoint, 1000)
