"""Whether the object store of the checkpoints answers, looked at all the time: Hadoop waits for it without a word."""

from __future__ import annotations

import time

from dovetail.changelog.errors import DovetailError
from dovetail.changelog.work.supervised_thread import PeriodicThread
from dovetail.runtime.storage.places import expect_answer
from dovetail.runtime.storage.storage import Storage

_LOOK_S = 1.0
_SILENT_S = 15.0
"""A store that answers after so long is slow, and not gone."""


class StorageWatch:
    """A thread that asks, from ``start`` to ``stop``; none where the place is a folder."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._looked_s = time.monotonic()
        self._trouble = ""
        self._thread = None if storage.folder is not None else PeriodicThread("storage-watch", _LOOK_S, self._ask)

    def start(self) -> None:
        if self._thread is not None:
            self._looked_s = time.monotonic()
            self._thread.start()

    def stop(self) -> None:
        if self._thread is not None:
            self._thread.close(0)

    @property
    def trouble(self) -> str:
        """Why no batch can be committed now; '' while the store answers."""
        if self._trouble or self._thread is None:
            return self._trouble
        silent_s = time.monotonic() - self._looked_s
        return "" if silent_s < _SILENT_S else f"{self._storage.location} has not answered for {silent_s:.0f} s"

    def _ask(self) -> None:
        try:
            expect_answer(self._storage)
        except DovetailError as failure:
            self._trouble = str(failure)
        else:
            self._trouble = ""
        self._looked_s = time.monotonic()
