"""Processor time of a piece of work, by which growth is told whatever else the machine, or the process, does."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

_TRIES = 3


def least_spent(work: Callable[[], object]) -> float:
    """Seconds: the least of several tries, with the collector of garbage at rest."""
    gc.collect()
    gc.disable()
    try:
        return min(spent(work) for _ in range(_TRIES))
    finally:
        gc.enable()


def spent(work: Callable[[], object]) -> float:
    """Seconds of this thread."""
    began = time.thread_time()
    work()
    return time.thread_time() - began
