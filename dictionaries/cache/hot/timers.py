"""Which keys are due at which moment."""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Iterable

from dovetail.changelog.lookup import Key


class Timers:
    """Keys by the moment that they are due. Many keys share one: those fetched by a statement expire together."""

    def __init__(self) -> None:
        self._keys: defaultdict[int, list[Key]] = defaultdict(list)
        self._moments: list[int] = []
        self.next_ms: float = math.inf
        """The earliest moment at which something is due."""
        self.count = 0

    def add(self, moment_ms: int, keys: Iterable[Key]) -> None:
        waiting = self._keys.get(moment_ms)
        if waiting is None:
            heapq.heappush(self._moments, moment_ms)
            waiting = self._keys[moment_ms]
            self.next_ms = self._moments[0]
        before = len(waiting)
        waiting.extend(keys)
        self.count += len(waiting) - before

    def due(self, now_ms: int) -> list[Key]:
        """Takes out the keys that are due; some may have been replaced or forgotten since they were added."""
        due: list[Key] = []
        while self._moments and self._moments[0] <= now_ms:
            due += self._keys.pop(heapq.heappop(self._moments))
        self.count -= len(due)
        self.next_ms = self._moments[0] if self._moments else math.inf
        return due

    def clear(self) -> None:
        self._keys.clear()
        self._moments.clear()
        self.next_ms = math.inf
        self.count = 0
