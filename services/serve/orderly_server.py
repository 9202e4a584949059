"""A server of HTTP that ends in order."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Iterator

import uvicorn


class OrderlyServer(uvicorn.Server):
    """At SIGTERM and Ctrl-C the answers under way are sent, and ``serve`` returns.

    uvicorn alone then raises the signal once more: the process ends by it, with nothing closed and an exit code that
    says it was killed.
    """

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        yield

    def stop(self) -> None:
        self.should_exit = True
