"""The sign of life of a query's process, by which its worker sees that it hangs.

A process that is stopped, or whose event loop stands still, does not end by itself. The group gives its partitions
away; but where there is no other worker they lie idle, and the query would be said to run.

It is a byte in a pipe, again and again: that needs no disk, and no thread of the worker that waits for an answer.
"""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import suppress

from dovetail.changelog.work.supervised_thread import PeriodicThread

_EVERY_S = 0.5
_BYTES = 4096


class Pulse:
    """Of this process: until it has an event loop, any thread will do; from then on the loop itself.

    descriptor  the end of the pipe to write to; None where nobody listens
    """

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor
        if descriptor is not None:
            os.set_blocking(descriptor, False)
        self._until_loop = PeriodicThread("pulse", _EVERY_S, self._beat)
        self._until_loop.start()

    async def of_loop(self) -> None:
        """As long as the event loop turns; to be cancelled."""
        self._until_loop.close(0)
        while True:
            self._beat()
            await asyncio.sleep(_EVERY_S)

    def _beat(self) -> None:
        # The worker is gone, or stands still and has not read for long: it is seen elsewhere.
        if self._descriptor is not None:
            with suppress(OSError):
                os.write(self._descriptor, b".")


class PulseListener:
    """The worker's side. ``descriptor`` is the end of the pipe to read from.

    Until the first sign it waits: a process may have to wait for what it is forked from.
    """

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._pipe = os.fdopen(descriptor, "rb", buffering=0)
        self._heard_s: float | None = None

    def silent_s(self) -> float:
        """For how long nothing was heard, after the first sign. What came while nobody asked counts as heard now."""
        now_s = time.monotonic()
        while self._pipe.read(_BYTES):
            self._heard_s = now_s
        return 0.0 if self._heard_s is None else now_s - self._heard_s

    def close(self) -> None:
        self._pipe.close()
