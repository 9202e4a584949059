"""Processor time and memory of an engine's processes, while they work."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType

import psutil

_EVERY_S = 1.0
"""To sum up the pages of a process takes it some time, too."""


@dataclass(frozen=True)
class Measured:
    """cpu_s      of all processes together
    peak_bytes  the largest sum of their proportional set sizes: a page that several share counts once
    """

    seconds: float
    cpu_s: float
    peak_bytes: int


class Usage:
    """Of the processes ``roots`` and all below them, from the beginning of the block to its end."""

    def __init__(self, roots: Sequence[int]) -> None:
        self._roots = list(roots)
        self._before = dict(self._times())
        self._last: dict[tuple[int, float], float] = {}
        self._peak_bytes = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="usage", daemon=True)

    def add(self, root: int) -> None:
        self._roots.append(root)

    def __enter__(self) -> Usage:
        self._thread.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def measured(self, seconds: float) -> Measured:
        cpu_s = sum(time_s - self._before.get(process, 0.0) for process, time_s in self._last.items())
        return Measured(seconds, cpu_s, self._peak_bytes)

    def _watch(self) -> None:
        while not self._ended.wait(_EVERY_S):
            self._last |= dict(self._times())
            self._peak_bytes = max(self._peak_bytes, sum(self._sizes()))
        self._last |= dict(self._times())

    def _processes(self) -> Iterator[psutil.Process]:
        for root in self._roots:
            with suppress(psutil.Error):
                process = psutil.Process(root)
                yield from (process, *process.children(recursive=True))

    def _times(self) -> Iterator[tuple[tuple[int, float], float]]:
        for process in self._processes():
            with suppress(psutil.Error):
                times = process.cpu_times()
                yield (process.pid, process.create_time()), times.user + times.system

    def _sizes(self) -> Iterator[int]:
        for process in self._processes():
            with suppress(psutil.Error):
                yield process.memory_full_info().pss
