"""EMIT PERIODIC: how long a query waits before it begins another batch.

What changes between two batches leaves with the second, each row once: a batch is a period. While a query catches up
with what is there it begins the next batch at once.

    period 5 s      begins 0:00      rows at 0:01, 0:04      begins 0:05      no rows      row at 0:17: begins at once
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Period:
    """``length_s`` 0: no batch waits. Times are those of a clock that only goes forward, in seconds."""

    length_s: float
    _next_s: float = 0.0

    def wait_s(self, now_s: float) -> float:
        """How long it is until a batch may begin."""
        return max(0.0, self._next_s - now_s)

    def began(self, now_s: float, caught_up: bool) -> None:
        """A batch begins now; ``caught_up``: it takes all that there is."""
        self._next_s = now_s + self.length_s if caught_up else now_s
