"""The folder in which a machine keeps what makes its tasks quick: copies of states and of static tables.

<root>/<identity>/checkpoint          where the checkpoint of the query is
<root>/<identity>/<level>-<bucket>/   the copy of a bucket's state (``LocalCopy``)
<root>/<identity>/snapshots/          the copies of its static tables

The root is the one that is set, on whatever machine the task runs; else the executor's own working folder, which goes
with it. All of it may be deleted at any time.
"""

from __future__ import annotations

import os
import shutil
import socket
import time
import uuid
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from dovetail.changelog.errors import DovetailError, EnvironmentFault
from dovetail.runtime.storage.places import beside
from dovetail.runtime.storage.storage import Storage
from dovetail.spark_jobs.state.checkpoint import Checkpoint

SNAPSHOTS = "snapshots"
_NOTE = "checkpoint"
_TIDY_S = 60.0
_tidied_s: dict[Path, float] = {}


def of_executor() -> Path:
    """The folder of the executor that this Python worker works for."""
    return Path(os.environ["SPARK_LOCAL_DIRS"].split(",")[0]) / "dovetail"


@lru_cache(maxsize=256)
def opened(root: Path, identity: str, checkpoint: Storage) -> Path:
    """The folder of the query whose checkpoint is ``checkpoint``.

    EnvironmentFault where that cannot be seen from here: Spark would write the state to a disk that nobody else reads.
    ServiceUnavailable, StorageRefused where an object store does not say.
    """
    if Checkpoint(checkpoint).identity != identity:
        raise EnvironmentFault(
            "an executor does not see the checkpoint of the query",
            where=f"{checkpoint.location}, on {socket.gethostname()}",
            fix="have DOVETAIL_CHECKPOINT_DIR on storage that every machine mounts under this path",
        )
    folder = root / identity
    with suppress(OSError):  # a full disk: there will be no copies then
        folder.mkdir(parents=True, exist_ok=True)
        _put(folder / _NOTE, checkpoint.location.encode())
    return folder


def own_copy(source: Storage, name: str, folder: Path) -> Path:
    """The copy of a file that never changes, on this machine's disk; it is made where there is none."""
    copy = folder / name
    if not copy.exists() or copy.stat().st_size != source.size(name):
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = folder / f".{uuid.uuid4().hex}.tmp"
        try:
            with source.opened(name) as read, unfinished.open("wb") as written:
                shutil.copyfileobj(read, written, 1 << 20)
                written.flush()
                os.fsync(written.fileno())
            unfinished.replace(copy)
        finally:
            unfinished.unlink(missing_ok=True)
    return copy


def removed(root: Path, identity: str) -> None:
    """Remove what this machine keeps of a query under ``root``."""
    shutil.rmtree(root.absolute() / identity, ignore_errors=True)


def tidy_now_and_then(root: Path, max_bytes: int, checkpoint: Storage) -> None:
    """``tidy``, once a minute and process."""
    now_s = time.monotonic()
    if now_s - _tidied_s.get(root, -_TIDY_S) >= _TIDY_S:
        _tidied_s[root] = now_s
        tidy(root, max_bytes, checkpoint)


def tidy(root: Path, max_bytes: int, checkpoint: Storage) -> None:
    """Remove what is kept of queries that are gone; then copies, those that were not touched for longest first, until
    all together are no more than ``max_bytes``.

    A task that works with what is removed here keeps what it has mapped, or finds no copy and reads the state.

    checkpoint  of a query that is at work: how an object store is asked for those of others
    """
    for note in root.glob(f"*/{_NOTE}"):
        with suppress(OSError, DovetailError):
            place = beside(checkpoint, note.read_text())
            if place is not None and Checkpoint(place).identity != note.parent.name:
                shutil.rmtree(note.parent, ignore_errors=True)
    kept = _bytes(root)
    for copy in sorted(_copies(root), key=_touched):
        if kept <= max_bytes:
            return
        kept -= _bytes(copy)
        shutil.rmtree(copy, ignore_errors=True)


def _copies(root: Path) -> list[Path]:
    """Those of static tables are not among them: whoever needs them would make them again at once."""
    return [copy for copy in root.glob("*/*") if copy.name != SNAPSHOTS and copy.is_dir()]


def _touched(copy: Path) -> float:
    try:
        return copy.stat().st_mtime
    except OSError:
        return 0.0


def _bytes(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):  # it may go meanwhile
            total += path.stat().st_size if path.is_file() else 0
    return total


def _put(path: Path, content: bytes) -> None:
    if not path.exists() or path.read_bytes() != content:
        unfinished = path.with_name(f".{uuid.uuid4().hex}.tmp")
        unfinished.write_bytes(content)
        unfinished.replace(path)
