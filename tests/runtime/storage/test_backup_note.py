"""Whether a checkpoint may have a backup that can still be restored."""

from __future__ import annotations

from pathlib import Path

from dovetail.runtime.storage.backup_note import has_backup, note_backup
from dovetail.runtime.storage.local_folder import LocalFolder

DAY_MS = 86_400_000


def test_it_has_one_for_a_week(tmp_path: Path) -> None:
    checkpoint = LocalFolder(tmp_path / "7-v")
    assert not has_backup(checkpoint, 0)
    note_backup(checkpoint, 5)
    assert has_backup(checkpoint, 6 * DAY_MS)
    assert not has_backup(checkpoint, 7 * DAY_MS + 5)
    note_backup(checkpoint, 7 * DAY_MS)
    assert has_backup(checkpoint, 7 * DAY_MS + 5)
