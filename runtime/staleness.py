"""For how long nothing new was heard of somebody, by a clock that nobody sets.

Whoever is there writes a word again and again, another one each time: until when its lease stands. That is a time of
day, of the writer's clock, which may be wrong, or be set. So it is not compared with the time of day here: a writer is
silent while its word stays the same, for as long as the reader's monotonic clock says.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

_Name = TypeVar("_Name", bound=Hashable)


class Staleness:
    """What was last heard of each name, and since when it is that."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._heard: dict[Hashable, tuple[Hashable, float]] = {}

    def seconds(self, name: Hashable, word: Hashable) -> float:
        """Since when ``word`` is what ``name`` says; 0 the first time."""
        now_s = self._clock()
        before, since_s = self._heard.get(name, (None, now_s))
        if before != word:
            since_s = now_s
        self._heard[name] = (word, since_s)
        return now_s - since_s

    def all_seconds(self, words: Mapping[_Name, Hashable]) -> dict[_Name, float]:
        """The same of all who say anything now; any other name is forgotten."""
        self._heard = {name: heard for name, heard in self._heard.items() if name in words}
        return {name: self.seconds(name, word) for name, word in words.items()}

    def forget(self, name: Hashable) -> None:
        self._heard.pop(name, None)
