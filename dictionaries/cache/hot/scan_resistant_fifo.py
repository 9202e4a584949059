"""Which keys stay in a full cache: S3-FIFO, worked in batches.

    new keys ──▶ small ──▶ (asked for again) ──▶ main ──▶ (not asked for again) ──▶ out
                   └────▶ (not) ──▶ out, remembered as a ghost ──▶ comes again: straight to main

A scan of keys that are asked for once passes through ``small``, a tenth of the room, and never touches ``main``.
After: J. Yang et al., "FIFO queues are all you need for cache eviction", SOSP 2023, with one bit for "asked for
again" instead of two: a batch marks all its keys with one update of a set.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from dovetail.changelog.lookup import Key

_SMALL_SHARE = 10
Queue = dict[Key, None]
"""Keys, oldest first: a dict keeps their order and lets any of them go at once."""


class Ghosts:
    """The keys that left last, without their values: between half and all of ``capacity`` of them.

    Two generations instead of a queue: the older one is forgotten as a whole.
    """

    def __init__(self, capacity: int) -> None:
        self._half = max(1, capacity // 2)
        self._young: set[Key] = set()
        self._old: set[Key] = set()

    def take(self, keys: Sequence[Key]) -> set[Key]:
        """Those of the keys that are remembered; they are remembered no longer."""
        known = self._young.intersection(keys)
        self._young -= known
        from_old = self._old.intersection(keys)
        self._old -= from_old
        return known | from_old

    def add(self, keys: Sequence[Key]) -> None:
        self._young.update(keys[-self._half :])
        if len(self._young) >= self._half:
            self._old, self._young = self._young, set()

    def clear(self) -> None:
        self._young.clear()
        self._old.clear()


class ScanResistantFifo:
    """The keys of a cache with room for ``capacity`` of them. Not thread-safe, but for ``visited.update``."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._small_room = max(1, capacity // _SMALL_SHARE)
        self._small: Queue = {}
        self._main: Queue = {}
        self._ghosts = Ghosts(capacity)
        self.visited: set[Key] = set()
        """Keys asked for since they came; the cache adds to it."""

    def __len__(self) -> int:
        return len(self._small) + len(self._main)

    def __contains__(self, key: Key) -> bool:
        return key in self._small or key in self._main

    def admit(self, keys: Sequence[Key]) -> tuple[list[Key], list[Key]]:
        """Lets in keys that were not inside: those that came in, and those that had to leave for them.

        A key may be among both. One among neither passed by: so many came at once that it would have left unseen.
        """
        if len(self.visited) > 2 * self._capacity:  # marks of keys that left while a batch was being marked
            self.visited = {key for key in self.visited if key in self}
        known = self._ghosts.take(keys)
        returned = [key for key in keys if key in known] if known else []
        unknown = [key for key in keys if key not in known] if known else keys
        self._main.update(dict.fromkeys(returned))
        passing = max(0, len(unknown) - max(self._small_room, self._capacity - len(self._main)))
        self._ghosts.add(unknown[:passing])
        entered = list(unknown[passing:])
        self._small.update(dict.fromkeys(entered))
        return returned + entered, self.shrink(self._capacity)

    def shrink(self, capacity: int) -> list[Key]:
        """The keys that have to leave so that no more than ``capacity`` are inside."""
        left: list[Key] = []
        while len(self) > capacity:
            excess = len(self) - capacity
            over = len(self._small) - self._small_room
            if over > 0 or not self._main:
                left += self._leave_small(min(excess, over) if over > 0 else excess)
            else:
                left += self._leave_main(excess)
        return left

    def remove(self, keys: Iterable[Key]) -> None:
        for key in keys:
            self._small.pop(key, None)
            self._main.pop(key, None)
        self.visited.difference_update(keys)

    def clear(self) -> None:
        self._small.clear()
        self._main.clear()
        self._ghosts.clear()
        self.visited.clear()

    def _leave_small(self, count: int) -> list[Key]:
        gone = self._pass_on(self._small, count)
        self._ghosts.add(gone)
        return gone

    def _leave_main(self, count: int) -> list[Key]:
        return self._pass_on(self._main, count)

    def _pass_on(self, queue: Queue, count: int) -> list[Key]:
        """Takes out the oldest keys: those asked for again go to the end of main, the others are the answer."""
        oldest = list(islice(queue, count))
        if len(oldest) == len(queue):
            queue.clear()
        for key in oldest if queue else ():
            del queue[key]
        visited = self.visited
        again = [key for key in oldest if key in visited]
        if not again:
            return oldest
        visited.difference_update(again)
        self._main.update(dict.fromkeys(again))
        return [key for key in oldest if key not in self._main]
