"""One who follows: the events that wait to be sent to them, no more than so many rows."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable

from dovetail.changelog.errors import DovetailError
from dovetail.services.serve.tails.events import RowsEvent


class TailClient:
    """Used by one event loop. ``behind``: more rows waited than may, and all of them were let go; what was sent before
    has its place, from which it goes on without loss.
    """

    def __init__(self, most_rows: int, first: Iterable[RowsEvent] = ()) -> None:
        self._most_rows = most_rows
        self._waiting = deque(first)
        self._rows = sum(one.rows for one in self._waiting)
        self._news = asyncio.Event()
        self.behind = False
        self.ended: DovetailError | None = None

    def offer(self, one: RowsEvent) -> None:
        if self.behind:
            return
        if self._waiting and self._rows + one.rows > self._most_rows:
            self.behind = True
            self._waiting.clear()
        else:
            self._waiting.append(one)
            self._rows += one.rows
        self._news.set()

    def end(self, why: DovetailError) -> None:
        """Nothing comes any more; what waits is sent."""
        self.ended = why
        self._news.set()

    async def next(self, within_s: float) -> RowsEvent | None:
        """The next event; None where there is none within the time, or no other will come."""
        if not self._waiting and not self.behind and self.ended is None:
            self._news.clear()
            try:
                async with asyncio.timeout(within_s):
                    await self._news.wait()
            except TimeoutError:
                return None
        if not self._waiting:
            return None
        one = self._waiting.popleft()
        self._rows -= one.rows
        return one

    @property
    def idle(self) -> bool:
        return not self._waiting
