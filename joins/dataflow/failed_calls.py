"""Calls in expressions that had no value for a row: counted where rows are computed, taken by what reports a batch.

A count is that of its thread, which computes one batch at a time.
"""

from __future__ import annotations

import threading

_of_thread = threading.local()


def note(count: int) -> None:
    _of_thread.count = getattr(_of_thread, "count", 0) + count


def taken() -> int:
    """How many there were since the last time."""
    count: int = getattr(_of_thread, "count", 0)
    _of_thread.count = 0
    return count
