"""Processor time of a piece of work, by which growth is told whatever else the machine, or the process, does."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

_TRIES = 3


def least_spent(work: Callable[[], object], enough_s: float = 0.0) -> float:
    """Seconds: the least of several tries, with the collector of garbage at rest; of fewer, once it is below
    ``enough_s``.
    """
    gc.collect()
    gc.disable()
    try:
        least_s = spent(work)
        for _ in range(_TRIES - 1):
            if least_s >= enough_s:
                least_s = min(least_s, spent(work))
        return least_s
    finally:
        gc.enable()


def spent(work: Callable[[], object]) -> float:
    """Seconds of this thread."""
    began = time.thread_time()
    work()
    return time.thread_time() - began
