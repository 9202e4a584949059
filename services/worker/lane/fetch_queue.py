"""The fetches of one partition on their way from the event loop to the thread of its lane."""

from __future__ import annotations

import queue
from contextlib import suppress

from dovetail.services.worker.lane.fetches import Fetch


class FetchQueue:
    """In order and without a gap: a fetch that is not the next one is refused."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._fetches: queue.SimpleQueue[Fetch] = queue.SimpleQueue()
        self._next = 0

    def begin(self, offset: int) -> None:
        """The first fetch starts at ``offset``."""
        self._next = offset

    @property
    def has_room(self) -> bool:
        return self._fetches.qsize() < self._most

    def offer(self, fetch: Fetch) -> int | None:
        """Take a fetch; if it is not the next one, where the next one starts."""
        if fetch.start != self._next:
            return self._next
        self._next = fetch.end
        self._fetches.put(fetch)
        return None

    def take(self, patience_s: float, records: int) -> list[Fetch]:
        """What came, once there is something: of about so many records. Answered as one batch, several fetches cost
        little more than one of them. Nothing, if nothing comes in ``patience_s``.
        """
        taken: list[Fetch] = []
        with suppress(queue.Empty):
            taken.append(self._fetches.get(timeout=patience_s))
            while sum(len(fetch.records) for fetch in taken) < records:
                taken.append(self._fetches.get_nowait())
        return taken
