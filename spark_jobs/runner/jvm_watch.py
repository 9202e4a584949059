"""Spark's JVM, looked at all the time: whether it answers, and whether what it never gives back leaves it room.

Each start of a query leaves descriptors open, and each of its processes a name in a list of files that are to be
deleted at the end of the JVM: Spark closes the ones and empties the other never. So the list is emptied here; and where
descriptors or the heap run out, the runner starts again in order, which costs seconds, before everything fails.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from dovetail.changelog.work.supervised_thread import PeriodicThread
from dovetail.runtime.processes.descriptors import share_of_descriptors

_LOOK_S = 5.0
_SILENT_S = 45.0
"""A JVM that stands still for a collection answers sooner."""
_USED_UP = 0.7
_MOST_NAMES = 100_000
"""Of files that are to be deleted at the end: some 13 MB."""
_LAST_COLLECTION = ("Tenured Gen", "G1 Old Gen", "PS Old Gen")
"""What is in use of these when garbage has been collected is no garbage."""


@dataclass(frozen=True)
class JvmUse:
    """Shares, from 0 to 1, of what it and this process may have."""

    descriptors: float
    heap: float
    descriptors_here: float = 0.0


class JvmWatch:
    """A thread that asks, from ``start`` to ``stop``.

    use  asks the JVM how much it has in use; raises OSError or Py4JError where it is gone
    """

    def __init__(self, use: Callable[[], JvmUse], clock: Callable[[], float] = time.monotonic) -> None:
        self._use = use
        self._clock = clock
        self._answered_s = clock()
        self._last = JvmUse(0.0, 0.0)
        self._thread = PeriodicThread("jvm-watch", _LOOK_S, self._ask)

    @staticmethod
    def of(session: SparkSession) -> JvmWatch:
        return JvmWatch(_JvmFigures(session).look)

    def start(self) -> None:
        self._answered_s = self._clock()
        self._thread.start()

    def stop(self) -> None:
        # It may be waiting for an answer that does not come.
        self._thread.close(0)

    def _ask(self) -> None:
        self._last = self._use()
        self._answered_s = self._clock()

    @property
    def trouble(self) -> str:
        """Why nothing is done; '' while the JVM answers."""
        silent_s = self._clock() - self._answered_s
        return "" if silent_s < _SILENT_S else f"Spark's JVM has not answered for {silent_s:.0f} s"

    @property
    def used_up(self) -> str:
        """What it, or this process, will soon have no more of; '' for nothing."""
        for share, what in (
            (self._last.descriptors, "descriptors of Spark's JVM"),
            (self._last.heap, "the heap of Spark's JVM (DOVETAIL_DRIVER_MEMORY_GIB)"),
            (self._last.descriptors_here, "descriptors of the runner"),
        ):
            if share > _USED_UP:
                return f"{share:.0%} of {what} are in use"
        return ""


class _JvmFigures:
    def __init__(self, session: SparkSession) -> None:
        jvm: Any = session.sparkContext._jvm  # noqa: SLF001 - nothing public asks the JVM
        self._pid = jvm.java.lang.ProcessHandle.current().pid()
        pools = jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
        self._pools = [pool for pool in pools if pool.getName() in _LAST_COLLECTION]
        self._names = _names_of_files_to_delete(jvm)

    def look(self) -> JvmUse:
        if self._names is not None and self._names.size() > _MOST_NAMES:
            self._names.clear()
        heap = max(map(_share_of_heap, self._pools), default=0.0)
        return JvmUse(share_of_descriptors(self._pid), heap, share_of_descriptors(os.getpid()))


def _names_of_files_to_delete(jvm: Any) -> Any | None:
    """The list of ``File.deleteOnExit``; None where this Java has another."""
    try:
        field = jvm.java.lang.Class.forName("java.io.DeleteOnExitHook").getDeclaredField("files")
        field.setAccessible(True)
        return field.get(None)
    except Py4JError:
        return None


def _share_of_heap(pool: Any) -> float:
    usage = pool.getCollectionUsage()
    return usage.getUsed() / usage.getMax() if usage is not None and usage.getMax() > 0 else 0.0
