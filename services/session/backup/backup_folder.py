"""The folder of a backup.

<path>/backup.json            what there is, with the sum of every file: written last
<path>/checkpoints/<query>/   the checkpoints of the fragments that Spark runs

It is made beside its place and renamed when all of it is on the disk, so what has the name is whole. What the broker
holds, records, memos, offsets and marks, is no part of it.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dovetail.broker.query_origin import ORIGIN_FILE
from dovetail.changelog.errors import CheckpointMismatch, SqlError
from dovetail.runtime.settings import Settings
from dovetail.runtime.storage.local_folder import LocalFolder, sync_path
from dovetail.runtime.storage.places import folder_name
from dovetail.runtime.storage.storage import Storage, copy_file

VERSION = 1
_MANIFEST = "backup.json"
_CHECKPOINTS = "checkpoints"
_ATTEMPTS = 5


@dataclass(frozen=True)
class SavedRelation:
    """A definition as its user wrote it, and the names that it uses. ``masked``: passwords in it were left out."""

    name: str
    ddl: str
    uses: tuple[str, ...]
    masked: bool = False


@dataclass(frozen=True)
class SavedQuery:
    """A fragment of the view: its entry in the catalog, and what the broker had of it.

    checkpoint  the text of the origin, of a lookup query; of others it stands in the folder
    committed   topic → partition → the offset or mark that the broker had when the backup was made
    """

    name: str
    sql: str
    plan: str
    fingerprint: str
    topic: str
    engine: str
    checkpoint: str
    progress: Mapping[str, Any]
    committed: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class Backup:
    """A view and what it needs, in the order in which it is made again.

    expected   materialized views that it reads: they have backups of their own
    """

    view: str
    relations: tuple[SavedRelation, ...]
    queries: tuple[SavedQuery, ...]
    expected: tuple[str, ...] = ()


def backup_place(settings: Settings, path: str, clause: str) -> Path:
    """The folder that a statement names: any, or one below DOVETAIL_BACKUP_DIR, where that is set. Raises SqlError."""
    if settings.backup_dir is None:
        return Path(path).absolute()
    root = settings.backup_dir.resolve()
    place = (root / path).resolve()
    if root not in place.parents:
        raise SqlError(
            f"{path} is outside of the folder of backups",
            where=clause,
            fix=f"name a folder below {root}, or set DOVETAIL_BACKUP_DIR",
        )
    return place


def write_backup(place: Path, backup: Backup, checkpoints: Mapping[str, Storage]) -> None:
    """``checkpoints``: by query; nobody may be at work in them. Raises SqlError where there is something already."""
    if place.exists():
        raise SqlError(f"{place} is there already", where="BACKUP VIEW", fix="name a folder that is not there yet")
    unfinished = place.with_name(f".{place.name}.{uuid.uuid4().hex[:8]}.unfinished")
    try:
        (unfinished / _CHECKPOINTS).mkdir(parents=True, mode=0o700)
        unfinished.chmod(0o700)
        for query, checkpoint in checkpoints.items():
            _copied(checkpoint, checkpoint_in(unfinished, query))
        sums = {str(path.relative_to(unfinished)): _sum(path) for path in _files(unfinished)}
        members = {"version": VERSION, **asdict(backup), "files": sums}
        (unfinished / _MANIFEST).write_text(json.dumps(members, indent=1))
        for path in [*_files(unfinished), *(path for path in unfinished.rglob("*") if path.is_dir()), unfinished]:
            sync_path(path)
        unfinished.rename(place)
        sync_path(place.parent)
    except OSError as failure:
        raise SqlError(
            f"the backup could not be written: {failure}", where=str(place), fix="name a folder that can be written to"
        ) from failure
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def read_backup(place: Path) -> Backup:
    """Raises CheckpointMismatch where it is not whole, or of a newer release."""
    manifest = place / _MANIFEST
    if not manifest.exists():
        raise _unusable(place, "there is no backup, or one that was never finished: it has no backup.json")
    try:
        members = json.loads(manifest.read_text())
        version, sums = members.pop("version"), members.pop("files")
    except (ValueError, KeyError, AttributeError) as fault:
        raise _unusable(place, f"backup.json cannot be read: {fault}") from fault
    if version != VERSION:
        raise _unusable(place, f"the backup has version {version}, and this release reads version {VERSION}")
    _expect_whole(place, sums)
    relations = tuple(SavedRelation(**one | {"uses": tuple(one["uses"])}) for one in members["relations"])
    queries = tuple(SavedQuery(**one) for one in members["queries"])
    return Backup(members["view"], relations, queries, tuple(members["expected"]))


def checkpoint_in(place: Path, query: str) -> Path:
    own, as_named = place / _CHECKPOINTS / folder_name(query), place / _CHECKPOINTS / query
    is_name = "/" not in query and not query.startswith(".")
    # Backups of before have folders of the very names.
    return as_named if is_name and not own.exists() and as_named.is_dir() else own


def put_checkpoint(place: Path, query: str, checkpoint: Storage) -> None:
    """A copy of what the backup has of a query: its origin last, without which it is none."""
    kept = LocalFolder(checkpoint_in(place, query))
    for name in sorted(kept.files(), key=lambda name: name == ORIGIN_FILE):
        copy_file(kept, name, checkpoint)


def _expect_whole(place: Path, sums: Mapping[str, str]) -> None:
    there = {str(path.relative_to(place)) for path in _files(place)} - {_MANIFEST}
    if lost := sorted(sums.keys() - there):
        raise _unusable(place, f"{lost[0]} is not there")
    for name, expected in sums.items():
        if _sum(place / name) != expected:
            raise _unusable(place, f"{name} is not what was written")


def _unusable(place: Path, what: str) -> CheckpointMismatch:
    return CheckpointMismatch(what, where=str(place), fix="name another backup")


def _copied(checkpoint: Storage, target: Path) -> None:
    """Spark removes old versions of its state for a while after a query has ended: then it is copied once more."""
    for attempt in range(_ATTEMPTS):
        try:
            for name in checkpoint.files():
                copy_file(checkpoint, name, LocalFolder(target))
            return
        except FileNotFoundError:
            shutil.rmtree(target, ignore_errors=True)
            if attempt == _ATTEMPTS - 1:
                raise


def _files(folder: Path) -> Sequence[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
