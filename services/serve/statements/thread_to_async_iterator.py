"""From a thread that makes pieces to a coroutine that sends them: few at a time, until the coroutine wants no more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import Executor
from contextlib import closing
from threading import Event
from typing import Generic, TypeVar

from dovetail.changelog.work.interruption import Interruption

T = TypeVar("T")
_WAITING = 4
_LOOK_S = 0.1


class ThreadToAsyncIterator(Generic[T]):
    """The pieces that ``make`` makes on a thread of ``executor``.

    ``over`` is set when nobody takes them any more: ``make`` is given it, and ends as soon as it can; what it computes
    is interrupted. ``finished`` is done when it has ended, however.
    """

    def __init__(self, executor: Executor, make: Callable[[Event], Generator[T, None, None]]) -> None:
        self.over = Event()
        self._make = make
        self._interruption = Interruption()
        self._pieces: asyncio.Queue[T] = asyncio.Queue(_WAITING)
        self._loop = asyncio.get_running_loop()
        self.finished: asyncio.Future[None] = self._loop.run_in_executor(executor, self._work)

    def _work(self) -> None:
        with self._interruption.of_this_thread(), closing(self._make(self.over)) as pieces:
            for piece in pieces:
                if not self._handed(piece):
                    return

    def _handed(self, piece: T) -> bool:
        """Whether it was taken."""
        if self.over.is_set():
            return False
        handing = asyncio.run_coroutine_threadsafe(self._pieces.put(piece), self._loop)
        while not self.over.is_set():
            try:
                handing.result(_LOOK_S)
            except TimeoutError:
                continue
            return True
        handing.cancel()
        return False

    async def pieces(self) -> AsyncGenerator[T, None]:
        """Until the last one. Raises what has ended the making."""
        try:
            while True:
                getting = asyncio.ensure_future(self._pieces.get())
                try:
                    await asyncio.wait((getting, self.finished), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    # What has been got already stays with the task; what has not is left in the queue.
                    if not getting.done():
                        getting.cancel()
                if getting.done() and not getting.cancelled():
                    yield getting.result()
                elif self.finished.done():
                    while not self._pieces.empty():
                        yield self._pieces.get_nowait()
                    await self.finished
                    return
        finally:
            self.over.set()
            self._ending = self._loop.create_task(self._end())

    async def _end(self) -> None:
        while not self.finished.done():
            self._interruption.ask()
            await asyncio.wait((self.finished,), timeout=_LOOK_S)
