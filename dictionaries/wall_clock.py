"""The clock of what layouts do behind the lookups, which are handed their time."""

from __future__ import annotations

import time


def wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000
