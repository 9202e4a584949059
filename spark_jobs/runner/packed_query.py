"""A pack in Spark, and a view that is a member of it, as whoever looks after one view sees it."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from dovetail.broker.topics import Offsets
from dovetail.changelog.errors import DovetailError
from dovetail.runtime.storage.storage import Storage
from dovetail.spark_jobs.account.progress import Progress
from dovetail.spark_jobs.runner.query import RunningQuery

_LOOK_S = 0.15
"""For so long what Spark has said of a pack is good for the other members."""


class PackAtWork:
    """A pack in Spark, which is asked once for all members that are looked at together: each answer costs processor
    time.
    """

    def __init__(self, running: RunningQuery) -> None:
        self._running = running
        self._lock = threading.Lock()
        self._looked_s = -_LOOK_S
        self._error: DovetailError | None = None
        self._at_work = False

    def error(self) -> DovetailError | None:
        self._look()
        return self._error

    @property
    def at_work(self) -> bool:
        self._look()
        return self._at_work

    @property
    def waits(self) -> str:
        return self._running.waits

    @property
    def under_way_s(self) -> float:
        return self._running.under_way_s

    def progress(self, member: int) -> Progress:
        self._look()
        return self._running.noted(member)

    def first_offsets(self, member: int) -> Offsets:
        return self._running.first_offsets_of(member)

    @property
    def at_fault(self) -> frozenset[int]:
        """The ids of the queries that have ended it; empty where nobody knows."""
        self._look()
        return frozenset(map(int, self._running.at_fault))

    def quiesce(self, within_s: float) -> None:
        self._running.quiesce(within_s)

    def go_on(self) -> None:
        self._running.go_on()

    def stop(self) -> None:
        self._running.stop()
        self._running.progress()

    def _look(self) -> None:
        with self._lock:
            if time.monotonic() - self._looked_s >= _LOOK_S:
                self._error = self._running.error()
                self._at_work = self._error is None and self._running.at_work
                self._looked_s = time.monotonic()


@dataclass(frozen=True)
class PackedQuery:
    """A view at work in a pack, as a ``RunningQuery`` would be for it alone.

    beside   the names of the others
    buckets  that it has when it is alone
    """

    running: PackAtWork
    number: int
    pack: Storage
    beside: tuple[str, ...]
    buckets: int

    @property
    def first_offsets(self) -> Offsets:
        return self.running.first_offsets(self.number)

    def progress(self) -> Progress:
        return self.running.progress(self.number)

    def error(self) -> DovetailError | None:
        return self.running.error()

    @property
    def at_work(self) -> bool:
        return self.running.at_work

    @property
    def waits(self) -> str:
        return self.running.waits

    @property
    def under_way_s(self) -> float:
        return self.running.under_way_s
