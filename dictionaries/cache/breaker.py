"""A breaker: after failures in a row, a service is left alone for a while."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from dovetail.changelog.work.backoff import Backoff


class Breaker:
    """Open after ``failures`` in a row, at first for ``least_s``, twice as long after each failed trial.

    A service that hangs costs one timeout per trial and not one per batch: the batch keeps its budget for the source.
    ``elapsed_s`` measures durations (``time.monotonic``), so it is no clock of the data.
    """

    def __init__(
        self, elapsed_s: Callable[[], float], failures: int = 2, least_s: float = 0.2, greatest_s: float = 5.0
    ) -> None:
        self._elapsed_s = elapsed_s
        self._failures = failures
        self._pauses = Backoff(least_s, greatest_s)
        self._lock = Lock()
        self._failed = 0
        self._open_until_s = float("-inf")

    @property
    def is_open(self) -> bool:
        return self._failed >= self._failures

    def allows(self) -> bool:
        """Whether to call the service. Of many callers after the pause, one is let through: the trial."""
        if not self.is_open:
            return True
        with self._lock:
            now_s = self._elapsed_s()
            if now_s < self._open_until_s:
                return False
            self._open_until_s = now_s + self._pause_s()
            return True

    def succeeded(self) -> None:
        self._failed = 0

    def failed(self) -> None:
        with self._lock:
            self._failed += 1
            self._open_until_s = self._elapsed_s() + self._pause_s()

    def _pause_s(self) -> float:
        return self._pauses.pause_s(self._failed - self._failures + 1)
