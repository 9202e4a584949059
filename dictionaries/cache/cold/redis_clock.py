"""The clock of Redis, by which entries expire: workers whose clocks differ agree on when an entry ends."""

from __future__ import annotations

from collections.abc import Callable

import redis

from dovetail.dictionaries.wall_clock import wall_clock_ms

_MEASURED_EVERY_MS = 10_000


class RedisClock:
    """How far the clock of Redis is ahead of the machine's. An entry's moments are in Redis as its clock has them.

    A difference that the time on the way may account for is none.
    """

    def __init__(self, machine_ms: Callable[[], int] = wall_clock_ms) -> None:
        self._machine_ms = machine_ms
        self._measured_ms: int | None = None
        self.offset_ms = 0

    def measure(self, client: redis.Redis) -> None:
        """Asks Redis, if that was not done within 10 s. Raises redis.RedisError."""
        before_ms = self._machine_ms()
        if self._measured_ms is not None and 0 <= before_ms - self._measured_ms < _MEASURED_EVERY_MS:
            return
        seconds, microseconds = client.time()
        after_ms = self._machine_ms()
        difference_ms = seconds * 1000 + microseconds // 1000 - (before_ms + after_ms) // 2
        self.offset_ms = difference_ms if abs(difference_ms) > after_ms - before_ms + 1 else 0
        self._measured_ms = after_ms
