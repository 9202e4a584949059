"""The lease under which a child serves: it ends with its worker, also with one that stands still.

A worker that gives no sign of life for 10 s is taken to be gone: no command waits for it any longer. Its children hear
of commands through it alone, so they must not serve on.

    worker stands still ─▶ 5 s: its children end ─▶ 10 s: nobody waits for it
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from dovetail.changelog.work.supervised_thread import PeriodicThread

LEASE_S = 5.0
_RENEWED_EVERY_S = 0.5
_NAME = "lease"


class WorkerLease:
    """Renewed by a thread, for as long as the process of the worker runs at all; kept in the folder of the worker.

    The file's time of change is the monotonic clock of the machine: setting the time of day ends nobody.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / _NAME
        self._path.touch()
        self._renew()
        self._thread = PeriodicThread("lease", _RENEWED_EVERY_S, self._renew)
        self._thread.start()

    def close(self) -> None:
        self._thread.close(None)
        self._path.unlink(missing_ok=True)

    def _renew(self) -> None:
        now_s = time.monotonic()
        os.utime(self._path, (now_s, now_s))


def is_over(folder: Path) -> bool:
    """Whether the worker of a folder has not renewed its lease in time; a process without a worker has none."""
    try:
        return time.monotonic() - (folder / _NAME).stat().st_mtime > LEASE_S
    except FileNotFoundError:
        return False
