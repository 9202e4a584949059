"""Something that is done again and again beside a test."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def repeated(work: Callable[[], object], pause_s: float) -> Iterator[None]:
    """On a thread, with pauses, for as long as the block runs; what is begun is ended."""
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(pause_s):
            work()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
