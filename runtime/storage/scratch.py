"""A folder for what a process needs while it lives, and nobody afterwards."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp

_LOCK = "lock"


@contextmanager
def scratch(root: Path) -> Iterator[Path]:
    """A new folder in ``root``, removed at the end.

    A process that is killed removes nothing. So each holds a lock while it lives, and the next to begin removes the
    folders that nobody holds: they never become more than there were processes at once.
    """
    root.mkdir(parents=True, exist_ok=True)
    with (root / _LOCK).open("w") as door:
        # Between the making of a folder and its lock, none may look at it.
        fcntl.flock(door, fcntl.LOCK_EX)
        for left in root.iterdir():
            if left.is_dir():
                _remove_unless_held(left)
        folder = Path(mkdtemp(dir=root, prefix=f"{os.getpid()}-"))
        lock = (folder / _LOCK).open("w")
        fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        lock.close()


def _remove_unless_held(folder: Path) -> None:
    with suppress(FileNotFoundError, BlockingIOError), (folder / _LOCK).open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
